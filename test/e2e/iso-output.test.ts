import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkOutputPlace } from '../../src/base/disk/claim-output.ts';
import { digestFile } from '../../src/base/disk/files.ts';
import { asUser } from '../support/as-user.ts';
import { TEST_CERTIFICATE, writeInstallationConfig } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { mayMount } from '../support/may-mount.ts';

let world: LiveWorld;
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  await writeFile(at('kept.iso'), '');
  await expectDone('kept.iso');
});
afterAll(() => world.close());

const KEPT: readonly string[] = [
  ...['.sealift', 'test.iso', 'kept.iso', 'kept.iso.report.json'],
  ...['release-signatures', 'release-keys.gpg'],
];

/** Nothing but the configuration, its base ISO, its signatures and a work directory with all that was fetched. */
beforeEach(async () => {
  for (const name of await readdir(world.directory)) {
    if (!KEPT.includes(name)) {
      await rm(at(name), { recursive: true });
    }
  }
  await world.writeConfig();
});

const at = (name: string): string => join(world.directory, name);

const build = (output: string, ...more: readonly string[]): Promise<Outcome> =>
  world.run('build', '--output', output, '--base-iso', 'test.iso', ...more);

async function expectDone(output: string, ...more: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await build(output, ...more);
  expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
}

/** Refused with this code before a request is sent, and without a trace. */
async function expectRefused(code: string, output: string, ...more: readonly string[]) {
  const before = [await readdir(world.directory), world.registry.requests.length];
  const { exitCode, stderr } = await build(output, ...more);
  expect([exitCode, stderr]).toEqual([
    code === 'output.unwritable' ? 7 : 2,
    expect.stringMatching(new RegExp(`^error: .* \\[${code.replace('.', '\\.')}\\]\n`)),
  ]);
  expect(stderr).toMatch(/\n {2}hint: /);
  expect([await readdir(world.directory), world.registry.requests.length]).toEqual(before);
}

