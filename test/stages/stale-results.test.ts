import { cpSync, openSync, writeSync, closeSync, statSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../src/base/digest.ts';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import { runProgram } from '../../src/cli/program.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { buildDistributionImage } from '../support/registry-images.ts';
import { buildLayeredImage } from '../support/release.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

/** An installer whose result is random, and which counts how often it ran. */
const installer = (word: string, runs: string): string =>
  [
    '#!/bin/sh',
    `echo ran >> ${runs}`,
    'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
    'id=$(cat /proc/sys/kernel/random/uuid)',
    `echo "{\\"ignition\\":{\\"version\\":\\"3.2.0\\"},\\"storage\\":{\\"files\\":[{\\"path\\":\\"/etc/id\\",\\"contents\\":{\\"source\\":\\"data:,${word}-$id\\"}},{\\"path\\":\\"/etc/assisted/manifests/infraenv.yaml\\",\\"contents\\":{\\"source\\":\\"data:,kind:%20InfraEnv\\"}}]}}" > "$dir/unconfigured-agent.ign"`,
  ].join('\n');

describe.skipIf(!hasTools)('a build in a work directory that was used before', () => {
  let world: LiveWorld;
  const at = (...names: string[]): string => join(world.directory, ...names);
  beforeAll(async () => {
    world = await createLiveWorld();
    await copyFile(at('test.iso'), at('base.iso'));
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    await rm(at('.sealift'), { recursive: true, force: true });
    await rm(at('runs'), { force: true });
    await copyFile(at('test.iso'), at('base.iso'));
    await age('base.iso');
    await writeFile(at('openshift-install'), installer('one', at('runs')), { mode: 0o755 });
    await age('openshift-install');
  });

  /** The disk tells times only so finely: what was written just now could be written again. */
  const age = (name: string): Promise<void> => utimes(at(name), 1_000_000_000, 1_000_000_000);

  const configure = (): Promise<void> =>
    world.writeConfig('  installer: openshift-install', '  baseIso: base.iso');
  const build = async (...args: string[]): Promise<string> => {
    await rm(at('x.iso'), { force: true });
    const outcome = await world.run('build', '--output', 'x.iso', ...args);
    expect(outcome.exitCode, outcome.stderr).toBe(0);
    return digestFile(at('x.iso'));
  };
  const countRuns = async (): Promise<number> =>
    (await readFile(at('runs'), 'utf8')).split('\n').length - 1;
  const INSTALLER = ['--ignition', 'installer'];

  /** In place, as `coreos-installer iso ignition embed` does. */
  function editBase(offset: number): void {
    const file = openSync(at('base.iso'), 'r+');
    writeSync(file, Buffer.from('EDIT'), 0, 4, offset);
    closeSync(file);
  }

  async function findInBase(text: string): Promise<number> {
    return (await readFile(at('base.iso'))).indexOf(text);
  }

  it('runs an installer that was replaced, and finds the earlier result when it is put back', async () => {
    await configure();
    const first = await build(...INSTALLER);
    expect(await build(...INSTALLER)).toBe(first);
    expect(await countRuns()).toBe(1);
    const bytes = await readFile(at('openshift-install'));
    await writeFile(at('openshift-install'), installer('two', at('runs')));
    expect(await build(...INSTALLER)).not.toBe(first);
    expect(await countRuns()).toBe(2);
    await writeFile(at('openshift-install'), bytes);
    expect(await build(...INSTALLER)).toBe(first);
    expect(await countRuns()).toBe(2);
  });

  it('does not run an installer again that was only touched or moved', async () => {
    await configure();
    const first = await build(...INSTALLER);
    await utimes(at('openshift-install'), 1, 1);
    expect(await build(...INSTALLER)).toBe(first);
    await rename(at('openshift-install'), at('moved-install'));
    await world.writeConfig('  installer: moved-install', '  baseIso: base.iso');
    expect(await build(...INSTALLER)).toBe(first);
    expect(await countRuns()).toBe(1);
  });

  it('uses the current bytes of a base ISO that was edited in place', async () => {
    await configure();
    const first = await build();
    const offset = await findInBase('an initramfs');
    editBase(offset);
    const second = await build();
    expect(second).not.toBe(first);
    expect((await readFile(at('x.iso'))).toString('latin1', offset, offset + 12)).toBe(
      'EDITnitramfs',
    );
    await rm(at('.sealift'), { recursive: true });
    expect(await build()).toBe(second);
  });

  it('does not scan a base ISO again that was only touched', async () => {
    await configure();
    const first = await build();
    await utimes(at('base.iso'), 1, 1);
    await rm(at('x.iso'));
    const { stderr } = await world.run('build', '--output', 'x.iso');
    expect(stderr).toContain('scan base ISO: unchanged, reused');
    expect(await digestFile(at('x.iso'))).toBe(first);
  });

  it.each([
    ['a small file', 'an initramfs', 'iso.base-changed'],
    ['a file that is poured', 'FAT12', 'base-iso.changed'],
  ])(
    'refuses a base ISO whose remembered digest is wrong for %s, and the next build uses its current bytes',
    async (_what, text, code) => {
      await configure();
      await build();
      const before = await digestFile(at('base.iso'));
      editBase((await findInBase(text)) + 4);
      const { size, mtimeMs, ctimeMs, ino } = statSync(at('base.iso'));
      const stamp = { size, modified: mtimeMs, changed: ctimeMs, inode: ino };
      const name = `${hexOf(digestOf(at('base.iso'))).slice(0, 32)}.json`;
      await mkdir(at('.sealift', 'cache', 'digests'), { recursive: true });
      const entry = JSON.stringify({ stamp, digest: before });
      await writeFile(at('.sealift', 'cache', 'digests', name), entry);
      await rm(at('x.iso'));
      const outcome = await world.run('build', '--output', 'x.iso');
      expect(outcome.exitCode, outcome.stderr).toBe(5);
      expect(outcome.stderr).toContain(code);
      expect(outcome.stderr).toContain('hint: run the same command again');
      expect(await hasFile(at('x.iso'))).toBe(false);
      const second = await build();
      await rm(at('.sealift'), { recursive: true });
      expect(await build()).toBe(second);
    },
  );

  it('refuses a base ISO that is edited while the build runs', async () => {
    await configure();
    const offset = await findInBase('FAT12');
    const host = world.host();
    let text = '';
    let isEdited = false;
    host.stderr.on('data', (piece: Buffer) => {
      text += piece.toString();
      if (isEdited || !/stage-done[^\n]*scan base ISO|scan base ISO[^\n]*stage-done/.test(text)) {
        return;
      }
      isEdited = true;
      editBase(offset + 4);
    });
    host.stdout.resume();
    await rm(at('x.iso'), { force: true });
    const args = ['build', '--output', 'x.iso', '--log-format', 'json'];
    expect(await runProgram(args, host), text).toBe(5);
    expect(text).toContain('base-iso.changed');
    expect(await hasFile(at('x.iso'))).toBe(false);
    await build();
  });

  describe('compared with a clean build', () => {
    const image = (): string => `${world.registry.host}/team/tool:1`;
    const server = (): string => `${world.registry.host}/team/registry:2`;
    /** For every setting, a configuration in which it is another than in the others. */
    const changes: readonly (readonly [string, () => Change])[] = [
      [
        'sshKey',
        () => ({
          head: [
            'sshKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIISTX3LCNOY4BXACjLBvmWv0enV8idA15Muu90cuDhYA me',
          ],
        }),
      ],
      ['userCorePass', () => ({ head: ['userCorePass: hunter2'] })],
      ['imageRegistry', () => ({ head: [`imageRegistry: {uri: "${server()}"}`] })],
      ['enableDefaultSources', () => ({ head: ['enableDefaultSources: true'] })],
      ['enableFips', () => ({ head: ['enableFips: true'] })],
      ['stopLocalRegistry', () => ({ head: ['stopLocalRegistry: true'] })],
      ['skipLocalRegistry', () => ({ head: ['skipLocalRegistry: true'] })],
      ['createPinnedImageSets', () => ({ head: ['createPinnedImageSets: true'] })],
      ['enableInteractiveFlow', () => ({ flow: 'false' })],
      ['additionalImages', () => ({ head: [`additionalImages: [{name: "${image()}"}]`] })],
      [
        'blockedImages',
        () => ({
          head: [
            `additionalImages: [{name: "${image()}"}]`,
            `blockedImages: [{name: "team/tool"}]`,
          ],
          isSame: true,
        }),
      ],
      ['build.kernelArguments', () => ({ build: ['  kernelArguments: ["console=ttyS0"]'] })],
      ['build.embed', () => ({ build: ['  embed: {pullSecret: file:hosts.json}'] })],
      ['build.baseIso', () => ({ build: ['  baseIso: other.iso'] })],
      ['build.registryData', () => ({ build: ['  registryData: medium'], flow: 'false' })],
      ['build.disableImagePolicy', () => ({ build: ['  disableImagePolicy: true'] })],
      ['build.ignitionArea', () => ({ build: ['  ignitionArea: 2MiB'] })],
      ['build.ignition', () => ({ args: INSTALLER, build: ['  installer: openshift-install'] })],
      [
        'build.nmstate',
        () => ({
          args: INSTALLER,
          build: ['  installer: openshift-install', '  nmstate: nmstate.yaml'],
        }),
      ],
      ['SOURCE_DATE_EPOCH', () => ({ env: { SOURCE_DATE_EPOCH: '1700000000' } })],
      ['openshift/*.yaml', () => ({ manifest: 'kind: A\nmetadata: {name: a}\n' })],
    ];
    type Change = {
      readonly head?: readonly string[];
      readonly build?: readonly string[];
      readonly flow?: string;
      readonly args?: readonly string[];
      readonly env?: NodeJS.ProcessEnv;
      readonly manifest?: string;
      /** The setting leaves out again what another one adds. */
      readonly isSame?: boolean;
    };

    async function apply({ head = [], build = [], flow, manifest }: Change): Promise<void> {
      await world.writeConfig(...build, ...head);
      const path = at('appliance-config.yaml');
      const text = await readFile(path, 'utf8');
      const settled = text.replace(
        /^enableInteractiveFlow: .*$/m,
        `enableInteractiveFlow: ${flow ?? 'true'}`,
      );
      await writeFile(path, settled);
      await rm(at('openshift'), { recursive: true, force: true });
      if (manifest === undefined) return;
      await mkdir(at('openshift'));
      await writeFile(at('openshift', 'a.yaml'), `apiVersion: v1\n${manifest}`);
    }

    async function buildIn(workDir: string, { args = [], env = {} }: Change): Promise<string> {
      await rm(at('x.iso'), { force: true });
      const host = world.host();
      host.stdout.resume();
      let stderr = '';
      host.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()));
      const exitCode = await runProgram(
        ['build', '--output', 'x.iso', '--work-dir', workDir, ...args],
        { ...host, env: { ...host.env, ...env } },
      );
      expect(exitCode, stderr).toBe(0);
      return digestFile(at('x.iso'));
    }

    it('gives the same bytes after a change of any setting', { timeout: 600_000 }, async () => {
      world.registry.add('team/registry', await buildDistributionImage(), '2');
      world.registry.add('team/tool', await buildLayeredImage([[['usr/bin/tool', 'a tool']]]), '1');
      await writeFile(at('hosts.json'), '{"auths":{"hosts.example":{"auth":"YTpi"}}}');
      await writeFile(
        at('nmstate.yaml'),
        `kind: NMStateConfig
spec:
  config: {interfaces: [{name: eth0}]}
  interfaces: [{name: eth0, macAddress: '52:54:00:00:00:01'}]
`,
      );
      await copyFile(at('base.iso'), at('other.iso'));
      const offset = await findInBase('an initramfs');
      const other = openSync(at('other.iso'), 'r+');
      writeSync(other, Buffer.from('OTHER'), 0, 5, offset);
      closeSync(other);
      await apply({});
      const plain = await buildIn('warm', {});
      for (const [name, describeChange] of changes) {
        const change = describeChange();
        await apply(change);
        const warm = await buildIn('warm', change);
        if (change.isSame !== true) expect(warm, name).not.toBe(plain);
        // What is drawn at random belongs to the inputs, not to what was built before.
        await mkdir(at('clean', 'stages'), { recursive: true });
        await copyFile(at('warm', 'seal.key'), at('clean', 'seal.key'));
        if (await hasFile(at('warm', 'stages', 'drawn'))) {
          cpSync(at('warm', 'stages', 'drawn'), at('clean', 'stages', 'drawn'), {
            recursive: true,
          });
        }
        expect(await buildIn('clean', change), name).toBe(warm);
        await rm(at('clean'), { recursive: true });
      }
      await apply({});
      expect(await buildIn('warm', {})).toBe(plain);
    });

    it('is tried with every setting of the schema', async () => {
      const schema = JSON.parse(
        await readFile('schema/appliance-config.schema.json', 'utf8'),
      ) as Schema;
      const { build, ...rest } = schema.properties;
      const names = [
        ...Object.keys(rest),
        ...Object.keys(build?.properties ?? {}).map((name) => `build.${name}`),
      ];
      const covered = new Set([...changes.map(([name]) => name), ...ELSEWHERE]);
      expect(names.filter((name) => !covered.has(name))).toEqual([]);
    });

    type Schema = {
      readonly properties: Readonly<
        Record<string, { readonly properties?: Readonly<Record<string, unknown>> }>
      >;
    };

    /** What says nothing about the bytes of the ISO, or has tests of its own. */
    const ELSEWHERE = [
      ...['apiVersion', 'kind', 'metadata', 'diskSizeGB', 'mirrorPath', 'pullSecret'],
      ...['ocpRelease', 'operators', 'useDefaultSourceNames', 'disableSigstoreRegistries'],
      ...['build.baseIsoSha256', 'build.caBundle', 'build.registriesConf', 'build.concurrency'],
      ...[
        'build.insecureRegistries',
        'build.allArchitectures',
        'build.maxSize',
        'build.installer',
        'build.retryFor',
        'build.signatures',
        'build.signatureKeys',
        'build.allowUnsigned',
      ],
    ];
  });

  it('checks build.maxSize each time', async () => {
    await configure();
    await build();
    await world.writeConfig('  baseIso: base.iso', '  maxSize: 1MiB');
    const outcome: Outcome = await world.run('build', '--output', 'y.iso');
    expect(outcome.exitCode).toBe(3);
  });
});
