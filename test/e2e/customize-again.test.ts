import { execFileSync } from 'node:child_process';
import { chmod, copyFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startSealift } from '../support/child.ts';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { attachLoop, mayAttachLoops } from '../support/loop-device.ts';
import { requireTool } from '../support/tools.ts';
import { expectDone } from '../support/two-nights.ts';

const hasTools = ['genisoimage', 'isohybrid', 'cpio', 'bsdtar'].map(requireTool).every(Boolean);

const KILLER = new URL('../support/kill-at-write.mjs', import.meta.url).href;
const NETWORK = (name: string): string =>
  `interfaces: [{name: ${name}, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]\n`;

describe.skipIf(!hasTools)('a live ISO of CoreOS that already has values', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await writeFile(at('one.yaml'), NETWORK('eth0'));
    await writeFile(at('two.yaml'), NETWORK('eth1'));
    await writeFile(
      at('users.ign'),
      '{"ignition":{"version":"3.1.0"},"passwd":{"users":[{"name":"op","passwordHash":"$y$hidden"}]}}',
    );
  });
  afterAll(() => world.close());
  beforeEach(async () => {
    await copyFile(at('test.iso'), at('x.iso'));
    await chmod(at('x.iso'), 0o644);
  });

  const at = (name: string): string => join(world.directory, name);
  const done = async (...args: readonly string[]): Promise<string> =>
    (await expectDone(world, ...args)).stdout;
  const sumOf = (path: string): string =>
    execFileSync('sha256sum', [path], { cwd: world.directory, encoding: 'utf8' }).slice(0, 64);
  const modeOf = async (name: string): Promise<string> =>
    ((await stat(at(name))).mode & 0o777).toString(8);

  /** Members of the embed area, as bsdtar, gzip and cpio find them; gzip takes the zeros behind for garbage. */
  const unpack = (...args: readonly string[]): string =>
    execFileSync(
      'sh',
      [
        '-c',
        'bsdtar -xOf x.iso images/ignition.img | gzip -dcq 2>/dev/null | cpio --quiet "$@"',
        'sh',
        ...args,
      ],
      { cwd: world.directory, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] },
    );
  const menu = (): string =>
    execFileSync('bsdtar', ['-xOf', 'x.iso', 'EFI/redhat/grub.cfg'], {
      cwd: world.directory,
      encoding: 'utf8',
    });

  test('keeps each value when others are added', async () => {
    const first = ['--kargs-append', 'x=1', '--nmstate', 'one.yaml', '--proxy', 'http://p:1'];
    await done('customize', 'x.iso', ...first, '--ssh-key', TEST_SSH_KEY, '--in-place');
    await done('customize', 'x.iso', '--ntp', 'z.example', '--force', '--in-place');
    expect(unpack('-t')).toContain('etc/coreos-firstboot-network/eth0.nmconnection\n');
    expect(unpack('-i', '--to-stdout', 'config.ign')).toContain(TEST_SSH_KEY);
    expect(menu()).toMatch(/ x=1\n/);
    const together = ['--ntp', 'z.example', '--output', 'together.iso'];
    await done('customize', 'test.iso', ...first, '--ssh-key', TEST_SSH_KEY, ...together);
    const shown = await Promise.all(
      ['x.iso', 'together.iso'].map(async (name) =>
        (await done('customize', name, '--show'))
          .replace(/room .*\n/, '')
          .split('\n')
          .slice(1)
          .sort(),
      ),
    );
    expect(shown[0]).toEqual(shown[1]);
  });

  test('has a value that is given again in place of the earlier one', async () => {
    const first = ['--kargs-append', 'x=1', '--nmstate', 'one.yaml', '--ntp', 'a.example'];
    await done('customize', 'x.iso', ...first, '--in-place');
    const again = ['--kargs-append', 'y=2', '--kargs-append', 'x=1', '--kargs-delete', 'x=1'];
    const more = ['--nmstate', 'two.yaml', '--ntp', 'b.example'];
    await done('customize', 'x.iso', ...again, ...more, '--force', '--in-place');
    expect(menu()).toMatch(/[^=12] y=2 x=1\n/);
    expect(unpack('-t').match(/eth\d/g)).toEqual(['eth1']);
    const shown = await done('customize', 'x.iso', '--show');
    expect(shown).toContain('b.example');
    expect(shown).not.toContain('a.example');
  });

  test.each([
    ...['--ssh-key', '--proxy', '--no-proxy', '--kargs-append', '--kargs-delete', '--ntp'],
    ...['--trust-bundle', '--ignition-override', '--rendezvous-ip', '--nmstate', '--pull-secret'],
  ])('refuses an empty %s, as from an unset variable', async (option) => {
    for (const text of ['', ' ']) {
      const args = ['customize', 'x.iso', option, text, '--ntp', 'a.example', '--in-place'];
      const { exitCode, stderr } = await world.run(...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.empty-value]')]);
    }
    expect(sumOf('x.iso')).toBe(sumOf('test.iso'));
  });

  test('is not called customised if nothing has changed', async () => {
    for (const place of [['--in-place'], ['--output', 'same.iso']]) {
      const args = ['customize', 'x.iso', '--kargs-delete', 'not-there', ...place];
      const { exitCode, stdout, stderr } = await world.run(...args);
      expect([exitCode, stdout]).toEqual([0, expect.stringContaining('is unchanged')]);
      expect(stderr).toContain('warning: kernel argument not-there is not on the ISO');
    }
    expect(sumOf('same.iso')).toBe(sumOf('test.iso'));
  });

  test.each([
    ['644', ['--ssh-key', TEST_SSH_KEY, '--proxy', 'http://p.example:1']],
    ['600', ['--proxy', 'http://u:word@p.example:1']],
    ['600', ['--nmstate', 'one.yaml']],
    ['600', ['--ignition-override', 'users.ign']],
  ])('has the mode %s with %j', async (mode, args) => {
    await done('customize', 'x.iso', ...args, '--output', 'copy.iso', '--force');
    expect(await modeOf('copy.iso')).toBe(mode);
    await done('customize', 'x.iso', ...args, '--in-place');
    expect(await modeOf('x.iso')).toBe(mode);
    await chmod(at('x.iso'), 0o644);
    const more = ['--ntp', 'a.example', '--force', '--output', 'copy.iso'];
    await done('customize', 'x.iso', ...more);
    expect(await modeOf('copy.iso')).toBe(mode);
  });

  test('names everything that an override set, and no secret', async () => {
    await done('customize', 'x.iso', '--ignition-override', 'users.ign', '--in-place');
    const shown = await done('customize', 'x.iso', '--show');
    expect(shown).toMatch(/^override +user op$/m);
    expect(shown).not.toContain('hidden');
  });

  test('warns of a mode that is decimal by mistake in an override', async () => {
    const files = [{ path: '/a', mode: 644, contents: { source: 'data:,a' } }];
    const override = { ignition: { version: '3.2.0' }, storage: { files } };
    await writeFile(at('mode.ign'), JSON.stringify(override));
    const args = ['x.iso', '--ignition-override', 'mode.ign', '--output', 'mode.iso'];
    const { stderr } = await world.run('customize', ...args);
    expect(stderr).toMatch(/warning: .*\$\.storage\.files\.0\.mode/);
  });

  const [A, B] = ['52:54:00:00:00:0A', '52:54:00:00:00:0b'];
  test.each([
    ['usage.hostname', 'two names', ['--hostname', `${A}=a`, '--hostname', `${A.toLowerCase()}=b`]],
    ['usage.hostname', 'two hosts', ['--hostname', `${A}=a`, '--hostname', `${B}=a`]],
    ['usage.hostname', 'localhost', ['--hostname', `${A}=localhost`]],
    ['usage.hostname', 'has capital letters', ['--hostname', `${A}=Node1`]],
    ['usage.proxy', 'proxy is not an http or https URL', ['--proxy', 'http://p.example:99999']],
    ['usage.hostname', 'a..b', ['--hostname', `${A}=a..b`]],
    ['usage.proxy', 'a space', ['--proxy', 'http://p.example:1/ x']],
    ['usage.proxy', '" b" is', ['--proxy', 'http://p.example:1', '--no-proxy', 'a, b']],
    ['usage.no-stream', 'standard output', ['--ntp', 'a.example', '--output', '-']],
  ])('refuses values that cannot be intended: %s, %s', async (code, text, args) => {
    const place = args.includes('--output') ? [] : ['--in-place'];
    const { exitCode, stderr } = await world.run('customize', 'x.iso', ...args, ...place);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
    expect(stderr).toContain(text);
    expect(sumOf('x.iso')).toBe(sumOf('test.iso'));
  });

  test('refuses values that would have no meaning', async () => {
    for (const mode of [['--show'], ['--reset', '--in-place']]) {
      const { exitCode, stderr } = await world.run('customize', 'x.iso', ...mode, '--ntp', 'a');
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.customize]')]);
      expect(stderr).toContain('takes no values, but is given --ntp');
    }
  });

  test('is refused by every reader after a killed change, until the change is undone', async () => {
    let code: number | null;
    for (let count = 1; ; count++) {
      await copyFile(at('test.iso'), at('j.iso'));
      const env = { NODE_OPTIONS: `--import=${KILLER}`, KILL_AT: String(count) };
      const values = ['--kargs-append', 'a=b', '--ssh-key', TEST_SSH_KEY, '--in-place'];
      ({ code } = await startSealift(['customize', 'j.iso', ...values], {
        cwd: world.directory,
        env,
      }).ended);
      if (code !== null) break;
      for (const args of [
        ['customize', 'j.iso', '--show'],
        ['customize', 'j.iso', '--ntp', 'a.example', '--output', 'new.iso'],
        ['verify', 'j.iso'],
        ['inspect', 'j.iso'],
      ]) {
        const { exitCode, stderr } = await world.run(...args);
        expect([exitCode, stderr]).toEqual([7, expect.stringContaining('[customize.half-way]')]);
        expect(stderr).toContain('j.iso --in-place --reset');
      }
      await done('customize', 'j.iso', '--reset', '--in-place');
      expect(sumOf('j.iso')).toBe(sumOf('test.iso'));
    }
    expect(code).toBe(0);
    expect(await readdir(world.directory)).not.toContain('new.iso');
  }, 120_000);

  test('is not taken for half-customised because of a file next to it from another ISO', async () => {
    const area = { offset: 0, old: Buffer.from('old').toString('base64'), now: 'bm93' };
    await writeFile(at('x.iso.customize'), JSON.stringify({ areas: [area] }));
    await done('customize', 'x.iso', '--show');
  });

  test.skipIf(!mayAttachLoops())(
    'leaves no saved bytes behind for a device that accepts no writes',
    async () => {
      const locked = attachLoop(at('x.iso'), ['--read-only']);
      try {
        const args = ['customize', locked.path, '--in-place', '--ntp', 'a.example'];
        const { exitCode } = await world.run(...args, '--work-dir', 'work');
        expect(exitCode).toBe(7);
        expect(await readdir(at('work/devices'))).toEqual([]);
      } finally {
        locked.detach();
      }
    },
  );
});
