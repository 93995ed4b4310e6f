import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  lchownSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { nameHeld, openWorkDirectory } from '../../src/base/disk/work-directory.ts';
import { createBlobCache } from '../../src/base/store/blob-cache.ts';
import { runInstaller, type RunInstallerInput } from '../../src/stages/3-render/run-installer.ts';
import { createFileDigests } from '../../src/base/disk/file-digests.ts';
import { asUser, isRoot, NOBODY } from '../support/as-user.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { createStageContext } from '../support/stage-context.ts';

let parent: string;
let warnings: string[];
const at = (...names: readonly string[]): string => join(parent, ...names);
const modeOf = (path: string): number => statSync(path).mode & 0o7777;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'sealift-owner-'));
  warnings = [];
});
afterEach(() => {
  rmSync(parent, { recursive: true, force: true });
});

/** Opens a work directory and closes it again. */
async function open(name = '.sealift'): Promise<void> {
  const held = await openWorkDirectory(at(name), (message) => warnings.push(message));
  await held.close();
}

describe('a work directory', () => {
  it.each([0, 0o002, 0o022, 0o777])('is made with mode 0700 with umask %o', async (umask) => {
    const before = process.umask(umask);
    try {
      await open();
    } finally {
      process.umask(before);
    }
    expect(modeOf(at('.sealift'))).toBe(0o700);
    expect(modeOf(at('.sealift/cache/installer'))).toBe(0o700);
    expect(warnings).toEqual([]);
  });

  it('that others could read becomes 0700 with a warning, and its results are used', async () => {
    await open();
    writeFileSync(at('.sealift/stages/result.json'), '{}');
    chmodSync(at('.sealift'), 0o755);
    await open();
    expect(modeOf(at('.sealift'))).toBe(0o700);
    expect(warnings).toEqual([
      `work directory "${at('.sealift')}" could be read by others: its mode is 0700 now`,
    ]);
    expect(existsSync(at('.sealift/stages/result.json'))).toBe(true);
    await open();
    expect(warnings).toHaveLength(1);
  });

  it('that others could write becomes 0700, and only the blobs of its results are used', async () => {
    await open();
    const blob = 'a'.repeat(64);
    const foreign = 'b'.repeat(64);
    for (const name of [blob, foreign]) writeFileSync(at('.sealift/cache/blobs/sha256', name), '');
    chmodSync(at('.sealift/cache/blobs/sha256', foreign), 0o666);
    for (const name of ['seal.key', 'stages/drawn/x.json', 'cache/installer/x'])
      writeFileSync(at('.sealift', name), '');
    chmodSync(at('.sealift'), 0o775);
    await open();
    expect(modeOf(at('.sealift'))).toBe(0o700);
    const [aside = ''] = readdirSync(at('.sealift')).filter((name) => name.startsWith('untrusted'));
    expect(warnings).toEqual([
      expect.stringContaining(`could be written by others: its mode is 0700 now`),
    ]);
    expect(warnings[0]).toContain(at('.sealift', aside));
    expect(readdirSync(at('.sealift/cache/blobs/sha256'))).toEqual([blob]);
    expect(readdirSync(at('.sealift/stages/drawn'))).toEqual([]);
    expect(readdirSync(at('.sealift/cache/installer'))).toEqual([]);
    expect(existsSync(at('.sealift/seal.key'))).toBe(false);
    expect(existsSync(at('.sealift', aside, 'stages/drawn/x.json'))).toBe(true);
  });

  it('is not trusted if others could write to the place of its results', async () => {
    await open();
    writeFileSync(at('.sealift/cache/installer/x'), '');
    chmodSync(at('.sealift/cache/installer'), 0o777);
    await open();
    expect(readdirSync(at('.sealift/cache/installer'))).toEqual([]);
  });

  it('is refused if it is a directory with foreign files that others can use', async () => {
    mkdirSync(at('tmp'));
    chmodSync(at('tmp'), 0o1777);
    await expect(open('tmp')).rejects.toMatchObject({ code: 'work-dir.shared' });
    mkdirSync(at('home'), { mode: 0o755 });
    writeFileSync(at('home/document'), '');
    await expect(open('home')).rejects.toMatchObject({ code: 'work-dir.shared' });
    expect([modeOf(at('tmp')), modeOf(at('home'))]).toEqual([0o1777, 0o755]);
  });

  it('may be a link of the same user, but cannot have links in the places of results', async () => {
    mkdirSync(at('disk'), { mode: 0o700 });
    symlinkSync('disk', at('.sealift'));
    await open();
    expect(readdirSync(at('disk'))).toContain('cache');
    rmSync(at('disk/cache/blobs/sha256'), { recursive: true });
    mkdirSync(at('blobs'));
    symlinkSync(at('blobs'), at('disk/cache/blobs/sha256'));
    await expect(open()).rejects.toMatchObject({ code: 'work-dir.link' });
  });

  it('is used by a build even after a directory replaces it, and is shown by its name', async () => {
    const held = await openWorkDirectory(at('.sealift'), (message) => warnings.push(message));
    renameSync(at('.sealift'), at('moved'));
    mkdirSync(at('.sealift'));
    const cache = createBlobCache(join(held.path, 'cache', 'blobs'));
    const digest = await cache.put(Buffer.from('bytes'));
    await held.close();
    expect(nameHeld(`no ${cache.pathOf(digest)}`)).toMatch(`no ${at('.sealift')}/cache/blobs/`);
    expect(readdirSync(at('.sealift'))).toEqual([]);
    expect(readdirSync(at('moved/cache/blobs/sha256'))).toHaveLength(1);
  });
});

