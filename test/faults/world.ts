import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeBaseIso } from '../../demo/base-iso.ts';
import { createBlobFactory } from '../../demo/payload.ts';
import { buildImage, makeCoreComponents, publishRelease } from '../../demo/release.ts';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { startSourceRegistry, type SourceRegistry } from '../../demo/source-registry.ts';
import type { Random } from './random.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const VERSION = '4.21.0';

/** What a user edits between two builds: each variant has an ISO of its own. */
export type Inputs = {
  readonly key: number;
  readonly base: number;
  readonly stopRegistry: boolean;
};

export type World = {
  readonly registry: SourceRegistry;
  /** Fills a folder with these inputs; the registry is asked at `host`. */
  readonly write: (folder: string, host: string, inputs: Inputs & { lanes: number }) => void;
  readonly close: () => Promise<void>;
};

/** A small release of the real shape, and two base ISOs. */
export async function createWorld(directory: string): Promise<World> {
  const registry = await startSourceRegistry();
  const makeBlob = createBlobFactory();
  const shared = [makeBlob(0, 2 * MIB), makeBlob(1, 300 * KIB)];
  const bases = [join(directory, 'base-0.iso'), join(directory, 'base-1.iso')];
  for (const [index, path] of bases.entries()) await makeBaseIso(path, (2 + index) * MIB);
  const components = await makeCoreComponents(readFileSync(bases[0] ?? ''), shared);
  for (let index = 0; index < 12; index++) {
    const size = (index === 3 ? 6 * MIB : 100 * KIB) + index * 1000;
    components.set(`component-${index}`, buildImage([...shared, makeBlob(10 + index, size)]));
  }
  const pullspec = await publishRelease(registry, { version: VERSION, components });
  return {
    registry,
    write(folder, host, { key, base, stopRegistry, lanes }) {
      mkdirSync(folder, { recursive: true });
      registry.signer.write(folder);
      copyFileSync(bases[base] ?? '', join(folder, 'base.iso')); // edited in place
      writeFileSync(join(folder, 'registries.conf'), registriesConf(registry.host, host));
      writeFileSync(
        join(folder, 'appliance-config.yaml'),
        [
          ...['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:'],
          ...[`  version: "${VERSION}"`, `  url: ${pullspec}`],
          `pullSecret: '{"auths":{"${registry.host}":{"auth":"ZmF1bHRzOmZhdWx0cw=="}}}'`,
          `sshKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH${'abc'[key] ?? 'a'}Xk2b4nQ2vN0rT3mB6yqW8eR1tY5uI7oP9aS0dF1gH user"`,
          `stopLocalRegistry: ${stopRegistry}`,
          ...['build:', '  ignition: embedded', '  baseIso: base.iso', ...SIGNATURE_LINES],
          ...[`  concurrency: ${lanes}`, '  registriesConf: registries.conf'],
          '',
        ].join('\n'),
      );
    },
    close: () => registry.close(),
  };
}

/** The registry's name stays in every input; where it is asked does not reach the media. */
const registriesConf = (name: string, host: string): string =>
  `[[registry]]\nprefix = "${name}"\nlocation = "${host}"\ninsecure = true\n`;

export const chooseInputs = (random: Random): Inputs => ({
  key: random.below(3),
  base: random.below(2),
  stopRegistry: random.chance(0.5),
});

/** A small disk, to be filled while a build writes to it. */
export type Disk = {
  /** Takes all the room that is left. */
  readonly fill: () => void;
  readonly clear: () => void;
  readonly unmount: () => void;
};

/** A disk of 64 MiB below a folder; undefined where this process may not mount. */
export function mountDisk(folder: string): Disk | undefined {
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'none', folder], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  const filler = join(folder, 'filler');
  return {
    fill() {
      const file = openSync(filler, 'w');
      try {
        for (;;) writeSync(file, Buffer.alloc(64 * KIB));
      } catch {
        closeSync(file); // it is full
      }
    },
    clear: () => {
      rmSync(filler, { force: true });
    },
    unmount() {
      execFileSync('umount', ['--lazy', folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
