import { link, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { readServingUrl, startSealift, type Child } from '../support/child.ts';
import { recordRequests } from '../support/recorded-requests.ts';
import { API } from '../support/service.ts';
import { buildBaseIso, DEFAULT_KARGS } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { PULL_SECRET, SSH_KEY } from './customer.ts';
import { boot, BOOT_FAILURES, type Source } from './qemu.ts';

const VERSION = '4.21.3';
/** What a guest reaches the service as. */
const PUBLIC = 'http://10.0.2.100';
/** Words that iPXE and the shell have meanings for elsewhere. */
const ODD = ['a.b="c d"', 'e=f#g', 'h=i&j|k;l', 'm=$n', 'o=%20', 'p=\\q', "r='s'", '{t}'];
/** Linux on x86_64 has 2,048 bytes with the zero at their end, and cuts what is more. */
const LONGEST = 2047;
/** Words of ISOLINUX before the arguments of its menu. */
const ISOLINUX =
  'BOOT_IMAGE=/images/pxeboot/vmlinuz initrd=/images/pxeboot/initrd.img,/images/ignition.img ';
/** iPXE gives the kernel its own file name as the first word where the firmware is UEFI. */
const EFI_NAME = 'kernel ';

const FAILURES = new RegExp(`${BOOT_FAILURES.source}|Could not boot image`);

type Created = { readonly id: string; readonly download_url: string };

type Firmware = Source['firmware'];

describe.skipIf(!hasBootHost())('a machine without a disk', () => {
  let work = '';
  let base = '';
  let url = '';
  let server: Child;
  let token = '';
  let infraEnv = '';

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'network-boot-'));
    base = await buildBaseIso(BOOT_CACHE);
    await writeStore(work, base);
    await sealift('token', 'keys', '--out', '.');
    const claims = ['--user', 'alice', '--org', '7', '--lifetime', '1h'];
    token = await sealift('token', 'issue', '--private-key', 'file:issuer.key', ...claims);
    server = startSealift(
      [
        ...['serve', '--listen', '127.0.0.1:0', '--public-url', PUBLIC],
        ...['--auth', 'local', '--auth-keys', 'issuer.pub'],
        ...['--data', 'data', '--store', 'store', '--key', 'file:serve.key'],
      ],
      { cwd: work },
    );
    url = await readServingUrl(server);
    infraEnv = await createInfraEnv();
  });

  afterAll(async () => {
    server.process.kill('SIGTERM');
    expect((await server.ended).code).toBe(143);
    await rm(work, { recursive: true, force: true });
  });

  async function sealift(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await startSealift(args, { cwd: work }).ended;
    expect(code, stderr).toBe(0);
    return stdout.trim();
  }

  async function ask(method: string, path: string, body?: object): Promise<string> {
    const answer = await fetch(`${url}${API}/v2/${path}`, {
      method,
      headers: { 'authorization': `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    expect(answer.ok, text).toBe(true);
    return text;
  }

  const create = async (path: string, body: object): Promise<Created> =>
    JSON.parse(await ask('POST', path, body)) as Created;

  const askFile = (name: string, id = infraEnv): Promise<string> =>
    ask('GET', `infra-envs/${id}/downloads/files?file_name=${name}`);

  async function order(values: object): Promise<Created> {
    const name = 'edge';
    const cluster = await create('clusters/disconnected', { name, openshift_version: VERSION });
    return create('infra-envs', {
      ...{ name, cluster_id: cluster.id, ...values },
      ...{ ssh_authorized_key: SSH_KEY, pull_secret: JSON.stringify(PULL_SECRET) },
    });
  }

  /** With as many kernel arguments as a kernel takes. */
  async function createInfraEnv(): Promise<string> {
    const values = [...ODD, 'first='.padEnd(900, 'x')];
    infraEnv = (await order({ kernel_arguments: append(values) })).id;
    const room = LONGEST - EFI_NAME.length - (await readArguments()).length;
    values.push('last='.padEnd(room - 1, 'x'));
    await ask('PATCH', `infra-envs/${infraEnv}`, { kernel_arguments: append(values) });
    return infraEnv;
  }

  /** What the script has behind the address of the kernel. */
  async function readArguments(): Promise<string> {
    const line = (await askFile('ipxe-script'))
      .split('\n')
      .find((each) => each.startsWith('kernel '));
    return line?.split(' ').slice(2).join(' ') ?? '';
  }

  /** A token of the InfraEnv, as a URL of its image has it. */
  async function readUrlToken(): Promise<string> {
    const text = await ask('GET', `infra-envs/${infraEnv}/downloads/image-url`);
    const { long_url: url } = JSON.parse(text) as { readonly long_url: string };
    return new URL(url).pathname.split('/')[2] ?? '';
  }

  async function prove(source: Source): Promise<readonly string[]> {
    const { lines, seconds } = await boot({
      ...{ ...source, server: new URL(url).host },
      ...{ until: /PROOF done/, fail: FAILURES },
    });
    console.log(`${source.firmware} ${source.as}: ${seconds.toFixed(0)} s`);
    return lines.filter((line) => line.startsWith('PROOF '));
  }

  async function bootNetwork(firmware: Firmware, script: string): Promise<readonly string[]> {
    const tftp = await mkdtemp(join(work, 'tftp-'));
    await writeFile(join(tftp, 'boot.ipxe'), script);
    return prove({ as: 'network', tftp, firmware });
  }

  /** As a foreign program reads it out of the ISO. */
  async function sumRootfs(pipe = 'cat'): Promise<string> {
    const command = `bsdtar -xOf "$0" images/pxeboot/rootfs.img | ${pipe} | sha256sum`;
    return (await runProcess('sh', ['-c', command, base])).stdout.trim();
  }

  async function listExpected(name: string): Promise<readonly string[]> {
    const config = await runProcess('sha256sum', [], { input: await askFile('discovery.ign') });
    return [
      `PROOF arguments ${name}${await readArguments()}`,
      `PROOF rootfs ${await sumRootfs()}`,
      `PROOF config ${config.stdout.trim()}`,
      `PROOF key ${SSH_KEY}`,
      'PROOF done',
    ];
  }

  it('boots its customised system with iPXE on BIOS, with only a token', async () => {
    const script = `${PUBLIC}${API}/v2/infra-envs/${infraEnv}/downloads/files?file_name=ipxe-script`;
    const chain = `chain ${script}&mac=\${mac}&api_key=${await readUrlToken()}`;
    const proofs = await bootNetwork('seabios', `#!ipxe\n${chain}\n`);
    expect(proofs).toEqual(await listExpected(''));
  });

  it('boots its customised system with iPXE on UEFI, by a stored script', async () => {
    expect(await readArguments()).toHaveLength(LONGEST - EFI_NAME.length);
    const proofs = await bootNetwork('ovmf', await askFile('ipxe-script'));
    expect(proofs).toEqual(await listExpected(EFI_NAME));
  });

  it('boots its customised ISO from the short URL, of which the drive reads ranges', async () => {
    const early = append(['sealift.proof.early', 'a.b="c d"']);
    const { id, download_url: short } = await order({ kernel_arguments: early });
    const recorder = await recordRequests(url);
    try {
      const from = recorder.via(url + new URL(short).pathname);
      const proofs = await prove({ as: 'url', url: from, firmware: 'seabios' });
      const config = await askFile('discovery.ign', id);
      const sum = await runProcess('sha256sum', [], { input: config });
      expect(proofs).toEqual([
        `PROOF arguments ${ISOLINUX}${DEFAULT_KARGS} sealift.proof.early a.b="c d"`,
        `PROOF rootfs ${await sumRootfs()}`,
        `PROOF config ${sum.stdout.trim()}`,
        `PROOF key ${SSH_KEY}`,
        'PROOF done',
      ]);
      const requests = recorder.requests();
      expect(requests.slice(0, 2).map(({ method }) => method)).toEqual(['HEAD', 'GET']);
      for (const { method, headers } of requests) {
        if (method === 'GET') expect(headers['range']).toMatch(/^bytes=\d+-\d+$/);
      }
      console.log(`${requests.length} requests`);
    } finally {
      recorder.close();
    }
  });

  it('boots the minimal ISO on UEFI, which gets its root file system from the service', async () => {
    const address = `${PUBLIC}/boot-artifacts/rootfs?version=${VERSION}`;
    const from = ['extract', 'minimal-iso', 'store/rhcos.iso', '--out', 'minimal'];
    await sealift(...from, '--rootfs-url', address);
    const iso = join(work, 'minimal/rhcos-minimal.iso');
    expect((await stat(iso)).size).toBeLessThan((await stat(base)).size / 2);
    const kargs = DEFAULT_KARGS.replace(/coreos\.liveiso=\S+ /, '');
    expect(await prove({ as: 'disk', iso, firmware: 'ovmf' })).toEqual([
      `PROOF arguments BOOT_IMAGE=/images/pxeboot/vmlinuz ${kargs} coreos.live.rootfs_url=${address}`,
      `PROOF rootfs ${await sumRootfs()}`,
      'PROOF done',
    ]);
  });

  it('boots extracted parts, with the root file system appended to the initrd', async () => {
    await sealift('extract', 'pxe', 'store/rhcos.iso', '--out', 'pxe');
    const [kernel, initrd] = [join(work, 'pxe/rhcos-vmlinuz'), join(work, 'pxe/both')];
    await runProcess('sh', ['-c', 'cat rhcos-initrd.img rhcos-rootfs.img >both'], {
      cwd: join(work, 'pxe'),
    });
    const kargs = 'ignition.firstboot ignition.platform.id=metal console=ttyS0,115200n8';
    expect(await prove({ as: 'kernel', kernel, initrd, kargs, firmware: 'seabios' })).toEqual([
      `PROOF arguments ${kargs}`,
      `PROOF rootfs ${await sumRootfs('cpio -i --quiet --to-stdout root.squashfs')}`,
      'PROOF done',
    ]);
  });
});

const append = (values: readonly string[]): readonly object[] =>
  values.map((value) => ({ operation: 'append', value }));

async function writeStore(work: string, base: string): Promise<void> {
  await mkdir(join(work, 'store'));
  await link(base, join(work, 'store/rhcos.iso')).catch(() =>
    runProcess('cp', ['--reflink=auto', base, join(work, 'store/rhcos.iso')]),
  );
  const image = { openshift_version: VERSION, cpu_architecture: 'x86_64', url: 'rhcos.iso' };
  await writeFile(join(work, 'store/os-images.json'), JSON.stringify([image]));
  await writeFile(join(work, 'serve.key'), 'a key that has 32 bytes or more of text');
}
