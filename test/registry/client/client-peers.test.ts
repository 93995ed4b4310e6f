import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf } from '../../../src/base/digest.ts';
import { runProcess } from '../../../src/base/process.ts';
import { createBlobCache } from '../../../src/base/store/blob-cache.ts';
import { credentialsFromPullSecret } from '../../../src/registry/client/credentials.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { parseRegistriesConf } from '../../../src/registry/client/mirrors.ts';
import { startPasswordRegistry } from '../../support/password-registry.ts';
import { createHttpWithout, createTestClient } from '../../support/registry-client.ts';
import { imageManifest, startScriptedRegistry } from '../../support/scripted-registry.ts';
import { requireTool } from '../../support/tools.ts';

const redaction = createRedaction();

const tools = ['docker-registry', 'skopeo', 'htpasswd', 'openssl'];
const { signal } = new AbortController();
let home: string;
let ca: string;
let registry: ChildProcess | undefined;
let host: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'client-peers-'));
});

afterAll(async () => {
  registry?.kill();
  await rm(home, { recursive: true });
});

const at = (name: string): string => join(home, name);

/** A CA of its own, and a certificate it signed for localhost. */
async function makeCertificates(): Promise<void> {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const openssl = (args: readonly string[]) => runProcess('openssl', args, { cwd: home });
  await openssl(['req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=ca']);
  for (const name of ['server', 'client']) {
    await writeFile(at(`${name}.ext`), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
    const subject = ['-subj', `/CN=${name}`];
    await openssl([
      'req',
      '-new',
      ...key,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`,
      ...subject,
    ]);
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30'];
    await openssl([
      ...['x509', '-req', '-in', `${name}.csr`, ...signing],
      ...['-extfile', `${name}.ext`, '-out', `${name}.pem`],
    ]);
  }
  ca = await readFile(at('ca.pem'), 'utf8');
}

async function startRegistry(): Promise<void> {
  const started = await startPasswordRegistry(home);
  host = started.host;
  registry = started.process;
}

/** An image of one layer in a `dir:` layout, pushed by skopeo, which waits for the registry. */
async function pushImage(): Promise<string> {
  const layer = Buffer.alloc(100_000, 'layer');
  const config = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    }),
  );
  const describe = (mediaType: string, bytes: Buffer) => ({
    mediaType: `application/vnd.oci.image.${mediaType}`,
    digest: digestOf(bytes),
    size: bytes.length,
  });
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe('config.v1+json', config),
    layers: [describe('layer.v1.tar', layer)],
  });
  await mkdir(at('image'));
  await writeFile(at('image/version'), 'Directory Transport Version: 1.1\n');
  await writeFile(at('image/manifest.json'), manifest);
  for (const bytes of [layer, config]) {
    await writeFile(at(`image/${digestOf(bytes).slice('sha256:'.length)}`), bytes);
  }
  await mkdir(at('certs'));
  await writeFile(at('certs/ca.crt'), ca);
  await runProcess('skopeo', [
    ...[
      '--insecure-policy',
      'copy',
      '--preserve-digests',
      '--retry-times',
      '5',
      '--dest-cert-dir',
      at('certs'),
    ],
    ...['--dest-creds', 'puller:hush', `dir:${at('image')}`, `docker://${host}/team/app:v1`],
  ]);
  return digestOf(manifest);
}

const pullSecret = (password: string): string =>
  JSON.stringify({
    auths: { [host]: { auth: Buffer.from(`puller:${password}`).toString('base64') } },
  });

const clientWith = (password: string, options: Parameters<typeof createTestClient>[0] = {}) =>
  createTestClient({
    credentials: [
      credentialsFromPullSecret(pullSecret(password), { name: 'pullSecret', redaction }),
    ],
    caBundle: ca,
    ...options,
  });

/** A client for which the registry is the mirror of an origin that DNS does not know. */
const clientInFrontOf = (password?: string) => {
  const http = createHttpWithout('origin.invalid');
  const text = `[[registry]]\nlocation = "origin.invalid"\n[[registry.mirror]]\nlocation = "${host}"`;
  const shared = { http, registriesConf: parseRegistriesConf(text, 'test') };
  return password === undefined ? createTestClient(shared) : clientWith(password, shared);
};

const hasTools = tools.map(requireTool).every(Boolean);

describe.skipIf(!hasTools)(
  'against a real registry with TLS from a private CA and passwords',
  () => {
    let digest: string;

    beforeAll(async () => {
      await makeCertificates();
      await startRegistry();
      digest = await pushImage();
    });

    it('reads what skopeo pushed, digest by digest', async () => {
      const client = clientWith('hush');
      const reference = parseReference(`${host}/team/app:v1`);
      const { descriptor, manifest } = await client.fetchManifest(reference, { signal });
      expect(descriptor.digest).toBe(digest);
      expect(await client.resolveTag(reference, { signal })).toEqual(descriptor);
      expect(await client.resolveTag({ ...reference, tag: 'v2' }, { signal })).toBeUndefined();
      const cache = createBlobCache(at('cache'));
      const [layer] = manifest.kind === 'manifest' ? manifest.layers : [];
      if (!layer) throw new Error('the image has no layer');
      const path = await cache.ensure(layer, client.sourcesOf(reference), { signal });
      expect((await readFile(path)).equals(Buffer.alloc(100_000, 'layer'))).toBe(true);
      const [tail] = client.sourcesOf(reference);
      const opened = await tail?.open(layer, { offset: 99_990, signal });
      expect(Buffer.concat((await opened?.body.toArray()) ?? [])).toHaveLength(10);
      await client.close();
    });

    it('names the entry whose password is wrong, and not the password', async () => {
      const client = clientWith('wrong');
      const work = client.fetchManifest(parseReference(`${host}/team/app:v1`), { signal });
      await expect(work).rejects.toMatchObject({
        code: 'registry.unauthorized',
        message: expect.stringContaining(`the credential "pullSecret entry ${host}"`) as string,
      });
      await client.close();
    });

    it('does not trust the certificate by itself, nor falls back to plain HTTP', async () => {
      const client = createTestClient();
      const work = client.fetchManifest(parseReference(`${host}/team/app:v1`), { signal });
      await expect(work).rejects.toMatchObject({ code: 'registry.certificate', exitCode: 4 });
      await client.close();
    });

    it.each([
      ['a wrong password', 'wrong', 'registry.unauthorized'],
      ['an unknown CA', undefined, 'registry.certificate'],
      ['an unknown tag', 'hush', 'registry.manifest-unknown'],
    ])(
      'is named in the error as a mirror with %s, even if DNS does not know the origin',
      async (_, password, code) => {
        const client = clientInFrontOf(password);
        const work = client.fetchManifest(parseReference('origin.invalid/team/app:v9'), { signal });
        await expect(work).rejects.toMatchObject({
          code,
          message: expect.stringMatching(/localhost:\d+: .*; origin\.invalid: /) as string,
        });
        await client.close();
      },
    );

    it('takes any certificate of a registry that is marked insecure', async () => {
      const credentials = [
        credentialsFromPullSecret(pullSecret('hush'), { name: 'pullSecret', redaction }),
      ];
      const client = createTestClient({ credentials, insecureRegistries: [host] });
      const work = client.fetchManifest(parseReference(`${host}/team/app:v1`), { signal });
      expect((await work).descriptor.digest).toBe(digest);
      await client.close();
    });

    it('shows the client certificate that certs.d has for the host', async () => {
      const [cert, key] = await Promise.all([
        readFile(at('server.pem'), 'utf8'),
        readFile(at('server.key'), 'utf8'),
      ]);
      const mutual = await startScriptedRegistry({ cert, key, ca });
      mutual.addManifest(imageManifest('one'), 'v1');
      const folder = at(`certs.d/${mutual.host}`);
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, 'ca.crt'), ca);
      await writeFile(join(folder, 'me.cert'), await readFile(at('client.pem')));
      const reference = parseReference(`${mutual.host}/a/b:v1`);
      const withoutKey = createTestClient({ certsDirs: [at('certs.d')] });
      await expect(withoutKey.fetchManifest(reference, { signal })).rejects.toMatchObject({
        code: 'certs.key-missing',
      });
      await writeFile(join(folder, 'me.key'), await readFile(at('client.key')));
      const client = createTestClient({ certsDirs: [at('none'), at('certs.d')] });
      await client.fetchManifest(reference, { signal });
      await Promise.all([client.close(), withoutKey.close(), mutual.close()]);
    });
  },
);
