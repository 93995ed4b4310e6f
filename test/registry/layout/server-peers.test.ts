import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createSocket, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { hexOf } from '../../../src/base/digest.ts';
import { runProcess } from '../../../src/base/process.ts';
import { planDistributionTree } from '../../../src/registry/layout/distribution.ts';
import { createRegistryServer } from '../../../src/registry/server.ts';
import { directoryTree } from '../../../src/registry/layout/tree.ts';
import { buildImage, buildIndex, packTar, writeTree } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';

const hasSkopeo = requireTool('skopeo');
const tars = await Promise.all(
  ['one', 'two', 'three'].map((text) => packTar([[`etc/${text}`, text.repeat(20_000)]])),
);
const layersOf = (...at: number[]) => at.flatMap((one) => tars[one] ?? []).map((tar) => ({ tar }));
const amd64 = { architecture: 'amd64', os: 'linux' };
const arm64 = { architecture: 'arm64', os: 'linux' };
const oci = buildImage(layersOf(0, 1));
const docker = buildImage(layersOf(0, 2), { family: 'docker' });
const multi = buildIndex(
  [
    [amd64, docker],
    [arm64, buildImage(layersOf(1), { family: 'docker', architecture: 'arm64' })],
  ],
  { family: 'docker' },
);
const placed = [
  { repository: 'openshift/release', tags: ['oci'], manifests: oci.manifests },
  { repository: 'openshift/release-images', tags: ['multi', 'latest'], manifests: multi.manifests },
  { repository: 'ubi', tags: ['9'], manifests: docker.manifests },
];

let root = '';
let tree = '';

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sealift-peers-'));
  tree = join(root, 'registry');
  const blobs = new Map([...oci.blobs, ...multi.blobs]);
  await writeTree(tree, planDistributionTree(placed), blobs);
});
afterAll(() => rm(root, { recursive: true, force: true }));

const skopeo = async (...args: string[]): Promise<string> =>
  (await runProcess('skopeo', args)).stdout;

/** Copies every image out of a registry and compares what arrived, byte for byte. */
async function pullEverything(host: string, ...options: string[]): Promise<void> {
  for (const { repository, tags, manifests } of placed) {
    const [top] = manifests;
    const digest = top?.descriptor.digest ?? 'sha256:';
    for (const reference of [...tags.map((tag) => `:${tag}`), `@${digest}`]) {
      const copy = await mkdtemp(join(root, 'copy-'));
      const source = `docker://${host}/${repository}${reference}`;
      await skopeo('copy', '-q', '--all', ...options, source, `dir:${copy}`);
      expect(await readFile(join(copy, 'manifest.json'))).toEqual(Buffer.from(top?.bytes ?? []));
      for (const { descriptor, bytes } of manifests.slice(1)) {
        const child = await readFile(join(copy, `${hexOf(descriptor.digest)}.manifest.json`));
        expect(child).toEqual(Buffer.from(bytes));
      }
    }
  }
}

describe.skipIf(!hasSkopeo)('skopeo against our server', () => {
  let server: Server;
  let host = '';
  const start = async (options?: Parameters<typeof createRegistryServer>[1]): Promise<void> => {
    server = createRegistryServer(directoryTree(tree), options);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const stop = async (): Promise<void> => {
    server.close();
    await once(server, 'close');
  };

  it('copies every image by tag and digest, all manifests unchanged', async () => {
    await start();
    await pullEverything(host, '--src-tls-verify=false');
    const listed = await skopeo(
      'list-tags',
      '--tls-verify=false',
      `docker://${host}/openshift/release-images`,
    );
    expect((JSON.parse(listed) as { Tags: string[] }).Tags).toEqual(['latest', 'multi']);
    const inspected = await skopeo('inspect', '--tls-verify=false', `docker://${host}/ubi:9`);
    expect(JSON.parse(inspected)).toMatchObject({ Digest: docker.manifests[0]?.descriptor.digest });
    const upload = skopeo(
      'copy',
      '--dest-tls-verify=false',
      '--src-tls-verify=false',
      `docker://${host}/ubi:9`,
      `docker://${host}/ubi:new`,
    );
    await expect(upload).rejects.toThrow(/read-only|405/);
    await stop();
  });

  it.skipIf(!requireTool('openssl'))(
    'copies over TLS with a certificate it was given',
    async () => {
      const certs = join(root, 'certs');
      await mkdir(certs);
      const [key, cert] = [join(certs, 'key.pem'), join(certs, 'ca.crt')];
      const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
      const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      await runProcess('openssl', ['req', ...kind, '-keyout', key, '-out', cert, ...subject]);
      await start({
        tls: { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') },
      });
      await rm(key); // a client would take a key beside the certificate for its own
      await pullEverything(host, '--src-cert-dir', certs);
      await stop();
    },
  );
});

const REGISTRY = 'docker-registry';

describe.skipIf(!hasSkopeo || !requireTool(REGISTRY))(
  'docker-registry on a tree we planned',
  () => {
    let registry: ChildProcess;
    let host = '';

    beforeAll(async () => {
      host = `127.0.0.1:${await findFreePort()}`;
      const config = join(root, 'config.yml');
      await writeFile(
        config,
        JSON.stringify({
          version: 0.1,
          log: { level: 'error' },
          storage: {
            filesystem: { rootdirectory: tree },
            maintenance: { readonly: { enabled: true }, uploadpurging: { enabled: false } },
          },
          http: { addr: host },
        }),
      );
      registry = spawn(REGISTRY, ['serve', config], { stdio: 'ignore' });
      await vi.waitUntil(() => isUp(host), { timeout: 20_000, interval: 100 });
    });
    afterAll(() => registry.kill());

    it('serves every image by tag and digest to skopeo', async () => {
      await pullEverything(host, '--src-tls-verify=false');
    });

    it('lists the same repositories and tags as our server', async () => {
      const ours = createRegistryServer(directoryTree(tree));
      ours.listen(0, '127.0.0.1');
      await once(ours, 'listening');
      const here = `127.0.0.1:${(ours.address() as AddressInfo).port}`;
      for (const path of [
        '_catalog',
        ...placed.map(({ repository }) => `${repository}/tags/list`),
      ]) {
        const [theirs, own] = await Promise.all([host, here].map((at) => getJson(at, path)));
        expect(own).toEqual(theirs);
      }
      ours.closeAllConnections();
      ours.close();
    });
  },
);

/** docker-registry cannot tell which port it took, so it has to be told one. */
async function findFreePort(): Promise<number> {
  const socket = createSocket().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address() as AddressInfo;
  socket.close();
  await once(socket, 'close');
  return port;
}

async function isUp(host: string): Promise<boolean> {
  try {
    return (await fetch(`http://${host}/v2/`)).ok;
  } catch {
    return false; // not yet
  }
}

async function getJson(host: string, path: string): Promise<unknown> {
  const response = await fetch(`http://${host}/v2/${path}`);
  const body = (await response.json()) as { tags?: string[] };
  return body.tags === undefined ? body : { ...body, tags: body.tags.toSorted() };
}
