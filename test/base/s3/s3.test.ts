import { afterEach, describe, expect, it } from 'vitest';
import { createHttp, type Http } from '../../../src/base/http/http.ts';
import { createS3, type S3 } from '../../../src/base/s3/s3.ts';
import { openStoredObject } from '../../../src/media/object/stored-object.ts';
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
  http = createHttp({ env: {} });
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
});