describe.runIf(isRoot)('on a machine with other users, a work directory', () => {
  it('is refused by name if it belongs to another user, and so is a link of another user', async () => {
    mkdirSync(at('.sealift'));
    chownSync(at('.sealift'), NOBODY, NOBODY);
    await expect(open()).rejects.toMatchObject({
      code: 'work-dir.foreign',
      expected: 'user 0',
      found: `user ${NOBODY}`,
      message: `work directory "${at('.sealift')}" belongs to another user`,
    });
    mkdirSync(at('of root'), { mode: 0o700 });
    await expect(asUser([parent], () => open('of root'))).rejects.toMatchObject({
      code: 'work-dir.foreign',
      found: 'user 0',
    });
    mkdirSync(at('own'), { mode: 0o700 });
    symlinkSync('own', at('link'));
    lchownSync(at('link'), NOBODY, NOBODY);
    await expect(open('link')).rejects.toMatchObject({ code: 'work-dir.foreign' });
    expect(readdirSync(at('own'))).toEqual([]);
  });

  it('is not trusted if another user made the place of its results', async () => {
    await open();
    chownSync(at('.sealift/stages'), NOBODY, NOBODY);
    writeFileSync(at('.sealift/stages/result.json'), '{}');
    await open();
    expect(readdirSync(at('.sealift/stages'))).toEqual(['drawn']);
  });

  it.each([
    ['an emptyDir of Kubernetes', { owner: 0, mode: 0o2777, isUser: true }],
    ['a directory of a group, made with umask 002', { owner: NOBODY, mode: 0o775, isUser: true }],
    ["a user's home, used with sudo", { owner: NOBODY, mode: 0o755, isUser: false }],
  ])('in %s works with one warning', async (_where, { owner, mode, isUser }) => {
    mkdirSync(at('volume'));
    chownSync(at('volume'), owner, owner);
    chmodSync(at('volume'), mode);
    await (isUser ? asUser([parent], () => open('volume/.sealift')) : open('volume/.sealift'));
    const name = at('volume/.sealift');
    expect(warnings).toEqual([
      `others can write to "${at('volume')}", so they can remove or replace the work directory "${name}" between builds`,
    ]);
    expect(statSync(name)).toMatchObject({ uid: isUser ? NOBODY : 0 });
    expect(modeOf(name) & 0o777).toBe(0o700);
  });
});

