import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { createSilentProgram } from '../support/silent-program.ts';

let world: LiveWorld;
let folder: string;
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  await writeFile(join(world.directory, 'imageset.yaml'), IMAGESET);
  folder = await mkdtemp(join(tmpdir(), 'sealift-texts-'));
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

const IMAGESET = `apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform: {channels: [{name: stable-4.20, minVersion: 4.20.3, maxVersion: 4.20.3}]}
`;

type Row = { readonly command: string; readonly args: readonly string[]; readonly file: string };

/** Every command that writes a text to a file: what it is given, and the file. */
const rows = (directory: string): readonly Row[] => [
  ...['minimal', 'ove'].map((template) => ({
    command: 'init',
    args: ['init', '--template', template, directory],
    file: 'appliance-config.yaml',
  })),
  {
    command: 'init',
    args: ['init', '--template', 'ibi', directory],
    file: 'image-based-installation-config.yaml',
  },
  {
    command: 'init',
    args: ['init', '--template', 'sites', directory],
    file: 'template/install-config.yaml',
  },
  {
    command: 'import imageset',
    args: ['import', 'imageset', 'imageset.yaml', '--output', join(directory, 'a.yaml')],
    file: 'a.yaml',
  },
  {
    command: 'resources',
    args: ['resources', '--output', join(directory, 'resources.yaml')],
    file: 'resources.yaml',
  },
];

/** Commands with files of another rule, and where it is tested. */
const OTHERS = [
  ...['build', 'build installation-iso'], // test/e2e/iso-output.test.ts
  ...['build disk-image', 'lock disk-image', 'plan disk-image'], // test/e2e/disk-image.test.ts
  ...['build deployment-iso', 'lock deployment-iso', 'plan deployment-iso'], // test/e2e/deployment-iso.test.ts
  'build upgrade-iso', // test/e2e/upgrade-iso.test.ts
  ...['lock', 'lock upgrade-iso', 'lock installation-iso'], // test/stages/lock.test.ts
  ...['delta', 'apply'], // test/e2e/delta.test.ts
  'customize', // test/e2e/customize.test.ts
  'pull', // test/media/push-pull.test.ts
  ...['extract pxe', 'extract rootfs', 'extract minimal-iso'], // test/media/extract.test.ts
  'extract installer', // test/media/extract-installer.test.ts
  ...['plan', 'plan upgrade-iso', 'why'], // they only name the ISO
  'token keys', // test/service/token.test.ts
  'config-iso build', // test/stages/config-isos/foreign-files.test.ts
  'config-iso export', // test/stages/config-isos/export.test.ts
];

const titles = rows('').map(({ command, args }) => [
  `${command} ${args.includes('--template') ? (args[2] ?? '') : ''}`.trim(),
]);

describe.each(titles)('%s', (title) => {
  const rowIn = (directory: string): Row => {
    const at = titles.findIndex(([each]) => each === title);
    const row = rows(directory)[at];
    if (!row) throw new Error(`no row for ${title}`);
    return row;
  };
  const fresh = async (): Promise<Row & { readonly path: string; readonly directory: string }> => {
    const directory = await mkdtemp(join(folder, 'a-'));
    const row = rowIn(directory);
    return { ...row, directory, path: join(directory, row.file) };
  };

  it('writes a new file for its owner alone, in folders that it makes', async () => {
    const directory = join(await mkdtemp(join(folder, 'a-')), 'new/folder');
    const row = rowIn(directory);
    expect(await world.run(...row.args)).toMatchObject({ exitCode: 0 });
    expect((await stat(join(directory, row.file))).mode & 0o777).toBe(0o600);
  });

  it('leaves a file of the same content as it is, without a message', async () => {
    const { args, path } = await fresh();
    await world.run(...args);
    const before = await stat(path);
    expect(await world.run(...args)).toMatchObject({ exitCode: 0 });
    const after = await stat(path);
    expect([after.ino, after.mtimeMs]).toEqual([before.ino, before.mtimeMs]);
  });

  it('writes into an empty file', async () => {
    const { args, path, directory } = await fresh();
    mkdirSync(join(directory, 'template'));
    await writeFile(path, '');
    expect(await world.run(...args)).toMatchObject({ exitCode: 0 });
    expect((await stat(path)).size).toBeGreaterThan(100);
  });

  it('replaces a file of other content with --force only', async () => {
    const { args, path, directory } = await fresh();
    mkdirSync(join(directory, 'template'));
    await writeFile(path, 'mine');
    const names = await readdir(directory);
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/--force/)]);
    expect(stderr).toContain('[output.exists]');
    expect([await readFile(path, 'utf8'), await readdir(directory)]).toEqual(['mine', names]);
    expect(await world.run(...args, '--force')).toMatchObject({ exitCode: 0 });
    expect(await readFile(path, 'utf8')).not.toBe('mine');
  });

  it.each([
    [
      'a directory',
      (path: string) => {
        mkdirSync(path);
      },
      'output.not-a-file',
    ],
    ['a named pipe', (path: string) => execFileSync('mkfifo', [path]), 'output.not-a-file'],
    [
      'a link to nothing',
      (path: string) => {
        symlinkSync('absent', path);
      },
      'output.link',
    ],
  ] as const)('does not write to %s, even with --force', async (_what, make, code) => {
    const { args, path, directory } = await fresh();
    mkdirSync(join(directory, 'template'));
    make(path);
    const { exitCode, stderr } = await world.run(...args, '--force');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
  });

  it('ends with an error code if the kernel stores no files there', async () => {
    const { args } = rowIn('/proc/x');
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.special-place]')]);
  });
});

describe('a text', () => {
  const args = ['import', 'imageset', 'imageset.yaml', '--output'];

  it.each(['/dev/stdout', '/proc/self/fd/1', '-'])(
    'may go to %s, which then has nothing else',
    async (name) => {
      const { exitCode, stdout } = await world.run(...args, name);
      const printed = await world.run('import', 'imageset', 'imageset.yaml');
      expect([exitCode, stdout]).toEqual([0, printed.stdout]);
    },
  );

  it('may go to a device that takes any text', async () => {
    expect(await world.run(...args, '/dev/null')).toMatchObject({ exitCode: 0, stdout: '' });
    const { exitCode, stderr } = await world.run(...args, '/dev/full');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.not-a-file]')]);
  });

  it('never replaces the file that it is made from', async () => {
    const { exitCode, stderr } = await world.run(...args, 'imageset.yaml', '--force');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.is-input]')]);
    expect(await readFile(join(world.directory, 'imageset.yaml'), 'utf8')).toBe(IMAGESET);
  });
});

it('every command that takes the name of an output is in a table of outputs', () => {
  const known = [...titles.map(([title = '']) => title.replace(/ (minimal|ove|ibi|sites)$/, ''))];
  const isWriter = ({ options }: Command): boolean =>
    options.some(({ long }) => long === '--output' || long === '--out' || long === '--force');
  const program = createSilentProgram();
  const writers = listCommands(program).filter(({ command }) => isWriter(command));
  const names = writers.map(({ name }) => name).filter((name) => name !== 'config-iso generations');
  expect(names.sort()).toEqual([...new Set([...known, ...OTHERS])].sort());
});

type Named = { readonly name: string; readonly command: Command };

const listCommands = (parent: Command, prefix = ''): readonly Named[] =>
  parent.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    return [{ name, command }, ...listCommands(command, `${name} `)];
  });
