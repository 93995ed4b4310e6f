import { execFileSync } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeBaseIso } from '../../demo/base-iso.ts';
import { createBlobFactory } from '../../demo/payload.ts';
import { buildImage, makeCoreComponents, publishRelease } from '../../demo/release.ts';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { startSourceRegistry } from '../../demo/source-registry.ts';
import { runProcess } from '../../src/base/process.ts';
import { SENTINEL } from '../support/sentinel.ts';

const SEALIFT = fileURLToPath(new URL('../../dist/cli/start.cjs', import.meta.url));
const MIB = 1 << 20;

/** What a customer gives; the oracle has an ISO with each of them. */
export type Values = {
  readonly sshKey: string;
  readonly pullSecret: string;
  readonly kargs: readonly string[];
  readonly proxy?: string;
};

const keyOf = (letter: string): string =>
  `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH${letter}Xk2b4nQ2vN0rT3mB6yqW8eR1tY5uI7oP9aS0dF1gH load`;

export const VALUES: readonly [Values, ...Values[]] = [
  { sshKey: keyOf('a'), pullSecret: '{"auths":{"a.example":{"auth":"dTpw"}}}', kargs: [] },
  {
    sshKey: keyOf('b'),
    pullSecret: '{"auths":{"b.example":{"auth":"dTpw"}}}',
    kargs: ['b=1', 'c'],
  },
  {
    sshKey: keyOf('c'),
    pullSecret: JSON.stringify({
      auths: { 'c.example': { auth: 'dTpw', email: 'x'.repeat(9000) } },
    }),
    kargs: ['console=ttyS0'],
    proxy: 'http://proxy.example:3128',
  },
];

/** An ISO that the store has or will have, and the bytes of each customer's. */
export type Variant = {
  readonly version: string;
  readonly path: string;
  readonly size: number;
  readonly isos: readonly ExpectedIso[];
};

export type ExpectedIso = {
  readonly size: number;
  /** Of sha256sum(1). */
  readonly sha256: string;
  /** As cpio(1) reads it from the ISO. */
  readonly config: string;
  readonly read: (offset: number, size: number) => Buffer;
};

/** Versions, each with its ISOs: where there are two, one takes the other's place. */
export type Releases = {
  readonly versions: ReadonlyMap<string, readonly Variant[]>;
  readonly close: () => void;
};

type Plan = { readonly version: string; readonly extra: number; readonly bases: readonly number[] };

/** Of the large ones, kills and cuts fall into the middle. What has one ISO alone may be elsewhere. */
const PLANS: readonly Plan[] = [
  { version: '4.21.9', extra: 3 * MIB, bases: [0, 1] },
  { version: '4.21.1', extra: 1 * MIB, bases: [0] },
  { version: '4.21.3', extra: 200 * MIB, bases: [0, 1] },
  { version: '4.21.5', extra: 80 * MIB, bases: [0] },
];

/** Builds the ISOs, and customises a copy of each with all values by `sealift customize`. */
export async function makeReleases(directory: string): Promise<Releases> {
  mkdirSync(directory, { recursive: true });
  const registry = await startSourceRegistry();
  const files: number[] = [];
  try {
    const bases = [join(directory, 'base-0.iso'), join(directory, 'base-1.iso')];
    for (const [index, path] of bases.entries()) await makeBaseIso(path, (2 + index) * MIB);
    const makeBlob = createBlobFactory('load');
    const shared = [makeBlob(0, 2 * MIB)];
    const versions = new Map<string, readonly Variant[]>();
    for (const { version, extra, bases: numbers } of PLANS) {
      const components = await makeCoreComponents(readFileSync(bases[0] ?? ''), shared);
      components.set('large', buildImage([...shared, makeBlob(extra / MIB, extra)]));
      const url = await publishRelease(registry, { version, components });
      registry.signer.write(directory);
      const variants: Variant[] = [];
      for (const number of numbers) {
        const config = ['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:'].concat(
          ...[`  version: "${version}"`, `  url: ${url}`, 'enableInteractiveFlow: true', 'build:'],
          ...['  ignition: embedded', `  baseIso: base-${number}.iso`, ...SIGNATURE_LINES],
          ...[`  insecureRegistries: ["${registry.host}"]`, ''],
          `pullSecret: '{"auths":{"${registry.host}":{"auth":"bG9hZDpsb2Fk"}}}'`,
        );
        writeFileSync(join(directory, 'appliance-config.yaml'), config.join('\n'));
        const path = join(directory, `${version}-${number}.iso`);
        await sealift(directory, 'build', 'live-iso', '--output', path);
        variants.push(await describeVariant(directory, { version, path, files }));
      }
      versions.set(version, variants);
    }
    return {
      versions,
      close: () => {
        for (const file of files) closeSync(file);
      },
    };
  } finally {
    await registry.close();
  }
}

