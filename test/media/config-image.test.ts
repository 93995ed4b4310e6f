import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerConfigIso } from '../../src/cli/config-iso/build.ts';
import { encodeCpio } from '../../src/ignition/cpio.ts';
import { textFile } from '../../src/ignition/config.ts';
import { checkConfigImage, type ConfigImageCheck } from '../../src/media/config-image.ts';
import {
  configImageMembers,
  formatImageSet,
  IMAGE_SET_PATH,
  makeConfigImage,
  makeLiveMedium,
  packConfigArchive,
  RELEASE_IMAGE,
  REQUIRED_FILES,
  unconfiguredIgnition,
  type ImageOptions,
  type Members,
} from '../support/config-image.ts';
import { makeIso } from '../support/iso.ts';
import { runCommand } from '../support/run-command.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso', 'bsdtar', 'cpio', 'openssl'].every(
  requireTool,
);

describe.skipIf(!hasTools)('a configuration image checked against a medium', () => {
  let directory: string;
  let medium: string;
  let members: Members;
  let good: string;
  let count = 0;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-config-image-'));
    medium = await makeLiveMedium(directory);
    members = configImageMembers();
    good = await makeImage(members);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  async function makeImage(
    content: Members | Uint8Array,
    options: Omit<ImageOptions, 'name'> = {},
  ): Promise<string> {
    const archive =
      content instanceof Uint8Array ? content : await packConfigArchive(directory, content);
    return makeConfigImage(directory, archive, { ...options, name: `image-${++count}.iso` });
  }

  const check = (image: string, ...args: string[]) =>
    runCommand(registerConfigIso, ['config-iso', 'check', image, '--medium', medium, ...args], {
      cwd: directory,
    });

  const checkImage = (image: string, medium: string): Promise<ConfigImageCheck> =>
    checkConfigImage({ path: image, shownAs: 'image' }, { path: medium, shownAs: 'medium' });

  const codesOf = ({ obstacles }: ConfigImageCheck): readonly string[] =>
    obstacles.map(({ code }) => code);

  const without = (...paths: readonly string[]): Members =>
    Object.fromEntries(Object.entries(members).filter(([path]) => !paths.includes(path)));

  it('is accepted when the installer of the medium made it, and its cluster is described', async () => {
    const { exitCode, stdout } = await check(good, '-o', 'json');
    expect(exitCode, stdout).toBe(0);
    const result = JSON.parse(stdout) as ConfigImageCheck;
    expect(result).toMatchObject({
      fits: true,
      obstacles: [],
      cautions: [],
      releaseImage: RELEASE_IMAGE,
      cluster: {
        nodes: { masters: 3, arbiters: 0, workers: 2 },
        hosts: 1,
        rendezvousIp: '192.168.111.80',
      },
    });
    const certificate = members['/opt/agent/tls/kube-apiserver-lb-signer.crt'];
    const dates = execFileSync('openssl', ['x509', '-noout', '-dates', '-dateopt', 'iso_8601'], {
      encoding: 'utf8',
      input: certificate,
    });
    const found = result.cluster?.certificates.map(({ notBefore, notAfter }) =>
      `notBefore=${notBefore}\nnotAfter=${notAfter}\n`.replaceAll('T', ' '),
    );
    expect(found).toEqual([dates, dates, dates, dates]);
    const text = await check(good);
    expect(text.stdout).toContain('nodes          3 masters, 0 arbiters, 2 workers; 1 hosts');
    expect(text.stdout + stdout).not.toMatch(/secret-token|PRIVATE KEY|BEGIN CERT/);
  });

  it('has members that GNU cpio lists with absolute names', async () => {
    const archive = await packConfigArchive(directory, members);
    const names = execFileSync('sh', ['-c', 'gunzip | cpio -it --quiet'], {
      encoding: 'utf8',
      input: archive,
    });
    expect(names.trim().split('\n').sort()).toEqual(Object.keys(members).sort());
  });

  it('is refused when the installer of another release made it', async () => {
    const other = `quay.io/openshift-release-dev/ocp-release@sha256:${'b'.repeat(64)}`;
    const image = await makeImage({ ...members, [IMAGE_SET_PATH]: formatImageSet(other) });
    const { exitCode, stdout, stderr } = await check(image);
    expect(exitCode).toBe(8);
    expect(stdout).toContain(`${image}: the image was made by the installer of another release`);
    expect(stdout).toContain(`  expected ${RELEASE_IMAGE}\n  found    ${other}\n`);
    expect(stdout).toContain('sealift extract installer');
    expect(stderr).toContain('config-image.refused');
  });

  it('is refused when its install-config gave a namespace to its cluster-image-set', async () => {
    const imageSet = formatImageSet(RELEASE_IMAGE, 'cluster0');
    const result = await checkImage(
      await makeImage({ ...members, [IMAGE_SET_PATH]: imageSet }),
      medium,
    );
    expect(result.obstacles).toMatchObject([{ code: 'image.namespace', found: 'cluster0' }]);
  });

  it('is refused when its cluster-image-set has one more byte', async () => {
    const imageSet = `${formatImageSet(RELEASE_IMAGE)}\n`;
    const result = await checkImage(
      await makeImage({ ...members, [IMAGE_SET_PATH]: imageSet }),
      medium,
    );
    expect(codesOf(result)).toEqual(['image.cluster-image-set']);
  });

  it('is refused for each required file that neither it nor the live system has', async () => {
    const live = [
      '/etc/issue',
      '/root/.docker/config.json',
      '/etc/assisted/manifests/infraenv.yaml',
    ];
    const result = await checkImage(await makeImage(without(...REQUIRED_FILES)), medium);
    const missing = REQUIRED_FILES.filter((path) => !live.includes(path));
    expect(result.obstacles.map(({ expected }) => expected).sort()).toEqual(missing.toSorted());
    expect(new Set(codesOf(result))).toEqual(new Set(['image.missing-member']));
    for (const path of live) {
      expect(result.cautions).toContain(`the image has no ${path}: the file of the medium remains`);
    }
  });

  it('is refused for names without a leading slash, which the loader does not find', async () => {
    const relative = Object.fromEntries(
      Object.entries(members).map(([path, text]) => [path.slice(1), text]),
    );
    const result = await checkImage(await makeImage(relative), medium);
    expect(result.obstacles).toContainEqual({
      severity: 'error',
      code: 'image.missing-member',
      file: 'image',
      problem: '/config.gz has no /opt/agent/tls/kubeadmin-password.hash',
      expected: '/opt/agent/tls/kubeadmin-password.hash',
      found: 'opt/agent/tls/kubeadmin-password.hash',
      hint: 'pack the members with absolute names',
    });
  });

  it('is refused for a wrong label', async () => {
    const image = await makeImage(members, { label: 'AGENT_CONFIGIMAGE' });
    const { obstacles } = await checkImage(image, medium);
    expect(obstacles).toMatchObject([
      { code: 'image.label', expected: 'agent_configimage', found: 'AGENT_CONFIGIMAGE' },
    ]);
  });

  it('is refused by an interactive medium, and by a medium without the assisted installer', async () => {
    const config = unconfiguredIgnition();
    const files = [
      ...(config.storage?.files ?? []),
      textFile('/etc/assisted/no-config-image', '', 0o644),
    ];
    const interactive = await makeLiveMedium(directory, { ...config, storage: { files } });
    const found = await checkImage(good, interactive);
    expect(found.obstacles).toMatchObject([{ code: 'medium.interactive', file: 'medium' }]);
    const bare = await makeLiveMedium(directory, { ignition: { version: '3.2.0' } });
    expect(codesOf(await checkImage(good, bare))).toEqual(['medium.no-loader']);
  });

  it('is accepted with a warning for each content that keeps the installation from starting', async () => {
    const host = '/etc/assisted/hostconfig';
    const result = await checkImage(
      await makeImage({
        ...members,
        [`${host}/a/mac_addresses`]: '52:54:00:00:00:0a\n',
        [`${host}/b/mac_addresses`]: '52:54:00:00:00:0b\n',
        '/usr/local/share/start-cluster/start-cluster.env': 'REQUIRED_MASTER_NODES=1\n',
        '/etc/assisted/rendezvous-host.env': 'NODE_ZERO_IP={{.RendezvousIP}}\n',
      }),
      medium,
    );
    expect(result.fits).toBe(true);
    expect(result.cautions).toEqual([
      'the rendezvous IP is "{{.RendezvousIP}}", so no host becomes the rendezvous host',
      '3 hosts are configured, but the cluster has 1 nodes: it waits forever',
    ]);
  });

  it('is accepted with a warning if the medium has networks or another operating system', async () => {
    const network = '/etc/assisted/network';
    const config = unconfiguredIgnition();
    const profile = textFile(`${network}/host0/eth0.nmconnection`, '[connection]\n', 0o600);
    const files = [...(config.storage?.files ?? []), profile];
    const own = await makeLiveMedium(directory, { ...config, storage: { files } });
    const overrides = '{"fips":true,"osImageStream":"rhel-10"}';
    const image = await makeImage({
      ...members,
      [`${network}/host0/ens3.nmconnection`]: '[connection]\n',
      [`${network}/host1/ens3.nmconnection`]: '[connection]\n',
      '/etc/assisted/manifests/agent-cluster-install.yaml': `metadata:\n  annotations:\n    agent-install.openshift.io/install-config-overrides: '${overrides}'\n`,
    });
    const { fits, cautions } = await checkImage(image, own);
    expect(fits).toBe(true);
    expect(cautions).toEqual([
      'the image has osImageStream rhel-10, but the medium boots rhel-9: hosts change the operating system while they install',
      'the medium has networks (host0) and the image too (host0, host1): hosts get a mixture of both',
    ]);
    expect((await checkImage(image, medium)).cautions).toHaveLength(1);
  });

  it('is refused for checksums of members, which the loader does not read', async () => {
    const archive = await packConfigArchive(directory, members);
    const text = gunzipSync(archive).toString('latin1').replaceAll('070701', '070702');
    const result = await checkImage(await makeImage(gzipSync(Buffer.from(text, 'latin1'))), medium);
    expect(codesOf(result)).toEqual(['image.archive']);
    expect(result.obstacles[0]?.problem).toContain('has a checksum');
  });

  describe('made by an attacker', () => {
    const pack = (extra: readonly Parameters<typeof encodeCpio>[0][number][]): Buffer =>
      gzipSync(
        encodeCpio([
          ...Object.entries(members).map(([name, text]) => ({
            name,
            mode: 0o100600,
            data: Buffer.from(text),
          })),
          ...extra,
        ]),
      );
    const obstaclesOf = async (archive: Uint8Array): Promise<ConfigImageCheck['obstacles']> =>
      (await checkImage(await makeImage(archive), medium)).obstacles;

    it('is refused for members whose path leads elsewhere, or that no file system takes', async () => {
      const data = new Uint8Array();
      const place = '/etc/assisted/manifests/';
      const names = [`${place}../../../root/.ssh/authorized_keys`, `${place}${'a'.repeat(256)}`];
      const more = ['/elsewhere/../x', `${place}..a/b`].map((name) => ({
        name,
        mode: 0o100600,
        data,
      }));
      const found = await obstaclesOf(
        pack([...names.map((name) => ({ name, mode: 0o100600, data })), ...more]),
      );
      expect(found.map(({ code, problem }) => [code, problem.split(': ')[1]])).toEqual(
        names.map((name) => ['image.special-member', name]),
      );
    });

    it('is refused for links and devices in place of members', async () => {
      const empty = new Uint8Array();
      const found = await obstaclesOf(
        pack([
          {
            name: '/etc/assisted/manifests/x.yaml',
            mode: 0o120777,
            data: Buffer.from('/etc/shadow'),
          },
          { name: '/etc/assisted/network/host0', mode: 0o060600, data: empty },
          { name: '/etc/assisted/network', mode: 0o040755, data: empty },
          { name: '/somewhere/else', mode: 0o010600, data: empty },
        ]),
      );
      expect(found).toMatchObject([
        { code: 'image.special-member', found: 'a symbolic link' },
        { code: 'image.special-member', found: 'a block device' },
      ]);
    });

    it('is refused in little memory for an archive that unpacks to gigabytes', async () => {
      const before = process.memoryUsage().rss;
      const found = await obstaclesOf(gzipBomb(4096));
      expect(found).toMatchObject([{ code: 'image.archive' }]);
      expect(found[0]?.problem).toContain('unpacks to more than 33554432 bytes');
      expect(process.memoryUsage().rss - before).toBeLessThan(256 << 20);
    });

    it('is refused for wrong sizes in the archive', async () => {
      const cpio = Buffer.from(
        encodeCpio([{ name: '/etc/issue', mode: 0o100644, data: Buffer.from('x') }]),
      );
      const lie = (at: number): Buffer => {
        const copy = Buffer.from(cpio);
        copy.write('FFFFFFFF', at, 'latin1');
        return gzipSync(copy);
      };
      for (const field of [6 + 6 * 8, 6 + 11 * 8]) {
        expect(await obstaclesOf(lie(field))).toMatchObject([{ code: 'image.archive' }]);
      }
    });

    it('is refused for an archive that is truncated, not gzip, or absent', async () => {
      const whole = pack([]);
      for (const archive of [
        whole.subarray(0, whole.length / 2),
        Buffer.from('no gzip'),
        gzipSync('x'),
      ]) {
        expect(await obstaclesOf(archive)).toMatchObject([{ code: 'image.archive' }]);
      }
      const absent = await makeImage(members, { file: 'other.gz' });
      expect(codesOf(await checkImage(absent, medium))).toEqual(['image.no-archive']);
      const upper = await makeImage(members, { file: 'CONFIG.GZ' });
      expect(codesOf(await checkImage(upper, medium))).toEqual(['image.no-archive']);
      const link = await makeConfigImage(
        directory,
        { symlink: '/etc/passwd' },
        { name: 'link.iso' },
      );
      expect(codesOf(await checkImage(link, medium))).toEqual(['image.no-archive']);
    });

    it('is refused for an archive of more than 16 MiB, which is not read', async () => {
      const noise = Buffer.alloc((16 << 20) + 1, 0x1f);
      expect(await obstaclesOf(noise)).toMatchObject([{ code: 'image.archive' }]);
    });

    it('is refused with a report of at most 20 special members out of 20,000', async () => {
      const many = Array.from({ length: 20_000 }, (_, index) => ({
        name: `/etc/assisted/network/${index}`,
        mode: 0o010600,
        data: new Uint8Array(),
      }));
      expect(await obstaclesOf(pack(many))).toHaveLength(20);
    });

    it('is refused for two cluster-image-sets, which the loader sees as one text', async () => {
      const data = Buffer.from(formatImageSet(RELEASE_IMAGE));
      const found = await obstaclesOf(pack([{ name: IMAGE_SET_PATH, mode: 0o100600, data }]));
      expect(found).toMatchObject([{ code: 'image.cluster-image-set' }]);
    });

    it('is described without control characters for the terminal', async () => {
      const label = 'agent_configimage';
      const env = 'NODE_ZERO_IP=\u001b[2J1.2.3.4\n';
      const image = await makeImage(
        { ...members, '/etc/assisted/rendezvous-host.env': env },
        { label },
      );
      // eslint-disable-next-line no-control-regex -- it is what is looked for
      expect((await check(image)).stdout).not.toMatch(/\u001b/);
    });
  });

  it('is reported as unreadable when it does not exist, and when it is not an ISO', async () => {
    expect((await check('absent.iso')).exitCode).toBe(3);
    const other = await makeIso(directory, { files: { 'a.txt': 'a' } }, 'other.iso');
    expect(codesOf(await checkImage(other, medium))).toEqual(['image.label', 'image.no-archive']);
    await expect(checkImage(good, other)).rejects.toMatchObject({ exitCode: 5 });
  });
});

/** A gzip file of so many MiB of zeros, made without them: one deflated block many times. */
function gzipBomb(mebibytes: number): Buffer {
  const member = gzipSync(Buffer.alloc(1 << 20));
  expect(crc32(Buffer.alloc(1 << 20))).toBe(member.readUInt32LE(member.length - 8));
  return Buffer.concat(Array.from({ length: mebibytes }, () => member));
}
