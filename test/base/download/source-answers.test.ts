import fc from 'fast-check';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { ConfigError, IntegrityError, RegistryError } from '../../../src/base/errors.ts';
import { readManifest, type ImageTools } from '../../../src/openshift/images.ts';
import { createBlobCache } from '../../../src/base/store/blob-cache.ts';
import type { Descriptor } from '../../../src/registry/manifest.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { parseRegistriesConf } from '../../../src/registry/client/mirrors.ts';
import type { SourceAnswer } from '../../../src/base/download/sources.ts';
import { findWorst, joinAnswers } from '../../../src/base/download/source-answers.ts';
import { createHttpWithout, createTestClient, storeOf } from '../../support/registry-client.ts';
import {
  imageManifest,
  patternOf,
  startScriptedRegistry,
  type ScriptedRegistry,
  type Script,
} from '../../support/scripted-registry.ts';
import { serveByTls } from '../../support/tls-server.ts';

const ORIGIN = 'origin.invalid';
const NAME = `${ORIGIN}/ocp/release:4.21`;
const { signal } = new AbortController();
const bytes = patternOf(10_000);
let mirror: ScriptedRegistry;
let blob: Descriptor;
let directory: string;
let tools: ImageTools;
let close: () => Promise<void>;

function openTools(mirrorHost: string): void {
  const client = createTestClient({
    http: createHttpWithout(ORIGIN),
    credentials: [
      storeOf({ [mirrorHost]: { kind: 'basic', username: 'u', password: 'old', from: 'secret' } }),
    ],
    registriesConf: parseRegistriesConf(
      `[[registry]]\nlocation = "${ORIGIN}"\n[[registry.mirror]]\nlocation = "${mirrorHost}"`,
      'test',
    ),
  });
  tools = { client, cache: createBlobCache(join(directory, 'blobs')), signal };
  close = client.close;
}

async function errorOf(work: Promise<unknown>): Promise<Error> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Error) return error;
  throw new Error('it should have failed');
}

const fetchImage = () => readManifest(tools, parseReference(NAME));
const fetchLayer = () =>
  tools.cache.ensure(blob, tools.client.sourcesOf(parseReference(NAME)), { signal });

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'answers-'));
  mirror = await startScriptedRegistry();
  blob = mirror.addBlob(bytes);
  mirror.addManifest(imageManifest('one', [blob]), '4.21');
  openTools(mirror.host);
});

afterEach(async () => {
  await close();
  await mirror.close();
  await rm(directory, { recursive: true });
});

const wrong = patternOf(bytes.length, 2);
const refusing: Script = {
  status: 401,
  headers: { 'www-authenticate': 'Basic realm="r"' },
};

describe('the answer of a mirror, while DNS does not know the origin,', () => {
  it.each<[string, Script, object]>([
    ['404', { status: 404 }, { code: 'registry.manifest-unknown', exitCode: 4 }],
    ['wrong bytes', { body: 'x' }, { code: 'manifest.digest-mismatch', exitCode: 5 }],
    ['a refused password', refusing, { code: 'registry.unauthorized', exitCode: 4 }],
    ['403', { status: 403 }, { code: 'registry.forbidden', exitCode: 4 }],
    ['503', { status: 503 }, { code: 'registry.unavailable', exitCode: 4 }],
    ['429', { status: 429 }, { code: 'registry.rate-limited', exitCode: 4 }],
    ['400', { status: 400 }, { code: 'registry.answer', exitCode: 4 }],
  ])('is the error of an image: %s', async (_, script, expected) => {
    mirror.script(({ path }) => (path.includes('manifests') ? script : undefined));
    const error = await errorOf(fetchImage());
    expect(error).toMatchObject(expected);
    expect(error.message).toContain(`image ${NAME} cannot be fetched: ${mirror.host}: `);
    expect(error.message).toContain(`; ${ORIGIN}: ${ORIGIN} is not known to DNS`);
  });

  it.each<[string, Script, object]>([
    ['404', { status: 404 }, { code: 'blob.unknown', exitCode: 4 }],
    ['wrong bytes', { body: wrong }, { code: 'blob.digest-mismatch', exitCode: 5 }],
    ['too many bytes', { body: patternOf(10_001) }, { code: 'blob.too-long', exitCode: 5 }],
    ['a refused password', refusing, { code: 'registry.unauthorized', exitCode: 4 }],
    ['503', { status: 503 }, { code: 'registry.unavailable', exitCode: 4 }],
  ])('is the error of a layer: %s', async (_, script, expected) => {
    mirror.script(({ path }) => (path.includes('blobs') ? script : undefined));
    const error = await errorOf(fetchLayer());
    expect(error).toMatchObject(expected);
    const subject = `blob ${blob.digest} (${blob.size} bytes)`;
    expect(error.message).toContain(`${subject} cannot be fetched: ${mirror.host}: `);
    expect(error.message).toContain(`; ${ORIGIN}: `);
  });

  it('is the error of both if there is no answer at all', async () => {
    await mirror.close();
    const expected = { code: 'registry.unreachable', exitCode: 4 };
    await expect(fetchImage()).rejects.toMatchObject(expected);
    await close();
    openTools(mirror.host);
    await expect(fetchLayer()).rejects.toMatchObject(expected);
    mirror = await startScriptedRegistry();
  });

  it('is the error of both if its certificate is not trusted', async () => {
    const server = await serveByTls(directory, (_, response) => response.end());
    for (const fetchOne of [fetchImage, fetchLayer]) {
      await close();
      openTools(new URL(server.url).host);
      await expect(fetchOne()).rejects.toMatchObject({
        code: 'registry.certificate',
        hint: expect.stringContaining('build.caBundle') as string,
      });
    }
    await server.close();
  });
});

