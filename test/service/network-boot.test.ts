import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IgnitionConfig } from '../../src/ignition/index.ts';
import { startSealift } from '../support/child.ts';
import { makeCoreosIso, makeIso } from '../support/iso.ts';
import {
  API,
  PULL_SECRET,
  SSH_KEY,
  startService,
  type Answer,
  type TestService,
} from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

const run = promisify(execFile);
const hasJudges = ['bsdtar', 'curl', 'cpio', 'genisoimage', 'isohybrid', 'mformat']
  .map(requireTool)
  .every(Boolean);
const VERSION = '4.21.3';
const MAINFRAME = '4.21.3-s390x-test';

/** Where RHCOS has what s390x boots; its embed area is in a boot image. */
const mainframeFiles = {
  'generic.ins': 'images/kernel.img 0x00000000\nimages/initrd.img 0x02000000\n',
  'images/initrd.addrsize': Buffer.from('00000000020000000000000000123456', 'hex'),
  'images/cdboot.img': 300_000,
  'images/pxeboot/kernel.img': 'a kernel',
  'images/pxeboot/initrd.img': 'an initrd of s390x',
  'coreos/igninfo.json': JSON.stringify({
    file: 'images/cdboot.img',
    length: 262_144,
    offset: 4096,
  }),
};