const sealift = (cwd: string, ...args: readonly string[]) =>
  runProcess(process.execPath, [SEALIFT, ...args], { cwd, timeout: 300_000 });

type Place = { readonly version: string; readonly path: string; readonly files: number[] };

async function describeVariant(
  directory: string,
  { version, path, files }: Place,
): Promise<Variant> {
  const file = openSync(path, 'r');
  files.push(file);
  const { size } = fstatSync(file);
  const isos: ExpectedIso[] = [];
  for (const values of VALUES) {
    const copy = join(directory, 'customised.iso');
    await customise(directory, values, { path, copy });
    isos.push({
      size,
      sha256: execFileSync('sha256sum', [copy], { encoding: 'utf8' }).slice(0, 64),
      config: readConfig(directory, copy),
      read: createReader(file, findPatches(file, copy, size)),
    });
    rmSync(copy);
  }
  return { version, path, size, isos };
}

type Copying = { readonly path: string; readonly copy: string };

async function customise(directory: string, values: Values, { path, copy }: Copying) {
  const { sshKey, pullSecret, kargs, proxy } = values;
  writeFileSync(join(directory, 'secret.json'), pullSecret);
  writeFileSync(join(directory, 'sentinel.ign'), SENTINEL);
  await sealift(
    directory,
    ...['customize', path, '--output', copy, '--ssh-key', sshKey],
    ...['--pull-secret', 'file:secret.json', '--ignition-override', 'sentinel.ign'],
    ...kargs.flatMap((karg) => ['--kargs-append', karg]),
    ...(proxy === undefined ? [] : ['--proxy', proxy]),
  );
}

function readConfig(directory: string, iso: string): string {
  const area = join(directory, 'area');
  const from = ['-osirrox', 'on', '-indev', iso, '-extract', '/images/ignition.img', area];
  execFileSync('xorriso', from, { stdio: 'ignore' });
  const unpack = 'gzip -dcq "$0" 2>/dev/null | cpio -i --to-stdout --quiet config.ign';
  const config = execFileSync('sh', ['-c', unpack, area], {
    encoding: 'utf8',
    maxBuffer: 64 * MIB,
  });
  rmSync(area);
  return config;
}

const BLOCK = 1 << 16;

/** The blocks of a copy that are other ones. */
function findPatches(file: number, copy: string, size: number): ReadonlyMap<number, Buffer> {
  const patches = new Map<number, Buffer>();
  const other = openSync(copy, 'r');
  if (fstatSync(other).size !== size) throw new Error(`a customised ISO has not ${size} bytes`);
  const [ours, theirs] = [Buffer.alloc(MIB), Buffer.alloc(MIB)];
  for (let offset = 0; offset < size; offset += MIB) {
    const count = readSync(file, ours, 0, MIB, offset);
    readSync(other, theirs, 0, MIB, offset);
    for (let at = 0; at < count; at += BLOCK) {
      const block = theirs.subarray(at, Math.min(at + BLOCK, count));
      if (!block.equals(ours.subarray(at, at + block.length))) {
        patches.set((offset + at) / BLOCK, Buffer.from(block));
      }
    }
  }
  closeSync(other);
  return patches;
}

const createReader =
  (file: number, patches: ReadonlyMap<number, Buffer>): ExpectedIso['read'] =>
  (offset, size) => {
    const bytes = Buffer.allocUnsafe(size);
    readSync(file, bytes, 0, size, offset);
    for (let block = Math.floor(offset / BLOCK); block * BLOCK < offset + size; block += 1) {
      const patch = patches.get(block);
      if (!patch) continue;
      const start = block * BLOCK - offset;
      patch.copy(bytes, Math.max(0, start), Math.max(0, -start));
    }
    return bytes;
  };
