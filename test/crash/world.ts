import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open, copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { siteTree } from '../support/config-iso-world.ts';
import { startSealift } from '../support/child.ts';
import { makeCoreosIso } from '../support/iso.ts';
import { writeMinimalRecipe } from '../support/minimal-recipe.ts';
import { writeInstallationConfig } from '../support/installation-iso.ts';
import { makeMetalImage } from '../support/metal-image.ts';
import { createLiveWorld } from '../support/live-iso.ts';
import { startPlainRegistry } from '../support/plain-registry.ts';
import { writeTree } from '../support/site-archives.ts';
import { listRows, type Row } from './rows.ts';

export type CrashWorld = {
  readonly rows: readonly Row[];
  /** A folder with the inputs of a row. */
  readonly prepare: (row: Row) => string;
  readonly close: () => Promise<void>;
};

const IMAGESET = `apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform: {channels: [{name: stable-4.20, minVersion: 4.20.3, maxVersion: 4.20.3}]}
`;

/** The inputs of every command of the table, and the registries that they talk to. */
export async function createCrashWorld(): Promise<CrashWorld> {
  const world = await createLiveWorld();
  const { directory } = world;
  const at = (name: string): string => join(directory, name);
  const registry = await startPlainRegistry(at('registry'));
  const done = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await startSealift(args, { cwd: directory }).ended;
    if (code !== 0) throw new Error(`${args.join(' ')}:\n${stderr}`);
  };
  const build = (output: string, ...more: string[]): Promise<void> =>
    done('build', '--output', output, '--base-iso', 'test.iso', ...more);
  await world.writeConfig('  kernelArguments: [debug]', 'stopLocalRegistry: true');
  await makeMetalImage(directory);
  await build('tuesday.iso');
  await copyFile(at('appliance-config.yaml'), at('tuesday.yaml'));
  await world.writeConfig();
  const config = readFileSync(at('appliance-config.yaml'), 'utf8');
  const flow = 'enableInteractiveFlow: true\n'; // an upgrade ISO is for clusters without it
  writeFileSync(at('upgrade.yaml'), config.replace(flow, ''));
  await build('monday.iso', '--cache', 'cache');
  const past = new Date(Date.now() - 3_600_000); // a blob that was just used stays
  for (const name of readdirSync(at('cache/sha256')))
    utimesSync(at(`cache/sha256/${name}`), past, past);
  await done('delta', 'monday.iso', 'tuesday.iso', '--output', 'night.delta');
  await done('customize', 'monday.iso', '--kargs-append', 'quiet', '--output', 'customised.iso');
  const parts = ['--output', 'parts.delta', '--max-part-size', '1MiB'];
  await done('delta', 'monday.iso', 'tuesday.iso', ...parts);
  cpSync(at('cache'), at('rotten'), { recursive: true });
  const [rotten = ''] = readdirSync(at('rotten/sha256'));
  writeFileSync(at(`rotten/sha256/${rotten}`), 'other bytes');
  await makeFull(directory);
  await done('push', 'monday.iso', `oci://${registry.host}/m/iso:1`);
  await writeInstallationConfig(directory);
  writeTree(at('sites'), {
    ...siteTree('alpha', { number: 1 }),
    ...siteTree('beta', { number: 2 }),
  });
  await done('config-iso', 'build', 'sites', '--out', 'keys');
  for (const name of readdirSync(at('keys'))) if (name.endsWith('.iso')) rmSync(at(`keys/${name}`));
  writeFileSync(at('imageset.yaml'), IMAGESET);
  writeFileSync(at('serve.key'), '0123456789abcdef'.repeat(4), { mode: 0o600 });
  writeFileSync(at('new.key'), 'fedcba9876543210'.repeat(4), { mode: 0o600 });
  await done('serve', 'rekey', '--data', 'records', '--key', 'file:serve.key');
  await damage(at('tuesday.iso'), at('damaged.iso'));
  const templates = at('rows');
  mkdirSync(templates);
  return {
    rows: listRows({ registry: registry.host }),
    prepare(row) {
      const folder = join(templates, row.name.replaceAll(/\W+/g, '-'));
      mkdirSync(folder);
      for (const input of row.inputs) {
        const [from = '', to = from] = input.split(':');
        mkdirSync(dirname(join(folder, to)), { recursive: true });
        execFileSync('cp', ['-a', '--reflink=auto', at(from), join(folder, to)]);
      }
      return folder;
    },
    async close() {
      await registry.close();
      await world.close();
    },
  };
}

/** `full.iso`: a live ISO of CoreOS that has the recipe of its minimal ISO. */
async function makeFull(directory: string): Promise<void> {
  const [whole, rest] = ['whole', 'rest'].map((name) => join(directory, name));
  for (const folder of [whole, rest]) mkdirSync(folder ?? '');
  const full = await makeCoreosIso(whole ?? '', { files: { 'coreos/miniso.dat': 131_072 } });
  const without = ['images/pxeboot/rootfs.img', 'coreos/miniso.dat'];
  await writeMinimalRecipe(full, await makeCoreosIso(rest ?? '', { without }));
  await copyFile(full, join(directory, 'full.iso'));
}

/** Other bytes at some places of an ISO, and its last ones lost. */
async function damage(from: string, to: string): Promise<void> {
  cpSync(from, to);
  const file = await open(to, 'r+');
  const { size } = await file.stat();
  for (const share of [0.3, 0.6, 0.9]) {
    await file.write(Buffer.from('damaged!'), 0, 8, Math.floor(size * share));
  }
  await file.truncate(size - 5000);
  await file.close();
}
