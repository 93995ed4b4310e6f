import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { TEST_CERTIFICATE } from '../support/installation-iso.ts';
import { API, PULL_SECRET, SSH_KEY, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

const run = promisify(execFile);
const hasJudges = ['xorriso', 'curl', 'cpio', 'genisoimage'].map(requireTool).every(Boolean);
const VERSION = '4.21.3';

describe.skipIf(!hasJudges)('an image of an InfraEnv', () => {
  let world: LiveWorld;
  let service: TestService;
  let store: string;
  let clock = Date.parse('2026-01-01T00:00:00.500Z');
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    store = join(world.directory, 'store');
    service = await startService({ stores: [store], now: () => clock });
  });
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const curl = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('curl', ['-sS', ...args], { maxBuffer: 1 << 28 });
    return stdout;
  };
  const post = async (path: string, body: object): Promise<Record<string, string>> =>
    JSON.parse(
      await curl(
        `${service.url}${API}${path}`,
        '-H',
        'Content-Type: application/json',
        '-d',
        JSON.stringify(body),
      ),
    ) as Record<string, string>;
  const create = async (more: object = {}, version = VERSION): Promise<Record<string, string>> => {
    const cluster = await post('/v2/clusters/disconnected', {
      name: 'edge',
      openshift_version: version,
    });
    return post('/v2/infra-envs', {
      name: 'edge',
      cluster_id: cluster['id'],
      image_type: 'disconnected-iso',
      pull_secret: PULL_SECRET,
      ssh_authorized_key: SSH_KEY,
      ...more,
    });
  };
  const urlOf = async (id = ''): Promise<string> => {
    const { body } = await service.call('GET', `${API}/v2/infra-envs/${id}/downloads/image-url`);
    return String(body['url']);
  };
  const statusOf = (url: string, ...args: string[]): Promise<string> =>
    curl('-o', '/dev/null', '-w', '%{http_code}', url, ...args);

  it('is downloaded with curl, has key and pull secret, and is otherwise the ISO of the store', async () => {
    const { id, download_url: url = '' } = await create({
      kernel_arguments: [{ operation: 'append', value: 'sealift.test=1' }],
    });
    expect(await urlOf(id)).toBe(url);
    const iso = join(world.directory, 'downloaded.iso');
    const headers = await curl('-D', '-', '-o', iso, url);
    expect(headers).toMatch(/^HTTP\/1.1 200/);
    expect(headers).toMatch(
      /^Content-Disposition: attachment; filename=edge-4\.21\.3-x86_64\.iso\r$/im,
    );
    const area = join(world.directory, 'area');
    await run('xorriso', [
      '-osirrox',
      'on',
      '-indev',
      iso,
      '-extract',
      '/images/ignition.img',
      area,
    ]);
    const unpack = `gzip -dc ${area} 2>/dev/null | cpio -i --to-stdout --quiet config.ign`;
    const { stdout: config } = await run('sh', ['-c', unpack]);
    const ignition = JSON.parse(config) as {
      readonly passwd: { readonly users: readonly { readonly sshAuthorizedKeys: string[] }[] };
      readonly storage: {
        readonly files: readonly { path: string; contents: { source: string } }[];
      };
    };
    expect(ignition.passwd.users[0]?.sshAuthorizedKeys).toEqual([SSH_KEY]);
    const file = ignition.storage.files.find(({ path }) => path === '/root/.docker/config.json');
    const text = await (await fetch(file?.contents.source ?? 'data:,')).text();
    expect(JSON.parse(text)).toEqual(JSON.parse(PULL_SECRET));
    expect(ignition.storage.files.map(({ path }) => path)).toContain(
      '/etc/assisted/interactive-ui',
    );
    const discovery = `${API}/v2/infra-envs/${id ?? ''}/downloads/files?file_name=discovery.ign`;
    expect((await service.call('GET', discovery)).text).toBe(config);
    await expect(readFile(iso, 'latin1')).resolves.toContain('sealift.test=1');
    const { stdout } = await run('sh', [
      '-c',
      `cmp -l ${iso} ${store}/appliance.iso | wc -l`,
    ]).catch((error: unknown) => error as { stdout: string });
    const differing = Number(stdout);
    expect(differing).toBeGreaterThan(100);
    expect(differing).toBeLessThan(1 << 20);
  });

  it('has the trust bundle and the Ignition config that were set, and the sentinel', async () => {
    const override = {
      ignition: { version: '3.2.0' },
      storage: { files: [{ path: '/etc/of-a-customer', contents: { source: 'data:,x' } }] },
    };
    const { id = '' } = await create({
      additional_trust_bundle: TEST_CERTIFICATE,
      ignition_config_override: JSON.stringify(override),
    });
    const discovery = `${API}/v2/infra-envs/${id}/downloads/files?file_name=discovery.ign`;
    const { storage } = JSON.parse((await service.call('GET', discovery)).text) as {
      readonly storage: {
        readonly files: readonly { path: string; contents: { source: string } }[];
      };
    };
    const sources = new Map(storage.files.map(({ path, contents }) => [path, contents.source]));
    const bundle = sources.get('/etc/pki/ca-trust/source/anchors/domain.crt') ?? 'data:,';
    expect(await (await fetch(bundle)).text()).toBe(TEST_CERTIFICATE);
    expect(sources.get('/etc/of-a-customer')).toBe('data:,x');
    expect(sources.get('/etc/assisted/interactive-ui')).toBe('data:,');
  });

  it('is resumed where the download broke off, and never continued from another revision', async () => {
    const { id = '', download_url: url = '' } = await create();
    const whole = join(world.directory, 'whole.iso');
    // No time is sent in the second of a change: another change may follow in it.
    expect(await curl('-I', url)).not.toMatch(/^last-modified/im);
    clock += 1000;
    const head = await curl('-D', '-', '-o', whole, url);
    expect(head).toMatch(/^content-type: application\/x-cd-image\r$/im);
    expect(head).toMatch(/^cache-control: no-store\r$/im);
    expect(head).toMatch(/^x-content-type-options: nosniff\r$/im);
    const etag = /^etag: (\S+)\r$/im.exec(head)?.[1] ?? '';
    const time = /^last-modified: (.+)\r$/im.exec(head)?.[1] ?? '';
    const part = join(world.directory, 'part.iso');
    const { size } = await stat(whole);
    await curl('-o', part, '-r', '0-999999', url);
    await curl('-C', '-', '-o', part, url);
    expect((await readFile(part)).equals(await readFile(whole))).toBe(true);
    expect(await statusOf(url, '-r', '5-9,20-30')).toBe('200');
    expect(await statusOf(url, '-r', `${size}-`)).toBe('416');
    const plain = `${service.url}/byid/${id}/${VERSION}/x86_64/disconnected.iso`;
    for (const form of [
      plain,
      `${service.url}/images/${id}?type=disconnected-iso&version=${VERSION}`,
    ]) {
      const bytes = join(world.directory, 'bytes');
      const range = await curl('-D', '-', '-o', bytes, '-r', `${size - 70_000}-${size + 5}`, form);
      expect(range).toMatch(/^HTTP\/1.1 206/);
      expect(range.toLowerCase()).toContain(`etag: ${etag}\r`);
      expect((await readFile(bytes)).equals((await readFile(whole)).subarray(-70_000))).toBe(true);
    }
    expect(await statusOf(url, '-r', '5-9', '-H', `If-Range: ${etag}`)).toBe('206');
    expect(await statusOf(url, '-r', '5-9', '-H', `If-Range: ${time}`)).toBe('206');
    expect(await statusOf(url, '-H', `If-Modified-Since: ${time}`)).toBe('304');
    const kernel_arguments = [{ operation: 'append', value: 'changed' }];
    await service.call('PATCH', `${API}/v2/infra-envs/${id}`, { body: { kernel_arguments } });
    expect(await statusOf(url, '-r', '1000-')).toBe('410');
    for (const is of [etag, time]) {
      expect(await statusOf(plain, '-r', '5-9', '-H', `If-Range: ${is}`)).toBe('200');
    }
    const next = await curl('-I', await urlOf(id));
    expect(next).toMatch(/^HTTP\/1.1 200/);
    expect(next).not.toContain(etag);
  });

  it('stays when its cluster is removed, needs none, and is of the newest release of a minor version', async () => {
    const unbound = await create({ cluster_id: null, openshift_version: '4.21' });
    expect(unbound).toMatchObject({ openshift_version: VERSION });
    expect(await statusOf(await urlOf(unbound['id']), '-I')).toBe('200');
    const newest = await create({ cluster_id: null });
    expect(newest).toMatchObject({ openshift_version: VERSION });
    const { id = '', cluster_id = '', download_url: url = '' } = await create({}, '4.21');
    const cluster = await service.call('GET', `${API}/v2/clusters/${cluster_id}`);
    expect(cluster.body).toMatchObject({ openshift_version: VERSION });
    await service.call('DELETE', `${API}/v2/clusters/${cluster_id}`);
    expect(await statusOf(url, '-I')).toBe('200');
    const files = `${API}/v2/infra-envs/${id}/downloads/files?file_name=discovery.ign`;
    expect((await service.call('GET', files)).status).toBe(200);
  });

  it.each([
    [
      'version 4.20.9',
      { openshift_version: '4.20.9' },
      'version (4.20.9) and CPU architecture (x86_64)',
    ],
    ['version 4.2', { openshift_version: '4.2' }, 'version (4.2) and CPU architecture (x86_64)'],
    ['architecture aarch64', { cpu_architecture: 'aarch64' }, 'CPU architecture (arm64)'],
  ])('is refused if the store has no ISO of %s', async (_, more, missing) => {
    const refused = await create(more);
    expect(refused['reason']).toMatch(/^No OS image for Openshift version 4\.2/);
    expect(refused['reason']).toContain(`${missing} isn't specified in OS images list`);
  });

  it('is refused when it is asked for if the medium cannot carry the values, and the record is unchanged', async () => {
    const value = `a=${'x'.repeat(2000)}`;
    const kernel_arguments = [{ operation: 'append', value }];
    const refusal =
      /^failed to generate image: kernel arguments take \d+ bytes, but their area has/;
    expect(await create({ kernel_arguments })).toMatchObject({
      code: '400',
      reason: expect.stringMatching(refusal) as string,
    });
    const { id = '', download_url: url = '' } = await create();
    const path = `${API}/v2/infra-envs/${id}`;
    const changed = await service.call('PATCH', path, { body: { kernel_arguments } });
    expect([changed.status, changed.body['reason']]).toEqual([400, expect.stringMatching(refusal)]);
    expect((await service.call('GET', path)).body).not.toHaveProperty('kernel_arguments');
    expect(await statusOf(url, '-I')).toBe('200');
  });

  it('has a new URL after its key is made again', async () => {
    const { id = '', download_url: url = '' } = await create();
    const path = `${API}/v2/infra-envs/${id}/regenerate-signing-key`;
    expect((await service.call('POST', path)).status).toBe(204);
    expect(await statusOf(url, '-I')).toBe('410');
    expect(await statusOf(await urlOf(id), '-I')).toBe('200');
  });

  it('answers malformed requests as assisted-service and assisted-image-service do', async () => {
    const { id = '' } = await create();
    const infraEnv = `${API}/v2/infra-envs/${id}`;
    const ask = async (path: string, method = 'GET'): Promise<unknown[]> => {
      const { status, body } = await service.call(method, path);
      return [status, body['reason']];
    };
    expect(await ask(`${infraEnv}/downloads/files?file_name=../x`)).toEqual([
      400,
      'file_name in query should be one of [discovery.ign ipxe-script static-network-config]',
    ]);
    expect(
      await ask(`${infraEnv}/downloads/files?file_name=discovery.ign&ipxe_script_type=a`),
    ).toEqual([400, '"ipxe_script_type"" can be set only for "ipxe-script"']);
    expect(
      await ask(`${infraEnv}/downloads/files?file_name=discovery.ign&discovery_iso_type=full-iso`),
    ).toEqual([
      400,
      'image type full-iso is not supported: this service has only disconnected-iso',
    ]);
    expect(await ask(`${infraEnv}/hosts`, 'POST')).toEqual([
      400,
      'newHostParams in body is required',
    ]);
    expect(await ask(`/images/${id}`)).toEqual([400, "'version' parameter required"]);
    expect(await ask(`/images/${id}?version=4`)).toEqual([400, "'type' parameter required"]);
    expect(await ask(`/images/${id}?version=4&type=x`)).toEqual([
      400,
      "invalid value 'x' for parameter 'type'",
    ]);
    expect(await ask(`/byid/${id}/${VERSION}/x86_64/x.iso`)).toEqual([
      404,
      'unrecognized file name x.iso',
    ]);
    const long = `/images/${id}?version=${VERSION}&type=disconnected-iso`;
    expect(await statusOf(service.url + long, '-I')).toBe('200');
    expect((await ask(`/byid/${id}/4.21/x86_64/disconnected.iso`))[0]).toBe(404);
    expect((await ask(`/byid/${id}/${VERSION}/aarch64/disconnected.iso`))[0]).toBe(404);
  });

  it('has the networks of its hosts, also as a tar', async () => {
    const { id = '' } = await create({
      static_network_config: [
        {
          network_yaml:
            'interfaces:\n- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}\n',
          mac_interface_map: [{ mac_address: '52:54:00:00:00:01', logical_nic_name: 'eth0' }],
        },
      ],
    });
    const url = `${service.url}${API}/v2/infra-envs/${id}/downloads/files?file_name=static-network-config`;
    const { stdout } = await run('sh', ['-c', `curl -sS '${url}' | tar -tvf - 2>/dev/null`]);
    expect(stdout).toMatch(/^-rw------- .*etc\/assisted\/network\/host0\/eth0.nmconnection$/m);
    expect(stdout).toMatch(/host0\/mac_interface.ini$/m);
  });

  it('does not boot from the network: its registry is on the mounted ISO', async () => {
    const { id = '' } = await create();
    const query = `version=${VERSION}`;
    for (const path of [
      `/boot-artifacts/kernel?${query}`,
      `/boot-artifacts/rootfs?${query}`,
      `/images/${id}/pxe-initrd?${query}`,
      `/images/${id}/s390x-initrd-addrsize?${query}`,
      `${API}/v2/infra-envs/${id}/downloads/files?file_name=ipxe-script`,
    ]) {
      const { status, body } = await service.call('GET', path);
      expect([path, status, body['reason']]).toEqual([
        path,
        400,
        `the ISO of ${VERSION} for x86_64 cannot boot from the network: its registry is read from the mounted ISO`,
      ]);
    }
  });

  it('is served from a listed release, and writes nothing but overlays', async () => {
    const { body } = await service.call('GET', `${API}/v2/openshift-versions`);
    expect(body).toMatchObject({
      [VERSION]: { display_name: VERSION, cpu_architectures: ['x86_64'] },
    });
    const { stdout } = await run('du', ['-sb', service.data]);
    expect(Number.parseInt(stdout)).toBeLessThan(1 << 20);
    expect(await readdir(join(service.data, 'overlays'))).not.toEqual([]);
  });
});
