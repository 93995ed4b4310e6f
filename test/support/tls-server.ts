import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export type TlsServer = {
  /** `https://localhost:<port>` */
  readonly url: string;
  /** PEM of the certificate that alone vouches for it; `server.pem` in the directory is the same. */
  readonly certificate: string;
  /** `/path?query` of every request, in order. */
  readonly requests: string[];
  readonly close: () => Promise<void>;
};

/** A server with TLS on loopback whose answers a test writes. */
export async function serveByTls(
  directory: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TlsServer> {
  const [keyPath, path] = [join(directory, 'server.key'), join(directory, 'server.pem')];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-keyout', keyPath, '-out', path, '-subj', '/CN=localhost', '-days', '36500'],
      ...['-addext', 'subjectAltName=DNS:localhost'],
    ],
    { stdio: 'ignore' },
  );
  const certificate = await readFile(path, 'utf8');
  const requests: string[] = [];
  const server = createServer(
    { key: await readFile(keyPath), cert: certificate },
    (request, response) => {
      requests.push(request.url ?? '');
      answer(request, response);
    },
  ).listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    certificate,
    requests,
    url: `https://localhost:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
