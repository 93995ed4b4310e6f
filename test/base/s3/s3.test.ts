import { afterEach, describe, expect, it, vi } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp, type Http } from '../../../src/base/http/http.ts';
import { explainS3Failure } from '../../../src/base/s3/failure.ts';
import { createS3, type S3 } from '../../../src/base/s3/s3.ts';
import { openStoredObject } from '../../../src/outputs/object/stored.ts';
import { serveLocally, type LocalServer } from '../../support/local-http.ts';

const { signal } = new AbortController();
const KEYS = { AWS_ACCESS_KEY_ID: 'key-of-a-test', AWS_SECRET_ACCESS_KEY: 'secret-of-a-test' };

let server: LocalServer | undefined;
let http: Http;

afterEach(async () => {
  await http.close();
  await server?.close();
  server = undefined;
});

function open(env: NodeJS.ProcessEnv): S3 {
  http = createHttp({ redaction: createRedaction(), env: {} });
  return createS3({ http, env });
}

describe('an object store', () => {
  it.each([
    { what: 'a document', type: 'application/xml' },
    { what: 'an object', type: 'application/octet-stream' },
  ])('is asked again when the connection breaks in the middle of $what', async ({ type }) => {
    const isDocument = type.endsWith('xml');
    const body = isDocument
      ? '<InitiateMultipartUploadResult><UploadId>7</UploadId></InitiateMultipartUploadResult>'
      : 'the bytes of an object';
    server = await serveLocally((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': type, 'content-length': body.length });
      const isFirst = server?.requests.length === 1;
      if (isFirst) response.write(body.slice(0, 10), () => response.destroy());
      else response.end(body);
    });
    const s3 = open({ ...KEYS, AWS_ENDPOINT_URL_S3: server.url });
    const object = openStoredObject(s3, { bucket: 'media', key: 'a' }, signal);
    if (isDocument) expect(await object.beginUpload({})).toBe('7');
    else expect(Buffer.from(await object.read()).toString()).toBe(body);
    expect(server.requests).toHaveLength(2);
  });

  it.each([
    [{ AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9' }, 'object-store.credentials'],
    [KEYS, 'object-store.region'],
  ])('is not asked without credentials or a region: %o', async (env, code) => {
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    try {
      const object = openStoredObject(open(env), { bucket: 'media', key: 'a' }, signal);
      await expect(object.look()).rejects.toMatchObject({ code, exitCode: 3 });
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('is not waited for after an interruption, while no service gives credentials', async () => {
    server = await serveLocally(() => undefined); // takes the question, and never answers
    const stop = new AbortController();
    process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = `${server.url}/credentials`;
    try {
      const s3 = open({ AWS_ENDPOINT_URL_S3: server.url });
      const asking = openStoredObject(s3, { bucket: 'media', key: 'a' }, stop.signal).look();
      const reason = new Error('interrupted');
      stop.abort(reason);
      await expect(asking).rejects.toBe(reason);
    } finally {
      delete process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'];
    }
  });

  it.each(['412', '501'])(
    'that answers a condition with %s is checked before and after each copy, and before the end',
    async (status) => {
      const object = await openScripted({ status, etags: ['old', 'old', 'old', 'new'] });
      const part = { upload: '7', number: 1 };
      const range = { offset: 0, size: 5, etag: 'old' };
      expect(await object.copyPart(part, range)).toBe('part');
      expect(asked).toEqual(['PUT if old', 'HEAD', 'PUT', 'HEAD']);
      await expect(object.copyPart(part, range)).rejects.toMatchObject({
        code: 'object-store.changed',
        expected: 'old',
        found: 'new',
      });
      const completing = object.complete('7', { etags: ['part'], replaces: 'old' });
      await expect(completing).rejects.toMatchObject({ code: 'object-store.changed' });
      expect(asked.slice(-2)).toEqual(['POST if old', 'HEAD']);
    },
  );

  const asked: string[] = [];

  /** Refuses each condition, and has these ETags one after another. */
  async function openScripted({ status, etags }: { status: string; etags: readonly string[] }) {
    asked.length = 0;
    const left = [...etags];
    server = await serveLocally((request, response) => {
      request.resume();
      const { method = '', headers } = request;
      const condition = headers['x-amz-copy-source-if-match'] ?? headers['if-match'];
      asked.push(
        condition === undefined ? method : `${method} if ${String(condition).replaceAll('"', '')}`,
      );
      if (condition !== undefined) response.writeHead(Number(status)).end();
      else if (method === 'HEAD') {
        const etag = left.length > 1 ? left.shift() : left[0];
        response.writeHead(200, { etag: `"${etag ?? ''}"` }).end();
      } else response.end('<CopyPartResult><ETag>"part"</ETag></CopyPartResult>');
    });
    const s3 = open({ ...KEYS, AWS_ENDPOINT_URL_S3: server.url });
    return openStoredObject(s3, { bucket: 'media', key: 'a' }, signal);
  }
});

describe('an answer of an object store', () => {
  it('that misses a part has the hint that the same command sends it again', () => {
    const error = Object.assign(new Error('no such part'), {
      name: 'InvalidPart',
      $metadata: { httpStatusCode: 400 },
    });
    expect(explainS3Failure(error, { about: 's3://media/a.iso', host: 's3' })).toMatchObject({
      code: 'object-store.answer',
      hint: expect.stringContaining('run the same command again') as string,
    });
  });
});