describe('a token server that is out of reach', () => {
  it('is named, and not the registry that asks for its tokens', async () => {
    mirror.script(() => ({
      status: 401,
      headers: { 'www-authenticate': `Bearer realm="http://127.0.0.1:1/token"` },
    }));
    const error = await errorOf(fetchImage());
    expect(error).toMatchObject({ code: 'registry.unreachable' });
    expect(error.message).toContain('the connection to 127.0.0.1:1 failed: ECONNREFUSED; ');
  });
});

describe('wrong bytes of the only source', () => {
  const once = (part: string, script: Script): void => {
    mirror.script(({ path }, nth) => (path.includes(part) && nth === 1 ? script : undefined));
  };

  it('are requested again from byte 0, and a layer is then complete', async () => {
    once('blobs', { body: wrong });
    expect(digestOf(await readFile(await fetchLayer()))).toBe(blob.digest);
    const asked = mirror.requestsOf('blobs');
    expect(asked.map(({ headers }) => headers.range)).toEqual([undefined, undefined]);
  });

  it('are requested again, and a manifest is then right', async () => {
    once('manifests', { body: 'spoiled' });
    expect((await fetchImage()).manifest.kind).toBe('manifest');
    expect(mirror.requestsOf('manifests')).toHaveLength(2);
  });

  it('are requested twice in all if they stay wrong', async () => {
    mirror.script(({ path }) => (path.includes('blobs') ? { body: wrong } : undefined));
    await expect(fetchLayer()).rejects.toMatchObject({
      code: 'blob.digest-mismatch',
      expected: blob.digest,
      found: digestOf(wrong),
    });
    expect(mirror.requestsOf('blobs')).toHaveLength(2);
    mirror.script(({ path }) => (path.includes('manifests') ? { body: 'spoiled' } : undefined));
    await expect(fetchImage()).rejects.toMatchObject({ code: 'manifest.digest-mismatch' });
    expect(mirror.requestsOf('manifests')).toHaveLength(2);
  });

  it('are not requested again if a second source has the right ones', async () => {
    const second = await startScriptedRegistry();
    second.addBlob(bytes);
    mirror.script(({ path }) => (path.includes('blobs') ? { body: wrong } : undefined));
    const client = createTestClient();
    const sources = [mirror.host, second.host].flatMap((host) =>
      client.sourcesOf(parseReference(`${host}/a`)),
    );
    await tools.cache.ensure(blob, sources, { signal });
    expect(mirror.requestsOf('blobs')).toHaveLength(1);
    expect(second.requestsOf('blobs')).toHaveLength(1);
    await client.close();
    await second.close();
  });
});

describe('the error for several answers', () => {
  const CODES = [
    ['manifest.digest-mismatch', IntegrityError],
    ['registry.unauthorized', RegistryError],
    ['credentials.unusable', ConfigError],
    ['registry.certificate', RegistryError],
    ['registry.unavailable', RegistryError],
    ['registry.manifest-unknown', RegistryError],
    ['blob.unknown', RegistryError],
    ['registry.unreachable', RegistryError],
    ['registry.unknown-host', RegistryError],
    ['registry.not-asked', RegistryError],
  ] as const;
  const RANK = [0, 1, 1, 1, 2, 3, 3, 4, 4, 4];
  const answer = (at: number, source: string): SourceAnswer => {
    const [code, Domain] = CODES[at] ?? CODES[0];
    return { source, error: new Domain(code, `answer ${code}`, { hint: `do ${code}` }) };
  };
  const positions = fc.array(fc.nat(CODES.length - 1), { minLength: 1, maxLength: 5 });

  it('has the code of the worst one, or the first of equal ones', () => {
    fc.assert(
      fc.property(positions, (list) => {
        const answers = list.map((at, index) => answer(at, `s${index}`));
        const ranks = list.map((at) => RANK[at] ?? 9);
        expect(findWorst(answers)).toBe(answers[ranks.indexOf(Math.min(...ranks))]);
      }),
    );
  });

  it('names all of them, with code, exit code and hint of the worst', () => {
    fc.assert(
      fc.property(positions, (list) => {
        const answers = list.map((at, index) => answer(at, `s${index}`));
        const { code, exitCode, hint } = findWorst(answers).error;
        const joined = joinAnswers(answers);
        expect(joined).toMatchObject({ code, exitCode, hint });
        for (const { source, error } of answers) {
          expect(joined.message).toContain(error.message);
          if (answers.length > 1) expect(joined.message).toContain(`${source}: `);
        }
      }),
    );
  });
});