describe.skipIf(!hasJudges)('a live system that boots from the network', () => {
  let folder: string;
  let service: TestService;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-pxe-'));
    const store = join(folder, 'store');
    await mkdir(store);
    const files = {
      'images/pxeboot/initrd.img': 'an initrd, 19 bytes',
      'images/ignition.img': 65_536,
    };
    await makeCoreosIso(store, { files });
    await makeIso(store, { files: mainframeFiles }, 'mainframe.iso');
    const image = { cpu_architecture: 'x86_64', url: 'test.iso', version: '9.6.20260101-0' };
    const images = [
      { ...image, openshift_version: VERSION },
      { ...image, openshift_version: MAINFRAME, cpu_architecture: 's390x', url: 'mainframe.iso' },
    ];
    await writeFile(join(store, 'os-images.json'), JSON.stringify(images));
    service = await startService({ stores: [store] });
  });
  afterAll(async () => {
    await service.close();
    await rm(folder, { recursive: true });
  });

  const extract = async (path: string, iso = 'test.iso'): Promise<Buffer> => {
    const args = ['-xOf', join(folder, 'store', iso), path];
    return (await run('bsdtar', args, { encoding: 'buffer', maxBuffer: 1 << 28 })).stdout;
  };
  const get = async (url: string, ...args: string[]): Promise<Buffer> => {
    const where = url.startsWith('/') ? service.url + url : url;
    const curl = ['-sSf', ...args, where];
    return (await run('curl', curl, { encoding: 'buffer', maxBuffer: 1 << 28 })).stdout;
  };
  const reasonOf = async (path: string): Promise<unknown[]> => {
    const { status, body } = await service.call('GET', path);
    return [status, body['reason']];
  };
  const create = async (more: object = {}, version = VERSION): Promise<string> => {
    const cluster = await service.call('POST', `${API}/v2/clusters/disconnected`, {
      body: { name: 'edge', openshift_version: version },
    });
    const infraEnv = await service.call('POST', `${API}/v2/infra-envs`, {
      body: {
        name: 'edge',
        cluster_id: cluster.body['id'],
        pull_secret: PULL_SECRET,
        ssh_authorized_key: SSH_KEY,
        ...more,
      },
    });
    expect(infraEnv.status).toBe(201);
    return String(infraEnv.body['id']);
  };

  it('has the kernel and root file system that bsdtar finds in the ISO, also by ranges', async () => {
    for (const [name, path] of [
      ['kernel', 'images/pxeboot/vmlinuz'],
      ['rootfs', 'images/pxeboot/rootfs.img'],
    ] as const) {
      const expected = await extract(path);
      const url = `/boot-artifacts/${name}?version=${VERSION}`;
      expect((await service.call('HEAD', url)).headers.get('content-length')).toBe(
        String(expected.length),
      );
      expect((await get(url)).equals(expected)).toBe(true);
      expect((await get(url, '-r', '1-3')).equals(expected.subarray(1, 4))).toBe(true);
    }
    const ins = await get(`/boot-artifacts/ins-file?version=${MAINFRAME}&arch=s390x`);
    expect(ins.toString()).toBe(mainframeFiles['generic.ins']);
    const kernel = await get(`/boot-artifacts/kernel?version=${MAINFRAME}&arch=s390x`);
    expect(kernel.toString()).toBe('a kernel');
  });

  it('is refused with the name of the artifact if that does not exist', async () => {
    expect(await reasonOf('/boot-artifacts/kernel')).toEqual([400, "'version' parameter required"]);
    const ask = (name: string, more: string) => reasonOf(`/boot-artifacts/${name}?version=${more}`);
    expect((await ask('kernel', '4.21'))[0]).toBe(404);
    expect((await ask('kernel', `${VERSION}&arch=aarch64`))[0]).toBe(404);
    expect((await ask('..%2fkernel', VERSION))[0]).toBe(404);
    expect((await ask('constructor', VERSION))[0]).toBe(404);
    expect(await ask('ins-file', VERSION)).toEqual([404, 'the ISO has no generic.ins']);
    const id = await create();
    expect(await reasonOf(`/images/${id}/pxe-initrd`)).toEqual([
      400,
      "'version' parameter required",
    ]);
    expect((await reasonOf(`/images/${id}/pxe-initrd?version=4.21`))[0]).toBe(404);
    const query = `version=${VERSION}`;
    expect((await reasonOf(`/images/${id}/s390x-initrd-addrsize?${query}`))[0]).toBe(404);
    expect((await reasonOf(`/s390x-initrd-addrsize?${query}`))[0]).toBe(400);
  });

  it("has an initrd of two archives: the ISO's own, and one from which cpio reads key and secret", async () => {
    const id = await create();
    const base = await extract('images/pxeboot/initrd.img');
    const url = `/images/${id}/pxe-initrd?version=${VERSION}`;
    const initrd = await get(url);
    expect(initrd.subarray(0, base.length).equals(base)).toBe(true);
    const start = Math.ceil(base.length / 4) * 4;
    expect(initrd.subarray(base.length, start)).toEqual(Buffer.alloc(start - base.length));
    const archive = join(folder, 'archive');
    await writeFile(archive, initrd.subarray(start));
    const unpack = `gzip -dc ${archive} 2>/dev/null | cpio -i --to-stdout --quiet config.ign`;
    const { stdout: config } = await run('sh', ['-c', unpack]);
    expect(config).toContain(SSH_KEY);
    const discovery = `${API}/v2/infra-envs/${id}/downloads/files?file_name=discovery.ign`;
    expect((await service.call('GET', discovery)).text).toBe(config);
    const etag = (await service.call('HEAD', url)).headers.get('etag') ?? '';
    const range = await get(url, '-r', '10-40', '-H', `If-Range: ${etag}`);
    expect(range.equals(initrd.subarray(10, 41))).toBe(true);
    const area = await extract('images/ignition.img');
    expect(area.every((byte) => byte === 0)).toBe(true);
  });

  it('has the size of the whole initrd after its address on s390x', async () => {
    const id = await create({ cpu_architecture: 's390x' }, MAINFRAME);
    const query = `?version=${MAINFRAME}&arch=s390x`;
    const initrd = await get(`/images/${id}/pxe-initrd${query}`);
    const addrsize = await get(`/images/${id}/s390x-initrd-addrsize${query}`);
    expect(addrsize.subarray(0, 8).toString('hex')).toBe('0000000002000000');
    expect(addrsize.readBigUInt64BE(8)).toBe(BigInt(initrd.length));
    expect(addrsize).toHaveLength(16);
  });

  it('is started by a script whose URLs serve kernel, initrd and root file system', async () => {
    const id = await create({ kernel_arguments: [{ operation: 'append', value: 'a.b=c' }] });
    const files = `${API}/v2/infra-envs/${id}/downloads/files?file_name=ipxe-script`;
    const { text } = await service.call('GET', `${files}&mac=52:54:00:00:00:01`);
    const [first, initrd = '', kernel = '', last] = text.trimEnd().split('\n');
    expect([first, last]).toEqual(['#!ipxe', 'boot']);
    const [, , , , kernelUrl = '', ...kargs] = ['', '', '', ...kernel.split(' ')];
    expect((await get(kernelUrl)).equals(await extract('images/pxeboot/vmlinuz'))).toBe(true);
    const rootfs = kargs.find((word) => word.startsWith('coreos.live.rootfs_url=')) ?? '';
    expect(await get(rootfs.replace('coreos.live.rootfs_url=', ''))).toEqual(
      await extract('images/pxeboot/rootfs.img'),
    );
    expect(kargs).toEqual(expect.arrayContaining(['initrd=initrd', 'ignition.firstboot', 'a.b=c']));
    expect(kargs.join(' ')).not.toContain('coreos.liveiso');
    const initrdUrl = initrd.split(' ').at(-1) ?? '';
    expect((await get(initrdUrl)).subarray(0, 9).toString()).toBe('an initrd');
    await service.call('PATCH', `${API}/v2/infra-envs/${id}`, {
      body: { ntp_sources: '192.0.2.1' },
    });
    const { status } = await service.call('GET', initrdUrl.replace(service.url, ''));
    expect(status).toBe(410);
    expect((await service.call('GET', `${files}&mac=here`)).status).toBe(400);
    expect((await service.call('GET', `${files}&ipxe_script_type=x`)).status).toBe(400);
  });

  it.each([
    ['a=${b}', '"${", which iPXE replaces'],
    ['a="b #c"', 'a word that begins with "#", a comment to iPXE'],
    ['a="b && c"', 'the word "&&", "||" or ";", which ends a command of iPXE'],
    ['a="b ; c"', 'the word "&&", "||" or ";", which ends a command of iPXE'],
    ['a=b\\', '"\\" at its end, which makes iPXE continue on the next line'],
  ])(
    'refuses the kernel argument %s, which iPXE would not pass on unchanged',
    async (value, reason) => {
      const id = await create({ kernel_arguments: [{ operation: 'append', value }] });
      const files = `${API}/v2/infra-envs/${id}/downloads/files?file_name=ipxe-script`;
      expect(await reasonOf(files)).toEqual([400, `a kernel argument has ${reason}`]);
    },
  );

  it('refuses more kernel arguments than a kernel reads, to the byte', async () => {
    const ask = async (size: number): Promise<Answer> => {
      const values = ['a='.padEnd(900, 'x'), 'b='.padEnd(size, 'x')];
      const kernel_arguments = values.map((value) => ({ operation: 'append', value }));
      const id = await create({ kernel_arguments });
      const files = `${API}/v2/infra-envs/${id}/downloads/files?file_name=ipxe-script`;
      return service.call('GET', files);
    };
    const { text } = await ask(2);
    const line = /^kernel \S+ (.*)$/m.exec(text)?.[1] ?? '';
    const room = 2047 - 'kernel '.length - line.length + 2;
    const initrd = /^initrd --name initrd (.*)$/m.exec((await ask(room)).text)?.[1] ?? '';
    expect((await get(initrd)).length).toBeGreaterThan(0);
    const { status, body } = await ask(room + 1);
    expect([status, body['reason']]).toEqual([
      400,
      'the kernel reads at most 2047 bytes of arguments, but the ISO and the infra env have 2048',
    ]);
  });

  it('has kernel arguments that the menu of an ISO would read differently', async () => {
    const value = 'a=http://b/?c=d&e=f';
    const id = await create({ kernel_arguments: [{ operation: 'append', value }] });
    const files = `${API}/v2/infra-envs/${id}/downloads/files?file_name=ipxe-script`;
    expect((await service.call('GET', files)).text).toContain(` ${value}\n`);
    expect(await reasonOf(`/byid/${id}/${VERSION}/x86_64/disconnected.iso`)).toEqual([
      400,
      'failed to generate image: a kernel argument has &, which GRUB does not pass on',
    ]);
    const named = await service.call('GET', `${API}/v2/infra-envs/${id}/downloads/image-url`);
    expect([named.status, named.body['size']]).toEqual([200, undefined]);
    expect(named.body['long_url']).toMatch(/\/byid\//);
  });

  it('may be larger than the areas of the ISO have room for', async () => {
    const noise = createHash('shake256', { outputLength: 100_000 }).digest();
    const auth = Buffer.concat([Buffer.from('user:'), noise]).toString('base64');
    const pull_secret = JSON.stringify({ auths: { 'registry.example.com': { auth } } });
    const id = await create({ pull_secret });
    expect(await reasonOf(`/byid/${id}/${VERSION}/x86_64/disconnected.iso`)).toEqual([
      400,
      expect.stringContaining('but its area has 65536'),
    ]);
    const initrd = await get(`/images/${id}/pxe-initrd?version=${VERSION}`);
    await writeFile(join(folder, 'large'), initrd.subarray(20));
    const unpack = `gzip -dc ${join(folder, 'large')} | cpio -i --to-stdout --quiet config.ign`;
    const { stdout } = await run('sh', ['-c', unpack], { maxBuffer: 1 << 22 });
    const { storage } = JSON.parse(stdout) as IgnitionConfig;
    const file = storage?.files?.find(({ path }) => path === '/root/.docker/config.json');
    const found = await fetch(file?.contents?.source ?? '');
    expect(await found.json()).toEqual(JSON.parse(pull_secret));
  });

  it('can also be downloaded as an ISO, and changes nothing in the store', async () => {
    const id = await create();
    const iso = await get(`/byid/${id}/${VERSION}/x86_64/disconnected.iso`);
    await writeFile(join(folder, 'own.iso'), iso);
    const { stdout } = await run(
      'bsdtar',
      ['-xOf', join(folder, 'own.iso'), 'images/ignition.img'],
      {
        encoding: 'buffer',
      },
    );
    expect(stdout.some((byte) => byte !== 0)).toBe(true);
    const { stdout: written } = await run('du', ['-sb', service.data]);
    expect(Number.parseInt(written)).toBeLessThan(1 << 20);
    expect((await readFile(join(folder, 'store/test.iso'))).length).toBe(iso.length);
  });

  it('is served as soon as the store has it; until then the service is not ready', async () => {
    const store = join(folder, 'later');
    const later = await startService({ stores: [store] });
    const kernel = `/boot-artifacts/kernel?version=${VERSION}`;
    const ask = async (): Promise<readonly number[]> => {
      const paths = ['/live', '/ready', '/health', kernel];
      const answers = paths.map(async (path) => (await later.call('GET', path)).status);
      return Promise.all(answers);
    };
    expect(await ask()).toEqual([200, 503, 503, 503]);
    await mkdir(store);
    await writeFile(join(store, 'os-images.json'), '[{}]');
    expect(await ask()).toEqual([200, 503, 503, 503]);
    expect(later.warnings).toEqual([
      expect.stringMatching(/later is not served: ENOENT/),
      expect.stringContaining('entry 0 lacks openshift_version'),
    ]);
    await rename(join(folder, 'store/os-images.json'), join(store, 'os-images.json'));
    await rename(join(folder, 'store/test.iso'), join(store, 'test.iso'));
    expect(await ask()).toEqual([200, 200, 200, 200]);
    expect(later.warnings).toHaveLength(2);
    const args = ['customize', 'test.iso', '--kargs-append', 'of.somebody=1', '--in-place'];
    expect(await startSealift(args, { cwd: store }).ended).toMatchObject({ code: 0 });
    expect(await ask()).toEqual([200, 200, 200, 200]);
    expect(later.warnings.slice(2)).toEqual([
      expect.stringMatching(/test\.iso is customised, and every customer gets the values in it/),
    ]);
    await later.close();
  });
});