describe('an installer', () => {
  const SCRIPT = '#!/bin/sh\ncd "$(dirname "$0")" 2>/dev/null\n';
  const inputOf = async (path: string): Promise<RunInstallerInput> => ({
    installer: {
      kind: 'file',
      path,
      size: statSync(path).size,
      digest: await digestFile(path),
    },
    args: [],
    files: [],
  });
  const run = async (input: RunInstallerInput): Promise<string> => {
    const held = await openWorkDirectory(at('.sealift'), () => undefined);
    try {
      const digests = createFileDigests(join(held.path, 'cache'));
      return await runInstaller.run(input, { workDir: held.path, digests }, createStageContext());
    } finally {
      await held.close();
    }
  };

  it('is refused if it is not the file that was read at the start of the build', async () => {
    writeFileSync(at('installer'), SCRIPT, { mode: 0o755 });
    const input = await inputOf(at('installer'));
    writeFileSync(at('installer'), `#!/bin/sh\ntouch ${at('executed')}\n`);
    await expect(run(input)).rejects.toMatchObject({ code: 'installer.changed' });
    expect(existsSync(at('executed'))).toBe(false);
  });

  it('is executed as it was hashed, even if its file is changed after that', async () => {
    const script = [
      '#!/bin/sh',
      `echo changed > ${at('installer')}`,
      `cat "$0" > ${at('seen')}`,
      `while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done`,
      `echo '{"ignition":{"version":"3.2.0"}}' > "$dir/unconfigured-agent.ign"`,
      '',
    ].join('\n');
    writeFileSync(at('installer'), script, { mode: 0o755 });
    expect(await run(await inputOf(at('installer')))).toContain('3.2.0');
    expect(readFileSync(at('installer'), 'utf8')).toBe('changed\n');
    expect(readFileSync(at('seen'), 'utf8')).toBe(script);
    expect(readdirSync(at('.sealift')).filter((name) => name.startsWith('installer-'))).toEqual([]);
  });
});

describe.runIf(isRoot)('a build of root in a directory that another user can write to', () => {
  const EVIL = (mark: string): string => `#!/bin/sh\ntouch ${mark}\n`;
  const INSTALLER = Buffer.from(
    [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      `echo '{"ignition":{"version":"3.2.0"}}' > "$dir/unconfigured-agent.ign"`,
      ['exit 0\n', `\0_RELEASE_IMAGE_LOCATION_\0${'X'.repeat(200)}\0`].join(''),
    ].join('\n'),
    'latin1',
  );
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld({ installer: INSTALLER });
    await world.writeConfig();
    chmodSync(world.directory, 0o777);
  });
  afterAll(() => world.close());

  const inWorld = (...names: readonly string[]): string => join(world.directory, ...names);
  const build = (output: string, ...more: readonly string[]) =>
    world.run(
      'build',
      '--ignition',
      'installer',
      '--base-iso',
      'test.iso',
      '--output',
      output,
      ...more,
    );

  /** The cached installer is another program, and its record says that it is as it should be. */
  async function replaceInstaller(directory: string): Promise<void> {
    const [name = ''] = readdirSync(directory).filter((one) => !one.endsWith('.json'));
    const path = join(directory, name);
    rmSync(path);
    writeFileSync(path, EVIL(inWorld('executed')), { mode: 0o755 });
    const { size, mtimeMs, ctimeMs, ino } = statSync(path);
    const stamp = { size, modified: mtimeMs, changed: ctimeMs, inode: ino };
    writeFileSync(`${path}.json`, JSON.stringify({ digest: await digestFile(path), stamp }));
    for (const one of [path, `${path}.json`]) chownSync(one, NOBODY, NOBODY);
  }

  it('does not run the installer that the other user put into its cache', async () => {
    const first = await build('one.iso');
    expect([first.exitCode, first.stderr]).toEqual([
      0,
      expect.stringContaining('others can write'),
    ]);
    const report = readFileSync(inWorld('one.iso.report.json'), 'utf8');
    expect(first.stdout + first.stderr + report).not.toContain('/proc/');
    chmodSync(inWorld('.sealift'), 0o777);
    chmodSync(inWorld('.sealift/cache/installer'), 0o777);
    await replaceInstaller(inWorld('.sealift/cache/installer'));
    rmSync(inWorld('.sealift/stages/drawn'), { recursive: true });
    const second = await build('two.iso');
    expect(existsSync(inWorld('executed'))).toBe(false);
    expect([second.exitCode, second.stderr]).toEqual([
      0,
      expect.stringContaining('could be written by others'),
    ]);
  });

  it('does not use the work directory that the other user made', async () => {
    mkdirSync(inWorld('theirs'), { recursive: true });
    chownSync(inWorld('theirs'), NOBODY, NOBODY);
    const { exitCode, stderr } = await build('three.iso', '--work-dir', 'theirs');
    expect([exitCode, stderr]).toEqual([7, expect.stringContaining('[work-dir.foreign]')]);
    expect(readdirSync(inWorld('theirs'))).toEqual([]);
  });
});
