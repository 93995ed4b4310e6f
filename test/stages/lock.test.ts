import { cp, mkdir, open, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import type { MediaIndex } from '../../src/media/media-index.ts';
import { INDEX_PATH } from '../../src/media/media-index.ts';
import { readLock, type Lock } from '../../src/stages/resolved/record.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { buildLayeredImage } from '../support/release.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);
const LOCK = 'sealift.lock.json';

describe.skipIf(!hasTools)('a lock', () => {
  let world: LiveWorld;
  const at = (...names: readonly string[]): string => join(world.directory, ...names);
  const tool = (name: string): string => `${world.registry.host}/team/${name}:1`;
  const image = (name: string): string => `additionalImages: [{name: "${tool(name)}"}]`;

  async function addTool(name: string, seed: string): Promise<void> {
    const content = Buffer.alloc(40_000, seed).toString();
    world.registry.add('team/' + name, await buildLayeredImage([[['usr/bin/x', content]]]), '1');
  }

  /** A folder with what a build reads, but for its work directory. */
  async function copyInputs(folder: string, ...others: readonly string[]): Promise<void> {
    await mkdir(at(folder), { recursive: true });
    for (const name of [
      'appliance-config.yaml',
      'release-signatures',
      'release-keys.gpg',
      ...others,
    ]) {
      await cp(at(name), at(folder, name), { recursive: true });
    }
  }
  const buildIn = (folder: string, ...args: readonly string[]): Promise<Outcome> =>
    world.run(
      'build',
      join(folder, 'appliance-config.yaml'),
      '--output',
      join(folder, 'x.iso'),
      ...args,
    );
  const changeLock = async (change: (lock: Lock) => object): Promise<void> => {
    const lock = JSON.parse(await readFile(at(LOCK), 'utf8')) as Lock;
    await writeFile(at('changed', LOCK), JSON.stringify({ ...lock, ...change(lock) }));
  };

  /** Draws a value at random, as the release's own does. */
  async function writeInstaller(): Promise<void> {
    const id = '"source":"data:,\'"$(cat /proc/sys/kernel/random/uuid)"\'"';
    const script = [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      `echo '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/id","contents":{${id}}}]}}' > "$dir/unconfigured-agent.ign"`,
    ];
    await writeFile(at('installer'), script.join('\n'), { mode: 0o755 });
  }

  beforeAll(async () => {
    world = await createLiveWorld();
    for (const name of ['tool', 'other', 'more']) await addTool(name, name);
  });
  afterAll(() => world.close());

  it('is written only on request, and is updated by each build if it exists', async () => {
    await world.writeConfig(image('tool'));
    const plain = await world.run('build', '--output', 'plain.iso');
    expect(plain.exitCode, plain.stderr).toBe(0);
    expect(await hasFile(at(LOCK))).toBe(false);
    const asked = await world.run('build', '--lock', '--output', 'asked.iso');
    expect(asked.exitCode, asked.stderr).toBe(0);
    expect(Object.keys(readLock(at(LOCK))?.tags ?? {})).toContain(tool('tool'));
    await world.writeConfig(image('other'));
    const again = await world.run('build', '--output', 'again.iso');
    expect(again.exitCode, again.stderr).toBe(0);
    expect(Object.keys(readLock(at(LOCK))?.tags ?? {})).toContain(tool('other'));
    expect(await hasFile(at('sealift.lock.secrets'))).toBe(false); // nothing was drawn
    await rm(at(LOCK));
  });

  it('gives the same bytes in another folder, time zone, locale and umask, and over the ISO of another night', async () => {
    const run = async (folder: string, ...args: readonly string[]): Promise<void> => {
      const env = folder === 'b' ? { TZ: 'Asia/Tokyo', LC_ALL: 'tr_TR.UTF-8' } : { TZ: 'UTC' };
      const umask = folder === 'b' ? '077' : '022';
      const { ended } = startSealift(args, { cwd: at(folder), env, umask });
      const { code, stderr } = await ended;
      expect(code, stderr).toBe(0);
    };
    await world.writeConfig(
      `additionalImages: [{name: "${tool('tool')}"}, {name: "${tool('more')}"}]`,
    );
    await copyInputs('a');
    await run('a', 'lock');
    await run('a', 'build', '--locked', '--output', 'x.iso');
    const first = await digestFile(at('a', 'x.iso'));
    expect(Object.keys(readLock(at('a', LOCK))?.tags ?? {})).toContain(tool('more'));
    // Another night, whose places are others.
    await world.writeConfig(
      `additionalImages: [{name: "${tool('other')}"}, {name: "${tool('more')}"}]`,
    );
    await copyInputs('b');
    await run('b', 'build', '--output', 'x.iso');
    for (const name of ['x.iso', 'x.iso.report.json']) {
      await cp(at('b', name), at('b', name.replace('x.iso', 'y.iso')));
    }
    await cp(at('a', 'appliance-config.yaml'), at('b', 'appliance-config.yaml'));
    await run('b', 'build', '--output', 'y.iso');
    expect(await digestFile(at('b', 'y.iso'))).not.toBe(first); // it has the places of that night
    await cp(at('a', LOCK), at('b', LOCK));
    await run('b', 'build', '--locked', '--output', 'x.iso');
    expect(await digestFile(at('b', 'x.iso'))).toBe(first);
    expect(await readFile(at('b', LOCK), 'utf8')).toBe(await readFile(at('a', LOCK), 'utf8'));
  });

  it('is all that a build needs to resolve: neither tags nor the update graph are asked', async () => {
    await world.writeConfig(image('tool'));
    await rm(at(LOCK), { force: true });
    expect((await world.run('lock', '-o', 'json')).exitCode).toBe(0);
    const plain = await world.run('build', '--locked', '--output', 'before.iso');
    expect(plain.exitCode, plain.stderr).toBe(0);
    await addTool('tool', 'moved');
    world.registry.breakPath('/v2/team/tool/manifests/1', 403);
    const config = await readFile(at('appliance-config.yaml'), 'utf8');
    await mkdir(at('changed'), { recursive: true });
    await writeFile(at('appliance-config.yaml'), config.replace(/^ {2}url: .*\n/m, ''));
    world.env['UPDATE_URL_OVERRIDE'] = 'http://127.0.0.1:1/graph';
    await copyInputs('changed', LOCK);
    const locked = await buildIn('changed', '--locked');
    delete world.env['UPDATE_URL_OVERRIDE'];
    world.registry.breakPath('/v2/team/tool/manifests/1');
    expect(locked.exitCode, locked.stderr).toBe(0);
    expect(await digestFile(at('changed', 'x.iso'))).toBe(await digestFile(at('before.iso')));
    const over = await world.run('build', '--locked', '--force', '--output', LOCK);
    expect([over.exitCode, over.stderr]).toEqual([2, expect.stringContaining('output.is-input')]);
  });

  it('holds a build to its places, and names the first that cannot be kept', async () => {
    await world.writeConfig(image('tool'));
    await rm(at(LOCK), { force: true });
    expect((await world.run('lock')).exitCode).toBe(0);
    const lock = await readFile(at(LOCK), 'utf8');
    for (const place of [String(2 ** 50), '1']) {
      await writeFile(at(LOCK), lock.replace(/("sha256:[0-9a-f]{64}": )\d+/, `$1${place}`));
      const { exitCode, stderr } = await world.run('build', '--locked', '--output', 'placed.iso');
      expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/places\.offsets\["sha256:/)]);
      expect(await hasFile(at('placed.iso'))).toBe(false);
    }
    const { places, ...without } = JSON.parse(lock) as {
      readonly places: { readonly offsets: Readonly<Record<string, number>> };
    };
    const [, ...offsets] = Object.entries(places.offsets);
    const fewer = { ...places, offsets: Object.fromEntries(offsets) };
    for (const edited of [without, { ...without, places: fewer }]) {
      await writeFile(at(LOCK), JSON.stringify(edited));
      const { exitCode, stderr } = await world.run('build', '--locked', '--output', 'placed.iso');
      expect([exitCode, stderr]).toEqual([
        3,
        expect.stringMatching(/places\.(areas|offsets\["sha256:)/),
      ]);
    }
    await writeFile(at(LOCK), lock);
  });

  it('replaces no other file and no link', async () => {
    await world.writeConfig(image('tool'));
    await writeFile(at('package-lock.json'), '{"lockfileVersion":3}');
    await symlink('appliance-config.yaml', at('link.json'));
    for (const name of ['package-lock.json', 'appliance-config.yaml', 'link.json']) {
      const before = await readFile(at(name), 'utf8');
      const { exitCode, stderr } = await world.run('lock', '--lock-file', name);
      expect([exitCode, stderr]).toEqual([3, expect.stringContaining('lock.malformed')]);
      expect(await readFile(at(name), 'utf8')).toBe(before);
    }
    await symlink('nothing.json', at('dangling.json'));
    const { exitCode, stderr } = await world.run('lock', '--lock-file', 'dangling.json');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('output.link')]);
  });

  it.each(['--lock', '--locked', '--lock-file=a'])(
    'is not ignored if %s is given before another product',
    async (option) => {
      const { exitCode, stderr } = await world.run('build', option, 'upgrade-iso');
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('usage.other-product')]);
      expect(stderr).toContain(`put ${option.replace(/=.*/, '')} after the name`);
    },
  );

  it.each([
    ['program', (lock: Lock) => ({ program: lock.contents })],
    ['release.channel', (lock: Lock) => ({ release: { ...lock.release, channel: 'fast' } })],
    ['release.version', (lock: Lock) => ({ release: { ...lock.release, version: '4.21.2' } })],
    ['base.digest', (lock: Lock) => ({ base: { digest: lock.contents } })],
    ['images["', (lock: Lock) => ({ images: lock.images.slice(1) })],
    ['installer.digest', (lock: Lock) => ({ installer: { digest: lock.contents } })],
    ['signatures["4.21.3"].key', (lock: Lock) => ({ signatures: changeKeys(lock) })],
    ['tags["', () => ({ tags: {} })],
    ['drawn["run installer"]', (lock: Lock) => ({ drawn: { 'run installer': lock.contents } })],
  ])('ends the build with the name of a field that differs: %s', async (field, change) => {
    await world.writeConfig(image('tool'));
    await copyInputs('changed');
    if (!(await hasFile(at(LOCK)))) expect((await world.run('lock')).exitCode).toBe(0);
    await changeLock(change);
    const { exitCode, stderr } = await buildIn('changed', '--locked', '--force');
    expect(stderr).toContain(`lock.mismatch`);
    expect(stderr).toContain(field);
    expect(exitCode).toBe(3);
  });

  it('is refused with the name of the field if no registry has its digest', async () => {
    await world.writeConfig(image('tool'));
    await copyInputs('changed');
    const gone = `sha256:${'0'.repeat(64)}`;
    await changeLock(({ tags }) => ({ tags: { ...tags, [tool('tool')]: gone } }));
    const { exitCode, stderr } = await buildIn('changed', '--locked');
    expect(exitCode).toBe(4);
    expect(stderr).toContain('lock.gone');
    expect(stderr).toContain(`tags["${tool('tool')}"] is ${gone}, which no longer exists`);
  });

  it('has digests of randomly drawn values; elsewhere, a build needs the secrets next to it', async () => {
    await writeInstaller();
    await world.writeConfig('  installer: installer', 'userCorePass: hunter2');
    await rm(at(LOCK), { force: true });
    const locked = await world.run('lock', '--ignition', 'installer');
    expect(locked.exitCode, locked.stderr).toBe(0);
    expect((await stat(at('sealift.lock.secrets'))).mode & 0o777).toBe(0o600);
    const { drawn } = readLock(at(LOCK)) ?? {};
    expect(Object.keys(drawn ?? {})).toEqual(['draw password salt', 'run installer']);
    const text = await readFile(at(LOCK), 'utf8');
    const secrets = JSON.parse(await readFile(at('sealift.lock.secrets'), 'utf8')) as {
      readonly drawn: Record<string, { readonly value: string }>;
    };
    for (const { value } of Object.values(secrets.drawn)) expect(text).not.toContain(value);
    expect(text).not.toMatch(/hunter2|secret-word|dXNlcjpz/);

    const args = ['--locked', '--ignition', 'installer'];
    await copyInputs('c', LOCK, 'installer');
    const unheard: unknown[] = [];
    const hear = (reason: unknown): number => unheard.push(reason);
    process.on('unhandledRejection', hear);
    const without = await buildIn('c', ...args);
    await setImmediate();
    process.off('unhandledRejection', hear);
    expect(unheard, 'rejections that nobody waits for').toEqual([]);
    expect(without.exitCode).toBe(3);
    expect(without.stderr).toContain('lock.secrets-missing');
    expect(without.stderr).toContain('put the sealift.lock.secrets');
    await cp(at('sealift.lock.secrets'), at('c', 'sealift.lock.secrets'));
    const there = await buildIn('c', ...args);
    expect(there.exitCode, there.stderr).toBe(0);
    const here = await world.run('build', '--output', 'here.iso', ...args);
    expect(here.exitCode, here.stderr).toBe(0);
    expect(await digestFile(at('c', 'x.iso'))).toBe(await digestFile(at('here.iso')));

    await world.writeConfig('  installer: installer', 'userCorePass: hunter3');
    await copyInputs('c');
    const other = await buildIn('c', ...args);
    expect(other.exitCode).toBe(3);
    expect(other.stderr).toContain('drawn["draw password salt"] differs from the lock');
  });

  it('with encrypted secrets of an earlier version is refused and stays as it is', async () => {
    await world.writeConfig(image('tool'));
    await copyInputs('sealed');
    const text = JSON.stringify({ kind: 'SealiftLock', format: 1, secrets: 'AAAA' });
    await writeFile(at('sealed', LOCK), text);
    const config = join('sealed', 'appliance-config.yaml');
    for (const args of [
      ['lock', config],
      ['build', config, '--lock', '--output', 'sealed/x.iso'],
      ['build', config, '--locked', '--output', 'sealed/x.iso'],
    ]) {
      const { exitCode, stderr } = await world.run(...args);
      expect([args, exitCode, stderr]).toEqual([
        ...[args, 3],
        expect.stringMatching(
          /\[lock\.secrets-encrypted\][^]*hint: remove the lock, run "sealift lock"/,
        ),
      ]);
    }
    expect(await readFile(at('sealed', LOCK), 'utf8')).toBe(text);
    expect(await hasFile(at('sealed', 'sealift.lock.secrets'))).toBe(false);
  });

  it('reproduces a whole ISO with its secrets, and all but rendered files without them', async () => {
    await writeInstaller();
    await world.writeConfig('  installer: installer', 'userCorePass: hunter2');
    await rm(at('sealift.lock.secrets'), { force: true });
    await rm(at(LOCK), { force: true });
    const built = await world.run(
      'build',
      '--lock',
      '--ignition',
      'installer',
      '--output',
      'r.iso',
    );
    expect(built.exitCode, built.stderr).toBe(0);
    await copyInputs('again', LOCK, 'sealift.lock.secrets', 'installer');
    const reproduce = async (...args: readonly string[]): Promise<Outcome> =>
      world.run(
        ...['reproduce', 'r.iso', '--config', join('again', 'appliance-config.yaml'), '-o', 'json'],
        ...['--ignition', 'installer', '--work-dir', `again/work-${args.length}`, ...args],
      );
    const resultOf = ({ stdout }: Outcome): unknown =>
      (JSON.parse(stdout) as { readonly result: string }).result;
    const lock = ['--lock', join('again', LOCK)];
    const whole = await reproduce(...lock);
    expect([whole.exitCode, whole.stderr]).toEqual([0, expect.any(String)]);
    expect(resultOf(whole)).toBe('equal');
    await rm(at('again', 'sealift.lock.secrets'));
    await rm(at('again', `work-${lock.length}`), { recursive: true });
    for (const args of [lock, []]) {
      const part = await reproduce(...args);
      expect([part.exitCode, resultOf(part)], part.stdout).toEqual([0, 'equal-as-compared']);
    }
    const index = JSON.parse((await world.run('cat', 'r.iso', INDEX_PATH)).stdout) as MediaIndex;
    const { areas } = index;
    const blob = index.extents.find(({ offset }) => areas && offset >= areas.smallBlobs);
    const file = await open(at('r.iso'), 'r+');
    await file.write('other', blob?.offset);
    await file.close();
    const changed = await reproduce();
    expect([changed.exitCode, resultOf(changed)]).toEqual([8, 'different']);
    expect(JSON.parse(changed.stdout)).toMatchObject({
      differences: [{ part: 'blobs', offset: blob?.offset, size: blob?.size, paths: blob?.paths }],
    });
  });
});

const changeKeys = ({ signatures }: Lock): object =>
  Object.fromEntries(
    Object.entries(signatures).map(([version, one]) => [version, { ...one, key: 'F'.repeat(40) }]),
  );
