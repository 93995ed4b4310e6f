import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { stateRelease } from '../../../demo/openpgp-signer.ts';
import { createReleaseSigner, SIGNATURE_SETTINGS } from '../../../demo/release-signer.ts';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { hexOf, type Digest } from '../../../src/base/digest.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { createRetries } from '../../../src/base/retry.ts';
import type { Release } from '../../../src/openshift/release/release.ts';
import {
  verifyRelease,
  type VerifyReleaseInput,
} from '../../../src/stages/1-resolve/verify-release.ts';
import { serveLocally, type LocalServer } from '../../support/local-http.ts';
import { createStageContext } from '../../support/stage-context.ts';
import { createThrowAwaySigner } from '../../support/throw-away-signer.ts';

const redaction = createRedaction();

const DIGEST: Digest = `sha256:${'4f'.repeat(32)}`;
const OTHER: Digest = `sha256:${'5e'.repeat(32)}`;
const IDENTITY = 'quay.io/openshift-release-dev/ocp-release:4.21.3-x86_64';
const NIGHTLY = '4.22.0-0.nightly-2026-05-01-000000';

const signer = createThrowAwaySigner();
const good = signer.sign(stateRelease(DIGEST, IDENTITY));

const releaseOf = (version = '4.21.3'): Release => ({
  version,
  reference: { registry: 'mirror.example', repository: 'ocp/release', digest: DIGEST },
  arch: 'x86_64',
  created: '2026-01-12T18:29:52Z',
  components: [],
  definitions: [],
  imagePolicies: [],
  adminGates: {},
  metadata: { version, previous: [], metadata: {} },
});

