import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the front does with a request instead of handing it on. */
export type S3Fault = 'status503' | 'status400' | 'cut' | 'lose-answer';

/** What a client asked an S3 service for. */
export type S3Request = {
  readonly method: string;
  readonly url: string;
  /** Whether bytes of a part are sent, or copied by the service. */
  readonly kind: 'part' | 'copy' | 'other';
};

export type S3Front = {
  readonly endpoint: string;
  /** All requests so far. */
  readonly requests: readonly S3Request[];
  /** Bytes of parts that came in. */
  readonly sent: () => number;
  /** Called before each request: what it returns happens. */
  watch: (request: S3Request) => S3Fault | undefined;
  readonly close: () => Promise<void>;
};

/** Stands before an S3 service on loopback: counts what passes, and spoils what a test says. */
export async function startS3Front(endpoint: string): Promise<S3Front> {
  const requests: S3Request[] = [];
  let sent = 0;
  const server = createServer((incoming, response) => {
    incoming.on('error', () => undefined);
    response.on('error', () => undefined);
    const asked = describe(incoming);
    requests.push(asked);
    const fault = front.watch(asked);
    if (asked.kind === 'part') incoming.on('data', (piece: Buffer) => (sent += piece.length));
    if (fault === 'cut') incoming.socket.destroy();
    else if (fault === 'status503' || fault === 'status400') {
      incoming.resume();
      const status = Number(fault.slice('status'.length));
      incoming.on('end', () => response.writeHead(status, { 'retry-after': '0' }).end());
    } else handOn(endpoint, { incoming, response }, fault === 'lose-answer');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const front: S3Front = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    sent: () => sent,
    watch: () => undefined,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return front;
}

function describe({ method = '', url = '', headers }: IncomingMessage): S3Request {
  const isPart = method === 'PUT' && url.includes('partNumber=');
  const isCopy = headers['x-amz-copy-source'] !== undefined;
  return { method, url, kind: isPart ? (isCopy ? 'copy' : 'part') : 'other' };
}

/** With all headers as they are: the signature covers the name of the host that was asked. */
function handOn(
  endpoint: string,
  { incoming, response }: { incoming: IncomingMessage; response: ServerResponse },
  losesAnswer: boolean,
): void {
  const { method, url = '', headers } = incoming;
  let isAnswered = false;
  // Swift sends a body behind some answers to HEAD: no connection is used twice.
  const passed = request(`${endpoint}${url}`, { method, headers, agent: false }, (answer) => {
    isAnswered = true;
    answer.on('error', () => undefined);
    if (losesAnswer) {
      answer.resume();
      answer.on('end', () => incoming.socket.destroy());
      return;
    }
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => {
    if (!isAnswered) incoming.socket.destroy();
  });
  incoming.on('close', () => {
    if (!incoming.complete) passed.destroy();
  });
  incoming.pipe(passed);
}
