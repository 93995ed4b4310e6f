import { link, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { runProcess } from '../../src/base/process.ts';
import { readServingUrl, startSealift, type Child } from '../support/child.ts';
import { downloadThroughPage, hasBrowser } from '../support/page.ts';
import { SENTINEL } from '../support/sentinel.ts';
import { hasBootHost } from './boot-host.ts';
import { listPageValues, NTP, PROXY, PULL_SECRET, SSH_KEY, writeResources } from './customer.ts';
import { shareLiveMedium, type LiveMedium } from './live-medium.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';

const canBoot = hasBootHost() && hasBrowser;

describe.skipIf(!canBoot)('a host that boots the ISO that its customer downloaded', () => {
  let work = '';
  let medium: LiveMedium;
  let server: Child;
  let url = '';
  let proofs: readonly string[] = [];

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'customer-'));
    medium = await shareLiveMedium(AbortSignal.timeout(1_500_000));
    await mkdir(join(work, 'store'));
    await link(medium.iso, join(work, 'store/appliance.iso'));
    await writeFile(join(work, 'serve.key'), 'a key that has 32 bytes or more of text');
    server = startSealift(
      ['serve', '--listen', '127.0.0.1:0', '--data', 'data', '--store', 'store'].concat(
        ...['--key', 'file:serve.key'],
      ),
      { cwd: work },
    );
    const values = listPageValues(medium.proof);
    const downloaded = join(work, 'downloaded.iso');
    ({ url } = await downloadThroughPage(await readServingUrl(server), values, downloaded));
    const { lines, seconds } = await boot({
      iso: join(work, 'downloaded.iso'),
      firmware: 'seabios',
      as: 'disk',
      until: /PROOF done/,
      fail: BOOT_FAILURES,
    });
    proofs = lines.filter((line) => line.startsWith('PROOF '));
    console.log(`${seconds.toFixed(0)} s\n${proofs.join('\n')}`);
  }, 3_600_000);

  afterAll(async () => {
    server.process.kill('SIGTERM');
    expect((await server.ended).code).toBe(143);
    await rm(work, { recursive: true, force: true });
  });

  /** Mode and owner, path, bytes, as the guest has them. */
  const files = (): readonly (readonly [string, string, string])[] =>
    proofs.flatMap((line) => {
      const [, status = '', path = '', bytes = ''] =
        /^PROOF site file (\d+ \w+) (\S+) ?(\S*)$/.exec(line) ?? [];
      return path === '' ? [] : [[status, path, Buffer.from(bytes, 'base64').toString()] as const];
    });
  const fileOf = (path: string): string => files().find(([, found]) => found === path)?.[2] ?? '';

  it('lets core log in with the key of the customer and no other', () => {
    const keys = files().filter(([, path]) => path.includes('authorized_keys'));
    expect(keys.map(([status, , text]) => [status, text.trim()])).toEqual([['600 core', SSH_KEY]]);
  });

  it('has the pull secret in the files that podman and the agent services read', () => {
    expect(proofs.join('\n')).toMatch(/^PROOF pull-secret mode ok 600 root:root/m);
    expect(JSON.parse(fileOf('/root/.docker/config.json'))).toEqual(PULL_SECRET);
    const secret = parse(fileOf('/etc/assisted/manifests/pull-secret.yaml')) as unknown;
    expect(secret).toMatchObject({
      metadata: { name: 'pull-secret' },
      stringData: { '.dockerconfigjson': JSON.stringify(PULL_SECRET, null, 2) },
    });
  });

  it('gives the values of the customer to the agent services', () => {
    expect(files()).toContainEqual(['644 root', '/etc/assisted/interactive-ui', '']);
    expect(fileOf('/etc/assisted/rendezvous-host.env').split('\n').slice(0, 3)).toEqual([
      '#',
      'NODE_ZERO_IP=192.0.2.10',
      'SERVICE_BASE_URL=http://192.0.2.10:8090/',
    ]);
    expect(parse(fileOf('/etc/assisted/manifests/infraenv.yaml'))).toMatchObject({
      metadata: { name: 'edge' },
      spec: {
        sshAuthorizedKey: SSH_KEY,
        additionalNTPSources: NTP,
        proxy: {
          httpProxy: PROXY.http_proxy,
          httpsProxy: PROXY.https_proxy,
          noProxy: PROXY.no_proxy,
        },
      },
    });
  });

  it('starts its services with the proxy', () => {
    const { http_proxy, https_proxy, no_proxy } = PROXY;
    expect(proofs).toContain(`PROOF site environment ${http_proxy} ${https_proxy} ${no_proxy}`);
  });

  it('has the profile of its interface before NetworkManager starts and brings the interface up', () => {
    const profiles = files().filter(([, path]) => path.startsWith('/etc/NetworkManager/'));
    expect(profiles).toHaveLength(1);
    const [status, path, text] = profiles[0] ?? ['', '', ''];
    const nic = /([^/]*)\.nmconnection$/.exec(path)?.[1] ?? '';
    expect([status, text]).toEqual([
      '600 root',
      expect.stringMatching(new RegExp(`^interface-name=${nic}$`, 'm')),
    ]);
    expect(text).not.toContain('nic0\n');
    const [, placed, started] =
      /^PROOF site success \S+ (\d+) (\d+)$/m.exec(proofs.join('\n')) ?? [];
    expect(Number(placed)).toBeGreaterThan(0);
    expect(Number(started)).toBeGreaterThanOrEqual(Number(placed));
    const addresses = proofs.find((line) => line.startsWith('PROOF site addresses'));
    expect(addresses).toMatch(new RegExp(`:${nic} .*\\b${nic} inet 192\\.0\\.2\\.10/24 `));
    expect(addresses).toMatch(new RegExp(`default via 192\\.0\\.2\\.1 dev ${nic}`));
  });

  it('pulls the images of the release by digest from the registry of its ISO', () => {
    const text = proofs.join('\n');
    expect(text).toMatch(/^PROOF registry tls 22625 ok/m);
    expect(text).toMatch(/^PROOF pull component sha256:[0-9a-f]{64} ok quay\.io/m);
    expect(text).toMatch(/^PROOF pull additional sha256:[0-9a-f]{64} ok quay\.io/m);
    expect(text).toMatch(/^PROOF files \d+ ok/m);
  });

  it('has the same bytes as a client that resumed its download after 30 MB', async () => {
    const options = { cwd: work };
    await runProcess('sh', ['-c', 'curl -sS "$0" | head -c 30000000 >resumed.iso', url], options);
    await runProcess('curl', ['-sS', '--fail', '-C', '-', '-o', 'resumed.iso', url], options);
    await runProcess('cmp', ['resumed.iso', 'downloaded.iso'], options);
    await rm(join(work, 'resumed.iso'));
    const { size } = await stat(medium.iso);
    expect((await stat(join(work, 'downloaded.iso'))).size).toBe(size);
  });

  it('has an ISO that verifies as customised', async () => {
    const { code, stdout } = await startSealift(['verify', 'downloaded.iso', '-o', 'json'], {
      cwd: work,
    }).ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, customised: true });
  });

  it('has the config and the menus that `sealift customize` makes in place with these values', async () => {
    await runProcess('cp', ['--reflink=auto', medium.iso, 'in-place.iso'], { cwd: work });
    await writeFile(join(work, 'site.yaml'), writeResources(medium.proof));
    await writeFile(join(work, 'sentinel.ign'), SENTINEL);
    const { code, stderr } = await startSealift(
      [
        ...['customize', 'in-place.iso', '--in-place', '--force', '--infraenv', 'site.yaml'],
        ...['--rendezvous-ip', '192.0.2.10', '--ignition-override', 'sentinel.ign'],
      ],
      { cwd: work },
    ).ended;
    expect(code, stderr).toBe(0);
    const [served, inPlace] = await Promise.all(
      ['downloaded.iso', 'in-place.iso'].map((name) => readAreas(work, name)),
    );
    expect(served).toEqual(inPlace);
  });
});