describe('the signature of a release', () => {
  let directory: string;
  let store: LocalServer;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  const http = createHttp({ redaction, env: {}, retries: createRetries({ retryFor: 0 }) });
  const at = (name: string): string => join(directory, name);

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-signature-'));
    await writeFile(at('keys.gpg'), signer.publicKey);
    store = await serveLocally((request, response) => {
      answer(request, response);
    });
  });
  afterEach(() => {
    store.requests.length = 0;
  });
  afterAll(async () => {
    await http.close();
    await store.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Answers with these messages by number, and else 404. */
  const serve = (...messages: readonly Uint8Array[]): void => {
    answer = ({ url = '' }, response) => {
      const [, number = '0'] =
        new RegExp(`^/public/sha256=${hexOf(DIGEST)}/signature-(\\d)$`).exec(url) ?? [];
      const message = messages[Number(number) - 1];
      response.writeHead(message ? 200 : 404).end(message);
    };
  };

  const run = (input: Partial<VerifyReleaseInput> = {}, warnings: string[] = []) =>
    verifyRelease.run(
      {
        release: releaseOf(),
        keys: at('keys.gpg'),
        allowUnsigned: false,
        publicStores: [`${store.url}/public`],
        ...input,
      },
      { http },
      createStageContext(undefined, (message) => warnings.push(message)),
    );

  it('is found by digest in a store, regardless of the registry of the release', async () => {
    serve(good);
    const { signature } = await run();
    expect(signature).toEqual({
      status: 'verified',
      key: signer.fingerprint,
      identity: IDENTITY,
      from: `${store.url}/public/`,
      messages: [good.toString('base64')],
    });
  });

  it('is taken from named files before any store is asked', async () => {
    serve();
    const releases = createReleaseSigner(signer);
    releases.sign(DIGEST, IDENTITY);
    releases.write(directory);
    const { signature } = await run({ files: at(SIGNATURE_SETTINGS.signatures) });
    expect(signature).toMatchObject({ status: 'verified' });
    expect(store.requests).toEqual([]);
  });

  it('is taken from a file with ConfigMaps, as oc and oc-mirror write it', async () => {
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'mirrored-release-signatures',
        labels: { 'release.openshift.io/verification-signatures': '' },
      },
      binaryData: {
        [`sha256-${hexOf(OTHER)}-1`]: 'AAAA',
        [`sha256-${hexOf(DIGEST)}-2`]: good.toString('base64'),
      },
    };
    await writeFile(at('map.json'), JSON.stringify(map));
    const { signature } = await run({ files: at('map.json') });
    expect(signature).toMatchObject({ status: 'verified', from: at('map.json') });
  });

  it.each([
    ['a ConfigMap without a label', (map: object) => JSON.stringify(map)],
    [
      'a List, as "oc get -o json" writes it',
      (map: object) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [map] }),
    ],
    [
      'a ConfigMap behind other documents',
      (map: object) => `kind: Namespace\n---\n${JSON.stringify(map)}`,
    ],
  ])('is taken from a file with %s', async (_, format) => {
    const binaryData = { [`sha256-${hexOf(DIGEST)}-1`]: good.toString('base64') };
    await writeFile(at('map.yaml'), format({ kind: 'ConfigMap', binaryData }));
    const { signature } = await run({ files: at('map.yaml') });
    expect(signature).toMatchObject({ status: 'verified', from: at('map.yaml') });
  });

  it('is refused by name if a file with ConfigMaps has no signature or a broken one', async () => {
    const files = at('wrong.yaml');
    await writeFile(files, 'kind: Secret\ndata: {}\n');
    await expect(run({ files })).rejects.toMatchObject({ code: 'signature.no-config-map' });
    const binaryData = { [`sha256-${hexOf(DIGEST)}-1`]: '!' };
    await writeFile(files, JSON.stringify({ kind: 'ConfigMap', binaryData }));
    serve();
    await expect(run({ files })).rejects.toMatchObject({ code: 'openpgp.malformed' });
  });

  it('is requested with query and password of the address of its store, which no other host gets', async () => {
    const seen: unknown[] = [];
    const elsewhere = await serveLocally(({ headers }, response) => {
      seen.push(headers.authorization);
      response.end(good);
    });
    answer = ({ url = '', headers }, response) => {
      seen.push([url, headers.authorization]);
      response.writeHead(307, { location: `${elsewhere.url}/there` }).end();
    };
    const address = new URL(`${store.url}/named?edition=4&token=hush-hush-7`);
    Object.assign(address, { username: 'reader', password: 'p@ss word' });
    const { signature } = await run({ store: address.href });
    await elsewhere.close();
    expect(seen.slice(0, 2)).toEqual([
      [
        `/named/sha256=${hexOf(DIGEST)}/signature-1?edition=4&token=hush-hush-7`,
        `Basic ${Buffer.from('reader:p@ss word').toString('base64')}`,
      ],
      undefined,
    ]);
    expect(signature).toMatchObject({
      from: `${store.url}/named/?edition=4&token=[redacted]`,
    });
  });

  it('is taken from a workspace of oc-mirror, or from the named store, and then from no other', async () => {
    serve(good);
    const workspace = [{ digest: DIGEST, signature: good.toString('base64') }];
    const mirrored = await run({ workspace });
    expect(mirrored.signature).toMatchObject({ from: "the workspace's working-dir" });
    const named = await run({ workspace: [], store: `${store.url}/public/` });
    await expect(run({ workspace: [] })).rejects.toMatchObject({ code: 'signature.missing' });
    expect(named.signature).toMatchObject({ from: `${store.url}/public/` });
    const elsewhere = await run({ store: `${store.url}/absent/` });
    expect(elsewhere.signature).toMatchObject({ from: `${store.url}/public/` });
  });

  it('is accepted next to a refused one, which is a warning', async () => {
    serve(Buffer.from(`"${DIGEST}"`), good);
    const warnings: string[] = [];
    expect((await run({}, warnings)).signature).toMatchObject({ status: 'verified' });
    expect(warnings).toEqual([expect.stringContaining('is refused')]);
  });

  it('is reported missing if every source answers that it has none', async () => {
    serve();
    await expect(run({ store: `${store.url}/named` })).rejects.toMatchObject({
      code: 'signature.missing',
      exitCode: 5,
      message: expect.stringContaining(
        `${store.url}/named/: none; ${store.url}/public/: none`,
      ) as string,
      hint: expect.stringContaining('--signatures') as string,
    });
  });

  it('is a store error if the only store fails, and missing if another store answers', async () => {
    answer = ({ url = '' }, response) => {
      response.writeHead(url.startsWith('/broken/') ? 403 : 404).end();
    };
    const publicStores = [`${store.url}/broken`];
    await expect(run({ publicStores })).rejects.toMatchObject({
      code: 'signature.store-failed',
      exitCode: 4,
    });
    await expect(
      run({ publicStores: [...publicStores, `${store.url}/public`] }),
    ).rejects.toMatchObject({
      code: 'signature.missing',
      message: expect.stringContaining('answers 403') as string,
    });
  });

  it('is a store error if all stores fail, regardless of other sources', async () => {
    answer = ({ url = '' }, response) => {
      response.writeHead(url.startsWith('/broken/') ? 500 : 503).end();
    };
    await mkdir(at('empty'), { recursive: true });
    const input = { files: at('empty'), workspace: [], store: `${store.url}/named` };
    await expect(run({ ...input, publicStores: [`${store.url}/broken`] })).rejects.toMatchObject({
      code: 'signature.store-failed',
      message: expect.stringMatching(
        /empty: none; the workspace's working-dir: none; .*\/named\/: .* 503/,
      ) as string,
    });
    const release = releaseOf(NIGHTLY);
    await expect(run({ ...input, release })).rejects.toMatchObject({
      code: 'signature.unsigned',
      message: expect.stringContaining('/named/: ') as string,
    });
  });

  it.each([
    ['signs a text that names the digest', () => Buffer.from(`"${DIGEST}"`), 'openpgp.malformed'],
    [
      'signs another digest',
      () => signer.sign(stateRelease(OTHER, IDENTITY)),
      'signature.other-digest',
    ],
    [
      'has expired',
      () => signer.sign(stateRelease(DIGEST, IDENTITY), { validFor: 60 }),
      'signature.expired',
    ],
    ['has no identity', () => signer.sign(stateRelease(DIGEST, '')), 'signature.malformed'],
    ['signs other content', () => forge(), 'signature.wrong'],
  ])('is refused if it %s', async (_, make, code) => {
    serve(make());
    await expect(run()).rejects.toMatchObject({ code, exitCode: 5 });
  });

  it('is refused with the name of its key, and how to trust it, if the key is not trusted', async () => {
    const other = createThrowAwaySigner({ created: 1_690_000_000 });
    serve(other.sign(stateRelease(DIGEST, IDENTITY)));
    await expect(run()).rejects.toMatchObject({
      code: 'signature.untrusted-key',
      found: other.fingerprint,
      hint: expect.stringContaining('--signature-keys') as string,
    });
  });

  it('is refused by the keys of Red Hat if a throw-away key made it', async () => {
    serve(good);
    const input = { release: releaseOf(), allowUnsigned: false };
    await expect(
      verifyRelease.run(
        { ...input, publicStores: [`${store.url}/public`] },
        { http },
        createStageContext(),
      ),
    ).rejects.toMatchObject({
      code: 'signature.untrusted-key',
      expected: expect.stringContaining('567E347AD0044ADE55BA8A5F199E2F91FD431D51') as string,
    });
  });

  it.each(['4.21.3', '4.22.0-ec.3', '4.22.0-rc.1'])(
    'is required for %s, whether unsigned releases are accepted or not',
    async (version) => {
      serve();
      const input = { release: releaseOf(version), allowUnsigned: true };
      await expect(run(input)).rejects.toMatchObject({ code: 'signature.missing' });
    },
  );

  it.each([NIGHTLY, '4.22.0-0.ci-2026-05-01-000000'])(
    'is optional for %s if unsigned releases are accepted, and no public store is asked',
    async (version) => {
      serve();
      const release = releaseOf(version);
      await expect(run({ release })).rejects.toMatchObject({
        code: 'signature.unsigned',
        hint: expect.stringContaining('--allow-unsigned') as string,
      });
      const { signature } = await run({ release, allowUnsigned: true });
      expect(signature).toMatchObject({ status: 'unsigned' });
      expect(store.requests).toEqual([]);
    },
  );

  /** The content of one message in the place of another's: same length, another digest. */
  function forge(): Buffer {
    const message = signer.sign(stateRelease(OTHER, IDENTITY), { isCompressed: false });
    const at = message.indexOf(OTHER);
    message.write(DIGEST, at);
    return message;
  }
});
