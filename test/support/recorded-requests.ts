import { createServer, connect, type AddressInfo, type Socket } from 'node:net';

export type RecordedRequest = {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
};

export type Recorder = {
  /** The URL by way of the recorder. */
  readonly via: (url: string) => string;
  /** Requests so far; those without a body. */
  readonly requests: () => readonly RecordedRequest[];
  readonly close: () => void;
};

/** Passes bytes on to a server as they are, in both directions, and reads the heads of requests. */
export async function recordRequests(origin: string): Promise<Recorder> {
  const { hostname, port } = new URL(origin);
  const sent: Buffer[][] = [];
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const own: Buffer[] = [];
    sent.push(own);
    const upstream = connect(Number(port), hostname);
    client.on('data', (piece) => own.push(piece));
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => {
        client.destroy();
        upstream.destroy();
      });
      socket.on('close', () => open.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const own = (server.address() as AddressInfo).port;
  return {
    via: (url) => Object.assign(new URL(url), { port: own }).href,
    requests: () =>
      sent.flatMap((pieces) =>
        Buffer.concat(pieces).toString('latin1').split('\r\n\r\n').slice(0, -1).map(parseHead),
      ),
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function parseHead(text: string): RecordedRequest {
  const [line = '', ...fields] = text.split('\r\n');
  const [method = '', target = ''] = line.split(' ');
  const headers = fields.map((field) => {
    const at = field.indexOf(':');
    return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()] as const;
  });
  return { method, target, headers: Object.fromEntries(headers) };
}
