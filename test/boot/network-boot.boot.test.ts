import { link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { readServingUrl, startSealift, type Child } from '../support/child.ts';
import { API } from '../support/service.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { PULL_SECRET, SSH_KEY } from './customer.ts';
import { boot, BOOT_FAILURES, type BootOptions } from './qemu.ts';

const VERSION = '4.21.3';
/** What a guest reaches the service as. */
const PUBLIC = 'http://10.0.2.100';
/** Words that iPXE and the shell have meanings for elsewhere. */
const ODD = 'a.b="c d" e=f#g h=i&j|k;l m=$n o=%20 p=\\q\\ r=\'s\' {t}';
/** Linux on x86_64 has 2,048 bytes with the zero at their end, and cuts what is more. */
const LONGEST = 2047;
/** iPXE gives the kernel its own file name as the first word where the firmware is UEFI. */
const EFI_NAME = 'kernel ';

const FAILURES = new RegExp(`${BOOT_FAILURES.source}|Could not boot image`);

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

  async function create(path: string, body: object): Promise<string> {
    return (JSON.parse(await ask('POST', path, body)) as { readonly id: string }).id;
  }

  const askFile = (name: string): Promise<string> =>
    ask('GET', `infra-envs/${infraEnv}/downloads/files?file_name=${name}`);

  /** With as many kernel arguments as a kernel takes. */
  async function createInfraEnv(): Promise<string> {
    const name = 'edge';
    const cluster = await create('clusters/disconnected', { name, openshift_version: VERSION });
    const values = ['sealift.proof.initramfs', ODD, 'first='.padEnd(900, 'x')];
    infraEnv = await create('infra-envs', {
      ...{ name, cluster_id: cluster, kernel_arguments: append(values) },
      ...{ ssh_authorized_key: SSH_KEY, pull_secret: JSON.stringify(PULL_SECRET) },
    });
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
    const image = new URL((JSON.parse(text) as { readonly url: string }).url);
    return image.pathname.split('/')[2] ?? '';
  }

  async function bootNetwork(
    firmware: BootOptions['firmware'],
    script: string,
  ): Promise<readonly string[]> {
    const tftp = await mkdtemp(join(work, 'tftp-'));
    await writeFile(join(tftp, 'boot.ipxe'), script);
    const { lines, seconds } = await boot({
      ...{ as: 'network', tftp, firmware, server: new URL(url).host },
      ...{ timeoutMs: 600_000, until: /PROOF done/, fail: FAILURES },
    });
    console.log(`${firmware}: ${seconds.toFixed(0)} s`);
    return lines.filter((line) => line.startsWith('PROOF '));
  }

  /** By foreign programs, of what the service has. */
  async function listExpected(name: string): Promise<readonly string[]> {
    const rootfs = join(work, 'rootfs.img');
    await runProcess('sh', [
      '-c',
      'bsdtar -xOf "$0" images/pxeboot/rootfs.img >"$1"',
      base,
      rootfs,
    ]);
    const { stdout } = await runProcess('sha256sum', [rootfs]);
    const config = await runProcess('sha256sum', [], { input: await askFile('discovery.ign') });
    return [
      `PROOF arguments ${name}${await readArguments()}`,
      `PROOF rootfs ${stdout.slice(0, 64)}  -`,
      `PROOF config ${config.stdout.slice(0, 64)}  -`,
      `PROOF key ${SSH_KEY}`,
      'PROOF done',
    ];
  }

  it('boots what its customer wants with iPXE on BIOS, which has nothing but a token', async () => {
    const script = `${PUBLIC}${API}/v2/infra-envs/${infraEnv}/downloads/files?file_name=ipxe-script`;
    const chain = `chain ${script}&mac=\${mac}&api_key=${await readUrlToken()}`;
    const proofs = await bootNetwork('seabios', `#!ipxe\n${chain}\n`);
    expect(proofs).toEqual(await listExpected(''));
  });

  it('boots the same with iPXE on UEFI by a script that was stored', async () => {
    expect(await readArguments()).toHaveLength(LONGEST - EFI_NAME.length);
    const proofs = await bootNetwork('ovmf', await askFile('ipxe-script'));
    expect(proofs).toEqual(await listExpected(EFI_NAME));
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
