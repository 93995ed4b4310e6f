import { createServer, type AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf } from '../../../src/base/digest.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { createRegistryClient } from '../../../src/registry/client.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { createTestRetries } from '../../support/test-clock.ts';

const redaction = createRedaction();

const TYPE = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = JSON.stringify({ schemaVersion: 2, mediaType: TYPE, manifests: [] });
const HEAD = [
  'HTTP/1.1 200 OK',
  `content-type: ${TYPE}`,
  `content-length: ${MANIFEST.length}`,
  `docker-content-digest: ${digestOf(MANIFEST)}`,
];

it('a server that answers HEAD with a body, which RFC 9110 9.3.2 forbids, can be used', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write(`${[...HEAD, '', ''].join('\r\n')}${MANIFEST}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const http = createHttp({ redaction, env: {}, connections: 1, retries: createTestRetries() });
  const client = createRegistryClient({
    http,
    credentials: [],
    insecureRegistries: [host],
  });
  const { signal } = new AbortController();
  const reference = parseReference(`${host}/a/b:v1`);
  try {
    for (let index = 0; index < 3; index++) {
      expect((await client.resolveTag(reference, { signal }))?.digest).toBe(digestOf(MANIFEST));
    }
    expect((await client.fetchManifest(reference, { signal })).descriptor.digest).toBe(
      digestOf(MANIFEST),
    );
  } finally {
    await client.close();
    await http.close();
    server.close();
  }
});
