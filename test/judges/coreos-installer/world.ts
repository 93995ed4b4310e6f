import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect } from 'vitest';
import { makeBaseIso } from '../../../demo/base-iso.ts';
import type { Verification } from '../../../src/media/verify-contents.ts';
import { TEST_SSH_KEY, writeInstallationConfig } from '../../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import { buildLayeredImage } from '../../support/release.ts';
import { expectDone } from '../../support/two-nights.ts';
import { type Comparer, findJudge } from '../find-judge.ts';
import { readMeaning } from './meaning.ts';

const DATA = resolve('../shared/data/judged/coreos');

/** The program; undefined if it, or what was recorded of it, is missing. */
export const judge = existsSync(DATA) ? findJudge('coreos-installer') : undefined;

/** Site values as `customize --show` prints them. */
type Shown = {
  readonly customised: boolean;
  readonly ignition: { readonly networkFiles: readonly string[] };
  readonly kernelArguments?: { readonly now: string; readonly default: string };
};

type Answer = { readonly done: boolean; readonly stdout: string };

/** A folder with ISOs and the files of `inputs.json`, and both programs to run in it. */
export type JudgeWorld = LiveWorld & {
  readonly at: (name: string) => string;
  readonly sumOf: (name: string) => Promise<string>;
  /** Digests of the files in a folder, by name. */
  readonly sumsBelow: (folder: string) => Promise<Readonly<Record<string, string>>>;
  /** Runs the judge. */
  readonly ask: (...args: readonly string[]) => Answer;
  /** Runs sealift: true if it did what it was asked; a fault of it is neither that nor a refusal. */
  readonly did: (...args: readonly string[]) => Promise<boolean>;
  readonly show: (name: string) => Promise<Shown>;
  readonly verify: (name: string) => Promise<Verification>;
  /** Requires that both programs show the same kernel arguments, Ignition config and networks. */
  readonly requireSameShown: (
    name: string,
    about: string,
    comparer: Pick<Comparer, 'requireAgreement'>,
  ) => Promise<void>;
};

