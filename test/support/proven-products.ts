import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { MediumState } from '../../src/media/verify-contents.ts';
import { findEmbedArea } from '../../src/iso/index.ts';
import { useMedium } from '../../src/media/open.ts';
import { createLiveWorld, type LiveWorld } from './live-iso.ts';
import { siteTree } from './config-iso-world.ts';
import { TEST_SSH_KEY, writeInstallationConfig } from './installation-iso.ts';
import { makeCoreosIso } from './iso.ts';
import { writeMinimalRecipe } from './minimal-recipe.ts';
import { buildLayeredImage } from './release.ts';
import { writeTree } from './site-archives.ts';
import { expectDone } from './two-nights.ts';

type Proven = {
  /** Name in a sentence. */
  readonly product: string;
  readonly path: string;
  readonly state: MediumState;
  /** True for an ISO whose digest is in a file beside it. */
  readonly hasChecksum?: boolean;
};

const whole = (product: string, path: string): Proven => ({ product, path, state: 'whole' });

/** Each product that can be verified, and the result for it. */
export const PRODUCTS: readonly Proven[] = [
  whole('a live ISO that was built with values', 'live.iso'),
  whole('a customised live ISO', 'custom.iso'),
  whole('a live ISO with an area of xz', 'xz.iso'),
  { product: 'a live ISO with an area of gzip', path: 'gzip.iso', state: 'not provable' },
  { product: 'a live ISO with other kernel arguments', path: 'kargs.iso', state: 'not provable' },
  whole('an upgrade ISO', 'upgrade.iso'),
  whole('an installation ISO', 'ibi.iso'),
  whole('an installation ISO that has grown', 'grown.iso'),
  whole('an installation ISO with images', 'seed.iso'),
  whole('a configuration ISO', 'sites.out/alpha.iso'),
  {
    ...whole('a minimal ISO, by the checksum beside it', 'minimal/test-minimal.iso'),
    hasChecksum: true,
  },
  whole('a delta', 'night.delta'),
  whole('a part of a delta', 'cut.delta.1'),
  whole('the parity of a delta', 'cut.delta.parity'),
];

/** Makes each product, and the base ISO, as small as it can be. @returns their bytes by path */
export async function makeProducts(): Promise<ReadonlyMap<string, Buffer>> {
  const world = await createLiveWorld();
  try {
    await buildLive(world);
    await buildInstallation(world);
    await buildUpgrade(world);
    await buildOthers(world);
    const paths = [...PRODUCTS.map(({ path }) => path), 'test.iso'];
    const read = (path: string): Promise<Buffer> => readFile(join(world.directory, path));
    return new Map(await Promise.all(paths.map(async (path) => [path, await read(path)] as const)));
  } finally {
    await world.close();
  }
}

async function buildLive(world: LiveWorld): Promise<void> {
  const base = ['--base-iso', 'test.iso', '--output'];
  await world.writeConfig();
  await expectDone(world, 'build', ...base, 'monday.iso');
  await world.writeConfig('  kernelArguments: [debug]', `sshKey: ${TEST_SSH_KEY}`);
  await expectDone(world, 'build', ...base, 'live.iso');
  const customize = ['customize', 'live.iso', '--output'];
  await expectDone(
    world,
    ...customize,
    'custom.iso',
    '--ssh-key',
    TEST_SSH_KEY.replace('J0Y', 'J1Y'),
  );
  await expectDone(world, ...customize, 'kargs.iso', '--kargs-append', 'x=1');
  await packAgain(world, 'xz.iso', ['xz', '-c', '--check=crc32']);
  await packAgain(world, 'gzip.iso', ['gzip', '-c', '-5']);
  await expectDone(world, 'delta', 'monday.iso', 'live.iso', '--output', 'night.delta');
  const cut = ['--output', 'cut.delta', '--max-part-size', '3KiB'];
  await expectDone(world, 'delta', 'monday.iso', 'live.iso', ...cut);
}

/** Packs the embed area of the customised ISO as another program would. */
async function packAgain(
  { directory }: LiveWorld,
  name: string,
  [program = '', ...args]: readonly string[],
): Promise<void> {
  const image = await readFile(join(directory, 'custom.iso'));
  const { offset, size } = await useMedium(join(directory, 'custom.iso'), findEmbedArea);
  const area = image.subarray(offset, offset + size);
  const archive = execFileSync(program, args, { input: gunzipSync(area) });
  area.fill(0).set(archive);
  await writeFile(join(directory, name), image);
}

async function buildUpgrade({ directory, ...world }: LiveWorld): Promise<void> {
  const path = join(directory, 'appliance-config.yaml');
  const text = await readFile(path, 'utf8');
  const lines = text
    .split('\n')
    .filter((line) => !/^(enableInteractive|sshKey| +(kernelA|ignition))/.test(line));
  await writeFile(path, lines.join('\n'));
  await expectDone({ directory, ...world }, 'build', 'upgrade-iso', '--output', 'upgrade.iso');
}

async function buildInstallation(world: LiveWorld): Promise<void> {
  const { directory, registry, release } = world;
  const build = ['build', 'installation-iso', '--base-iso', 'test.iso', '--output'];
  await writeInstallationConfig(directory, { sshKey: TEST_SSH_KEY });
  await expectDone(world, ...build, 'ibi.iso');
  const noise = createHash('shake256', { outputLength: 300_000 }).digest('base64');
  const files = [{ path: '/etc/noise', contents: { source: `data:;base64,${noise}` } }];
  await writeInstallationConfig(directory, {
    ignitionConfigOverride: JSON.stringify({ ignition: { version: '3.2.0' }, storage: { files } }),
  });
  await expectDone(world, ...build, 'grown.iso');
  const seed = await buildLayeredImage([[['ostree.tgz', 'a seed']], [['lca-cli', '#!/bin/sh\n']]]);
  registry.add('edge/seed', seed, '4.21.3');
  await writeInstallationConfig(directory, { seedImage: `${registry.host}/edge/seed:4.21.3` });
  await expectDone(
    world,
    ...[...build, 'seed.iso', '--release', release.pullspec, '--embed-seed'],
    ...['--insecure-registry', registry.host, '--signatures', 'release-signatures'],
    ...['--signature-keys', 'release-keys.gpg'],
  );
}

async function buildOthers(world: LiveWorld): Promise<void> {
  const { directory } = world;
  writeTree(join(directory, 'sites'), siteTree('alpha'));
  await expectDone(world, 'config-iso', 'build', 'sites', '--out', 'sites.out');
  const [whole, rest] = ['whole', 'rest'].map((name) => join(directory, name));
  for (const folder of [whole, rest]) await mkdir(folder ?? '');
  const full = await makeCoreosIso(whole ?? '', { files: { 'coreos/miniso.dat': 131_072 } });
  const without = ['images/pxeboot/rootfs.img', 'coreos/miniso.dat'];
  await writeMinimalRecipe(full, await makeCoreosIso(rest ?? '', { without }));
  await expectDone(world, 'extract', 'minimal-iso', 'whole/test.iso', '--out', 'minimal');
}
