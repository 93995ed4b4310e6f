import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TEST_CERTIFICATE, TEST_SSH_KEY } from '../support/installation-iso.ts';
import { makeCoreosIso } from '../support/iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { attachLoop, mayAttachLoops } from '../support/loop-device.ts';
import { startNginx, type Nginx } from '../support/nginx.ts';
import { freePort } from '../support/local-http.ts';
import { requireTool } from '../support/tools.ts';
import { expectDone } from '../support/two-nights.ts';

const hasTools = ['genisoimage', 'isohybrid', 'cpio', 'ignition-validate', 'nginx']
  .map(requireTool)
  .every(Boolean);

const MAC = '52:54:00:00:00:01';

describe.skipIf(!hasTools)('customising a live ISO of CoreOS', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await writeFile(at('secret.json'), '{"auths":{"quay.io":{"auth":"YTpi"}}}');
    await writeFile(at('ca.pem'), TEST_CERTIFICATE);
    await writeFile(
      at('motd.ign'),
      '{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,hi"}}]}}',
    );
    await writeFile(at('cluster.yaml'), 'kind: ClusterImageSet\nspec: {releaseImage: q.io/r:1}\n');
    await writeFile(at('manifest.yaml'), 'kind: ConfigMap\ndata: {a.yaml: "kind: A"}\n');
    await writeFile(at('labels.yaml'), 'kind: InfraEnv\nspec: {agentLabels: {a: b}}\n');
    await writeFile(
      at('infra.yaml'),
      'kind: InfraEnv\nspec: {cpuArchitecture: x86_64, kernelArguments: [{operation: append, value: quiet}]}\n',
    );
  });
  afterAll(() => world.close());
  beforeEach(() => copyFile(at('test.iso'), at('x.iso')));

  const at = (name: string): string => join(world.directory, name);
  const done = async (...args: readonly string[]): Promise<string> =>
    (await expectDone(world, ...args)).stdout;
  const sumOf = (path: string): string =>
    execFileSync('sha256sum', [path], { cwd: world.directory, encoding: 'utf8' }).slice(0, 64);

  /** The bytes of the area, as bsdtar finds them. */
  const areaOf = (name: string): Buffer =>
    execFileSync('bsdtar', ['-xOf', at(name), 'images/ignition.img'], { maxBuffer: 1 << 26 });

  /** As gzip and cpio unpack it; the zeros behind the archive are garbage to gzip, which the kernel skips. */
  const unpack = (name: string, member: string): string =>
    execFileSync(
      'sh',
      ['-c', 'gzip -dcq 2>/dev/null | cpio -i --quiet --to-stdout "$1"', 'sh', member],
      { input: areaOf(name), encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] },
    );

  async function expectRefused(
    [exit, code, text]: readonly [number, string, string],
    ...args: readonly string[]
  ): Promise<void> {
    const before = sumOf('x.iso');
    const { exitCode, stderr } = await world.run('customize', 'x.iso', ...args);
    expect([exitCode, stderr]).toEqual([exit, expect.stringContaining(`[${code}]`)]);
    expect(stderr).toContain(text);
    expect(sumOf('x.iso')).toBe(before);
  }

  const VALUES = [
    ...['--ssh-key', TEST_SSH_KEY, '--pull-secret', 'file:secret.json', '--trust-bundle', 'ca.pem'],
    ...['--proxy', 'http://u:hidden-word@p.example:3128', '--no-proxy', '.example'],
    ...['--ntp', 'ntp.example', '--ntp', '192.0.2.123', '--ignition-override', 'motd.ign'],
    ...['--kargs-append', 'console=ttyS0', '--kargs-delete', 'ignition.platform.id=metal'],
  ];

  test('gives the live system each value that has a meaning there, and nothing else', async () => {
    await done('customize', 'x.iso', ...VALUES, '--in-place');
    const config = unpack('x.iso', 'config.ign');
    execFileSync('ignition-validate', ['-'], { input: config, stdio: 'pipe' });
    const { passwd, storage } = JSON.parse(config) as {
      readonly passwd: object;
      readonly storage: {
        readonly files: readonly {
          path: string;
          contents?: { source: string };
          append?: readonly { source: string }[];
        }[];
      };
    };
    expect(passwd).toEqual({ users: [{ name: 'core', sshAuthorizedKeys: [TEST_SSH_KEY] }] });
    const files = Object.fromEntries(
      storage.files.map(({ path, contents, append = [] }) => [
        path,
        [...(contents ? [contents] : []), ...append]
          .map(({ source }) => Buffer.from(source.replace(/^data:[^,]*,/, ''), 'base64').toString())
          .join(''),
      ]),
    );
    expect(Object.keys(files).sort()).toEqual([
      '/etc/chrony.conf',
      '/etc/motd',
      '/etc/pki/ca-trust/source/anchors/domain.crt',
      '/etc/systemd/system.conf.d/10-default-env.conf',
      '/root/.docker/config.json',
    ]);
    expect(files['/etc/chrony.conf']).toMatch(
      /^server ntp\.example iburst\nserver 192\.0\.2\.123 iburst\n/,
    );
    expect(files['/etc/systemd/system.conf.d/10-default-env.conf']).toContain(
      'DefaultEnvironment=NO_PROXY=".example"\n',
    );
    const shown = await done('customize', 'x.iso', '--show', '-o', 'json');
    expect(shown).not.toContain('hidden-word');
    expect(JSON.parse(shown)).toMatchObject({
      customised: true,
      ignition: {
        ntpSources: ['ntp.example', '192.0.2.123'],
        proxy: { httpProxy: 'http://[redacted]@p.example:3128', noProxy: '.example' },
        trustBundle: true,
      },
    });
    await done('customize', 'x.iso', '--reset', '--in-place');
    expect(sumOf('x.iso')).toBe(sumOf('test.iso'));
  });

  test('takes a key text of an InfraEnv that begins with a comment line', async () => {
    const spec = { sshAuthorizedKey: `# the team\n${TEST_SSH_KEY}\n` };
    await writeFile(at('team.yaml'), JSON.stringify({ kind: 'InfraEnv', spec }));
    await done('customize', 'x.iso', '--infraenv', 'team.yaml', '--output', 'team.iso');
    expect(areaOf('team.iso').some((byte) => byte !== 0)).toBe(true);
  });

  test('embeds no config for kernel arguments alone, which would keep users from logging in', async () => {
    await done('customize', 'x.iso', '--infraenv', 'infra.yaml', '--in-place');
    expect(areaOf('x.iso').every((byte) => byte === 0)).toBe(true);
    const shown = JSON.parse(await done('customize', 'x.iso', '--show', '-o', 'json')) as object;
    expect(shown).toMatchObject({
      kernelArguments: { now: expect.stringMatching(/ quiet$/) as unknown },
    });
  });

  test.each([
    [
      ['--rendezvous-ip', '192.0.2.1'],
      'a rendezvous IP has no effect on this ISO: it lacks a rend',
    ],
    [['--hostname', `${MAC}=a`], 'a host name has no effect on this ISO: it lacks the services'],
    [['--infraenv', 'manifest.yaml'], 'a manifest has no effect'],
    [['--infraenv', 'cluster.yaml'], 'a ClusterImageSet has no effect'],
  ])('refuses %j with the reason', async (args, text) => {
    await expectRefused([3, 'customize.no-effect', text], ...args, '--in-place');
  });

  test('warns of the members of a resource that have no effect', async () => {
    const { exitCode, stderr } = await world.run(
      ...['customize', 'x.iso', '--infraenv', 'labels.yaml', '--in-place', '--force'],
    );
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining('warning: spec.agentLabels of the InfraEnv has no effect'),
    ]);
  });

  test('has the guards of CoreOS’s own tool', async () => {
    const key = ['--ssh-key', TEST_SSH_KEY];
    await expectRefused([2, 'usage.proxy', 'no proxy is set'], '--no-proxy', 'a', '--in-place');
    await writeFile(at('rubbish.yaml'), 'interfaces: [');
    const rubbish = ['--nmstate', 'rubbish.yaml', '--in-place'];
    await expectRefused([3, 'nmstate.malformed', 'rubbish.yaml is not YAML'], ...rubbish);
    const long = ['--kargs-append', 'a'.repeat(2048), '--in-place'];
    await expectRefused([2, 'kargs.too-large', 'kernel arguments take 2131 bytes'], ...long);
    await done('customize', 'x.iso', '--kargs-append', 'quiet', '--in-place');
    await expectRefused([2, 'customize.already', 'other kernel arguments'], ...key, '--in-place');
    await done('customize', 'x.iso', ...key, '--force', '--in-place');
    await expectRefused(
      [2, 'customize.already', 'an embedded Ignition config'],
      ...key,
      '--in-place',
    );
    await truncate(at('x.iso'), (await stat(at('x.iso'))).size - 2 ** 20);
    await expectRefused([5, 'iso.truncated', 'ISO image is incomplete'], ...key, '--in-place');
  });

  test('has the guards of CoreOS’s own tool for ISOs that lack a part', async () => {
    const state = 'interfaces: [{name: eth0, type: ethernet, ipv4: {enabled: true, dhcp: true}}]\n';
    await writeFile(at('net.yaml'), state);
    const net = ['--nmstate', 'net.yaml', '--in-place'];
    const twice = ['--nmstate', 'net.yaml', ...net];
    await expectRefused([2, 'customize.keyfile', 'eth0.nmconnection'], ...twice);
    const folder = join(world.directory, 'old');
    await mkdir(folder);
    const without = ['coreos/features.json', 'coreos/kargs.json'];
    await copyFile(await makeCoreosIso(folder, { without }), at('old.iso'));
    await copyFile(at('old.iso'), at('x.iso'));
    await expectRefused(
      [2, 'customize.no-network', 'does not support customizing network'],
      ...net,
    );
    const kargs = ['--kargs-append', 'a', '--in-place'];
    await expectRefused([2, 'customize.no-kargs', 'does not support customizing kernel'], ...kargs);
    await done('customize', 'x.iso', '--ssh-key', TEST_SSH_KEY, '--in-place');
    await done('customize', 'x.iso', '--reset', '--in-place');
    expect(sumOf('x.iso')).toBe(sumOf('old.iso'));
  });

  test('reads a remote ISO for a copy, and refuses to change it in place', async () => {
    await mkdir(at('files'));
    await copyFile(at('test.iso'), at('files/base.iso'));
    const port = await freePort();
    const nginx: Nginx = await startNginx(world.directory, port);
    try {
      const url = `http://127.0.0.1:${port}/base.iso`;
      await done('customize', url, ...VALUES, '--output', 'copy.iso');
      await done('customize', 'x.iso', ...VALUES, '--in-place');
      expect(sumOf('copy.iso')).toBe(sumOf('x.iso'));
      expect((await stat(at('copy.iso'))).mode & 0o777).toBe(0o600);
      for (const place of [url, 's3://bucket/base.iso', 'oci://q.example/base:1']) {
        const args = ['customize', place, ...VALUES, '--in-place'];
        const { exitCode, stderr } = await world.run(...args);
        expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.in-place]')]);
        expect(stderr).toContain('write a copy with --output');
      }
      const gone = await world.run('customize', `${url}.gone`, ...VALUES, '--output', 'gone.iso');
      expect([gone.exitCode, gone.stderr]).toEqual([4, expect.stringContaining('404')]);
      expect((await readdir(world.directory)).filter((name) => name.startsWith('gone'))).toEqual(
        [],
      );
    } finally {
      await nginx.kill();
    }
  });

  test.skipIf(!mayAttachLoops())(
    'changes a block device, and saves its old bytes elsewhere',
    async () => {
      await done('customize', 'x.iso', ...VALUES, '--output', 'whole.iso');
      const device = attachLoop(at('x.iso'));
      try {
        const place = [device.path, '--in-place', '--work-dir', 'work'];
        await done('customize', ...place, ...VALUES);
        expect(sumOf(device.path)).toBe(sumOf('whole.iso'));
        await done('customize', ...place, '--reset');
        expect(sumOf(device.path)).toBe(sumOf('test.iso'));
        expect(await readdir(at('work/devices'))).toEqual([]);
      } finally {
        device.detach();
      }
      const locked = attachLoop(at('x.iso'), ['--read-only']);
      try {
        const { exitCode, stderr } = await world.run(
          'customize',
          locked.path,
          '--in-place',
          ...VALUES,
        );
        expect([exitCode, stderr]).toEqual([7, expect.stringContaining('[output.unwritable]')]);
      } finally {
        locked.detach();
      }
    },
  );
});

describe.skipIf(!hasTools)('an archive for network boot', () => {
  test('is not extracted from an ISO of sealift, whose registry is on the mounted ISO', async () => {
    const world = await createLiveWorld();
    try {
      await world.writeConfig();
      await expectDone(world, 'build', '--output', 'own.iso');
      for (const kind of ['pxe', 'minimal-iso', 'rootfs']) {
        const { exitCode, stderr } = await world.run('extract', kind, 'own.iso', '--out', 'parts');
        expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[extract.own-medium]')]);
        expect(stderr).toContain(
          'serves its registry from the mounted ISO, and cannot boot without it',
        );
      }
      expect(await readdir(world.directory)).not.toContain('parts');
    } finally {
      await world.close();
    }
  });
});