/** With other names in the service than in the resources. */
const NAMED = /^\/etc\/assisted\/manifests\/(?:infraenv|pull-secret)\.yaml$/;

/** As xorriso, gzip and cpio read them. */
async function readAreas(work: string, name: string): Promise<readonly unknown[]> {
  const folder = join(work, `${name}.areas`);
  const paths = ['images/ignition.img', 'isolinux/isolinux.cfg', 'EFI/redhat/grub.cfg'];
  const extract = paths.flatMap((path) => ['-extract', `/${path}`, join(folder, path)]);
  await runProcess('xorriso', ['-osirrox', 'on', '-indev', join(work, name), ...extract]);
  const unpack = 'gzip -dcq "$0" 2>/dev/null | cpio -i --to-stdout --quiet config.ign';
  const [area = '', ...menus] = paths.map((path) => join(folder, path));
  const { stdout } = await runProcess('sh', ['-c', unpack, area]);
  const config = JSON.parse(stdout) as { storage: { files: { path: string }[] } };
  const { files } = config.storage;
  expect(files.filter(({ path }) => NAMED.test(path))).toHaveLength(2);
  config.storage.files = files.filter(({ path }) => !NAMED.test(path));
  return [config, ...(await Promise.all(menus.map((path) => readFile(path, 'utf8'))))];
}