describe('an ISO takes the place of', () => {
  it('no file, in folders that are made for it', async () => {
    await expectDone('new/folder/x.iso');
    expect(await readdir(at('new/folder'))).toEqual([
      ...['.sealift', 'x.iso', 'x.iso.report.json', 'x.iso.sha256'],
    ]);
  });

  it('an empty file, as mktemp makes one', async () => {
    const path = execFileSync('mktemp', ['-p', world.directory], { encoding: 'utf8' }).trim();
    await expectDone(path);
    expect(await digestFile(path)).toBe(await digestFile(at('kept.iso')));
  });

  it('an ISO of an earlier build, known by its report or by its index alone', async () => {
    await copyFile(at('kept.iso'), at('x.iso'));
    await expectDone('x.iso');
    await rm(at('x.iso.report.json'));
    await expectDone('x.iso');
  });

  it('an installation ISO of an earlier build, known by its report alone', async () => {
    await writeInstallationConfig(world.directory);
    const args = ['build', 'installation-iso', '--base-iso', 'test.iso', '--output', 'i.iso'];
    expect(await world.run(...args)).toMatchObject({ exitCode: 0 });
    expect(await world.run(...args)).toMatchObject({ exitCode: 0 });
    await rename(at('i.iso.report.json'), at('elsewhere.json'));
    const { exitCode, stderr } = await world.run(...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
    // Killed right before the report got its name.
    await rename(at('elsewhere.json'), at('i.iso.partial.report.json'));
    expect(await world.run(...args)).toMatchObject({ exitCode: 0 });
  });
});

describe('a foreign file is replaced only with --force:', () => {
  const FOREIGN = 'a foreign file';
  it.each([
    ...['x.iso', 'x.iso.partial', 'x.iso.partial.journal', 'x.iso.lock'],
    ...['x.iso.report.json', 'x.iso.sha256'],
    ...['x.iso.partial.report.json', 'x.iso.partial.sha256'],
  ])('%s', async (name) => {
    await writeFile(at(name), FOREIGN);
    await link(at(name), at('second name'));
    await expectRefused('output.exists', 'x.iso');
    expect(await readFile(at(name), 'utf8')).toBe(FOREIGN);
    await expectDone('x.iso', '--force');
    expect(await readFile(at('second name'), 'utf8')).toBe(FOREIGN);
    expect((await readdir(world.directory)).filter((each) => each.startsWith('x.iso'))).toEqual([
      ...['x.iso', 'x.iso.report.json', 'x.iso.sha256'],
    ]);
  });

  it('an ISO of another size than its report says', async () => {
    await copyFile(at('kept.iso.report.json'), at('x.iso.report.json'));
    await writeFile(at('x.iso'), FOREIGN);
    await expectRefused('output.exists', 'x.iso');
  });

  it('a file that came while the ISO was built', async () => {
    const { directory } = world;
    // The partial output is there when the first bytes are fetched.
    const building = world.run('build', '--output', 'x.iso', '--work-dir', 'fresh');
    while (!existsSync(join(directory, 'x.iso.partial'))) await new Promise(setImmediate);
    await writeFile(at('x.iso'), FOREIGN);
    const { exitCode, stderr } = await building;
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
    expect(await readFile(at('x.iso'), 'utf8')).toBe(FOREIGN);
    const left = (await readdir(directory)).filter((name) => name.startsWith('x.iso'));
    expect(left).toEqual(['x.iso', 'x.iso.partial', 'x.iso.partial.journal']);
  });
});

it('an ISO is refused at once when a pipe has the name of its report', async () => {
  await writeFile(at('x.iso'), 'the only copy of somebody');
  execFileSync('mkfifo', [at('x.iso.report.json')]);
  await expectRefused('output.exists', 'x.iso');
});

describe('even with --force an ISO is never written to', () => {
  it.each([
    ['the configuration', 'appliance-config.yaml', 'output.is-input'],
    ['the base ISO', 'test.iso', 'output.is-input'],
    ['a hard link to the base ISO', 'hard-link.iso', 'output.is-input'],
    ['a symbolic link to the base ISO', 'link.iso', 'output.link'],
    ['a symbolic link to nothing', 'dangling.iso', 'output.link'],
    ['a folder behind a symbolic link to nothing', 'dangling.iso/x.iso', 'output.link'],
    ['a directory', 'directory', 'output.not-a-file'],
    ['a name that ends in a slash', 'absent/', 'output.not-a-file'],
    ['a place below a file', 'test.iso/x.iso', 'output.not-a-file'],
    ['a named pipe', 'pipe', 'output.not-a-file'],
    ['a socket', 'socket', 'output.not-a-file'],
    ['/proc', '/proc/x', 'output.special-place'],
    ['/proc, in a folder to be made', '/proc/x/y/z.iso', 'output.special-place'],
    ['/sys', '/sys/x.iso', 'output.special-place'],
    ['the work directory', '.sealift', 'output.not-a-file'],
    ['a file in the work directory', '.sealift/x.iso', 'output.reserved'],
    ['a folder in the work directory', '.sealift/cache/x.iso', 'output.reserved'],
    ['a work directory that a link leads to', 'into/x.iso', 'output.reserved'],
    ['the folder of manifests', 'openshift/x.iso', 'output.reserved'],
    ['a name of 192 bytes', `${'é'.repeat(94)}.iso`, 'output.name-too-long'],
  ])('%s', async (_what, output, code) => {
    await link(at('test.iso'), at('hard-link.iso'));
    await symlink('test.iso', at('link.iso'));
    await symlink('absent', at('dangling.iso'));
    await symlink('.sealift', at('into'));
    await mkdir(at('directory'));
    await mkdir(at('openshift'));
    execFileSync('mkfifo', [at('pipe')]);
    const server = createServer().listen(at('socket'));
    await once(server, 'listening');
    try {
      await expectRefused(code, output);
      await expectRefused(code, output, '--force');
    } finally {
      server.close();
      await once(server, 'close');
    }
  });

  // Nodes of the test's own: a defect here must not reach those of the machine.
  it('a block device or a character device', async () => {
    if (!mayMount()) return;
    execFileSync('mknod', [at('disk'), 'b', '7', '250']);
    execFileSync('mknod', [at('null'), 'c', '1', '3']);
    await expectRefused('output.not-a-file', 'disk', '--force');
    await expectRefused('output.not-a-file', 'null', '--force');
    expect((await lstat(at('disk'))).isBlockDevice()).toBe(true);
    expect((await lstat(at('null'))).isCharacterDevice()).toBe(true);
  });

  it('the directory of devices', async () => {
    await expect(checkOutputPlace({ path: '/dev/x.iso' })).rejects.toMatchObject({
      code: 'output.special-place',
    });
  });

  it.each(['pull-secret.json', 'key.pub', 'ca.pem', 'registries.conf'])(
    '%s, which the configuration names',
    async (output) => {
      await writeFile(at('registries.conf'), '');
      await writeFile(at('ca.pem'), TEST_CERTIFICATE);
      await writeFile(
        at('key.pub'),
        'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleSBvZiBhIHRlc3QsIG5vdGhpbmcgZWxzZSAhICAg me',
      );
      await writeFile(at('pull-secret.json'), '{"auths":{"quay.io":{"auth":"dTpw"}}}');
      await world.writeConfig(
        ...['  caBundle: ca.pem', '  registriesConf: registries.conf'],
        ...['sshKey: file:key.pub'],
      );
      const text = await readFile(at('appliance-config.yaml'), 'utf8');
      const named = text.replace(/^pullSecret: .*$/m, 'pullSecret: file:pull-secret.json');
      await writeFile(at('appliance-config.yaml'), named);
      const { exitCode, stderr } = await world.run('build', '--output', output, '--force');
      expect([exitCode, stderr]).toEqual([
        2,
        expect.stringMatching(/\[output\.(is-input|reserved)\]/),
      ]);
    },
  );

  it('files next to it that are an input', async () => {
    await copyFile(at('test.iso'), at('x.iso.partial'));
    const args = ['--output', 'x.iso', '--base-iso', 'x.iso.partial', '--force'];
    const { exitCode, stderr } = await world.run('build', ...args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.is-input]')]);
  });

  it('a folder without write permission', async () => {
    await mkdir(at('closed'), { mode: 0o555 });
    await chmod(at('appliance-config.yaml'), 0o644);
    await asUser([world.directory], () => expectRefused('output.unwritable', 'closed/x.iso'));
  });
});

describe('a plan', () => {
  it.each([
    ['directory', 'output.not-a-file', 2],
    ['appliance-config.yaml', 'output.is-input', 2],
    ['/proc/x', 'output.special-place', 2],
  ])('refuses --output %s, which no build could write', async (output, code, exitCode) => {
    await mkdir(at('directory'));
    const outcome = await world.run('plan', '--output', output);
    expect([outcome.exitCode, outcome.stderr]).toEqual([
      exitCode,
      expect.stringMatching(new RegExp(`^error: .*\\[${code}\\]\n`)),
    ]);
  });

  it('may name a foreign file, which it does not write', async () => {
    await writeFile(at('x.iso'), 'a foreign file');
    const { exitCode } = await world.run('plan', '--output', 'x.iso', '--base-iso', 'test.iso');
    expect(exitCode).toBe(0);
    expect(await readFile(at('x.iso'), 'utf8')).toBe('a foreign file');
  });

  it.each(['/proc/x', '/proc/x/y', 'appliance-config.yaml'])(
    'ends at once if its work directory is %s',
    async (workDir) => {
      const { exitCode, stderr } = await world.run('plan', '--work-dir', workDir);
      expect([exitCode, stderr]).toEqual([
        7,
        expect.stringMatching(/^error: .*\[work-dir\.unwritable\]\n/),
      ]);
    },
  );

  it('ends with a code if its work directory is on a read-only file system', async () => {
    if (!mayMount()) return;
    await mkdir(at('disk'));
    execFileSync('mount', ['-t', 'tmpfs', 'none', at('disk')]);
    try {
      expect(await world.run('plan', '--work-dir', 'disk/work')).toMatchObject({ exitCode: 0 });
      execFileSync('mount', ['-o', 'remount,ro', at('disk')]);
      for (const workDir of ['disk/work', 'disk/other']) {
        const { exitCode, stderr } = await world.run('plan', '--work-dir', workDir);
        expect([exitCode, stderr]).toEqual([
          7,
          expect.stringMatching(/^error: .*\[work-dir\.unwritable\]\n/),
        ]);
      }
    } finally {
      execFileSync('umount', [at('disk')]);
    }
  });
});

describe('the checksum and report', () => {
  it('of an earlier ISO stay with it when a build fails', async () => {
    await expectDone('x.iso');
    const names = ['x.iso', 'x.iso.report.json', 'x.iso.sha256'];
    const before = await Promise.all(names.map((name) => digestFile(at(name))));
    // The build is refused at its very end.
    const building = world.run('build', '--output', 'x.iso', '--work-dir', 'fresh');
    while (!existsSync(at('x.iso.partial'))) await new Promise(setImmediate);
    await rename(at('x.iso'), at('moved.iso'));
    await mkdir(at('x.iso'));
    const { exitCode, stderr } = await building;
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[output.not-a-file]')]);
    await rm(at('x.iso'), { recursive: true });
    await rename(at('moved.iso'), at('x.iso'));
    expect(await Promise.all(names.map((name) => digestFile(at(name))))).toEqual(before);
    expect((await readdir(world.directory)).filter((name) => name.includes('partial.'))).toEqual([
      'x.iso.partial.journal',
    ]);
  });
});