export async function createJudgeWorld(): Promise<JudgeWorld> {
  const live = await createLiveWorld();
  const at = (name: string): string => join(live.directory, name);
  const inputs = JSON.parse(readFileSync(join(DATA, 'inputs.json'), 'utf8')) as object;
  for (const [name, text] of Object.entries(inputs)) await writeFile(at(name), String(text));
  const ask: JudgeWorld['ask'] = (...args) => {
    const { status, stdout } = spawnSync(judge ?? '', args, {
      cwd: live.directory,
      env: { ...process.env, RUST_BACKTRACE: '0' }, // a trace of a refusal takes 0.2 s
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    return { done: status === 0, stdout };
  };
  const sumOf = async (name: string): Promise<string> =>
    createHash('sha256')
      .update(await readFile(at(name)))
      .digest('hex');
  const show = async (name: string): Promise<Shown> =>
    JSON.parse((await expectDone(live, 'customize', name, '--show', '-o', 'json')).stdout) as Shown;
  return {
    ...live,
    at,
    ask,
    show,
    sumOf,
    async sumsBelow(folder) {
      const names = await readdir(at(folder));
      const sums = names.map(async (name) => [name, await sumOf(join(folder, name))] as const);
      return Object.fromEntries(await Promise.all(sums));
    },
    async did(...args) {
      const { exitCode, stderr } = await live.run(...args);
      expect(stderr).not.toContain('bug');
      return exitCode === 0;
    },
    verify: async (name) =>
      JSON.parse((await live.run('verify', name, '-o', 'json')).stdout) as Verification,
    async requireSameShown(name, about, { requireAgreement }) {
      const { kernelArguments: kargs, ignition } = await show(name);
      for (const [flags, text] of [
        [[], kargs?.now],
        [['--default'], kargs?.default],
      ] as const) {
        const { done, stdout } = ask('iso', 'kargs', 'show', ...flags, name);
        requireAgreement(`${about}: kargs show`, text ?? null, done ? stdout.trim() : null);
      }
      const theirs = ask('iso', 'ignition', 'show', name);
      const ours = await live.run('ignition', 'show', name);
      requireAgreement(
        `${about}: ignition show`,
        ours.exitCode === 0 ? readMeaning(ours.stdout) : null,
        theirs.done ? readMeaning(theirs.stdout) : null,
      );
      const listed = ask('iso', 'network', 'extract', name).stdout.matchAll(/^#+ (\S+) #+$/gm);
      const own = ignition.networkFiles.filter((file) => !file.startsWith('/'));
      requireAgreement(`${about}: networks`, own, [...listed].map(([, file]) => file).sort());
    },
  };
}

/** Makes the base ISOs of the demo and of coreos-installer's own tests. @returns their names */
export async function makeBases({ at }: JudgeWorld): Promise<readonly string[]> {
  await makeBaseIso(at('demo.iso'), 70_000);
  const listed = JSON.parse(readFileSync(join(DATA, 'fixtures.json'), 'utf8')) as readonly {
    readonly fixture: string;
  }[];
  for (const { fixture } of listed) {
    const packed = join(DATA, 'iso', `${fixture}.iso.xz`);
    await writeFile(at(`${fixture}.iso`), execFileSync('xz', ['-dc', packed]));
  }
  return ['test.iso', 'demo.iso', ...listed.map(({ fixture }) => `${fixture}.iso`)];
}

/** Makes the minimal ISO of one of the bases. */
export async function makeMinimal(world: JudgeWorld): Promise<void> {
  const base = 'embed-areas-2022-09';
  await expectDone(world, 'extract', 'minimal-iso', `${base}.iso`, '--out', 'min');
  await copyFile(world.at(`min/${base}-minimal.iso`), world.at('minimal.iso'));
}

/**
 * Builds a live ISO, one with values of the build (`built.iso`), the last one customised (`custom.iso`),
 * installation ISOs without images (`ibi.iso`), customised (`site.iso`) and with images (`grown.iso`), and an
 * upgrade ISO.
 */
export async function makeProducts(world: JudgeWorld): Promise<void> {
  const { at, registry, release, directory } = world;
  const base = ['--base-iso', 'test.iso'];
  const done = (...args: readonly string[]) => expectDone(world, ...args);
  await world.writeConfig();
  const config = await readFile(at('appliance-config.yaml'), 'utf8');
  await writeFile(at('upgrade.yaml'), config.replace('enableInteractiveFlow: true\n', ''));
  await done('build', ...base, '--output', 'live.iso');
  await done('build', 'upgrade-iso', 'upgrade.yaml', '--output', 'upgrade.iso');
  await world.writeConfig(`sshKey: ${TEST_SSH_KEY}`);
  const kargs = ['--set', 'build.kernelArguments=["quiet"]'];
  await done('build', ...base, '--output', 'built.iso', ...kargs);
  const values = ['--kargs-append', 'c=d', '--network-keyfile', 'eth0.nmconnection'];
  const ntp = ['--ntp', 'ntp.example'];
  await done('customize', 'built.iso', ...ntp, ...values, '--output', 'custom.iso');
  const seedImage = `${registry.host}/edge/seed:4.21.3`;
  await writeInstallationConfig(directory, { sshKey: TEST_SSH_KEY, seedImage });
  await done('build', 'installation-iso', ...base, '--output', 'ibi.iso');
  await done('customize', 'ibi.iso', ...values, '--output', 'site.iso');
  const tools = { 'ostree.tgz': 'a tree', 'lca-cli': '#!/bin/sh\n', 'containers.list': '' };
  registry.add('edge/seed', await buildLayeredImage([Object.entries(tools)]), '4.21.3');
  await done(
    ...['build', 'installation-iso', ...base, '--output', 'grown.iso', '--embed-seed'],
    ...['--release', release.pullspec, '--insecure-registry', registry.host],
    ...['--signatures', 'release-signatures', '--signature-keys', 'release-keys.gpg'],
  );
}
