import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from './random.ts';

/** What a network and a registry do to a client, each by its share of the answers. */
export const FAULTS = [
  ...['refuse', 'cut', 'corrupt', 'status429', 'status5xx', 'slow', 'stall', 'ignoreRange'],
] as const;

export type Fault = (typeof FAULTS)[number];

export type FaultyFront = {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** From now on this share of the answers has one of these faults. */
  readonly spoil: (faults: readonly Fault[], share: number) => void;
  /** How often each fault was met. */
  readonly counts: ReadonlyMap<Fault, number>;
  readonly close: () => Promise<void>;
};

const SLOW_PIECE = 16 * 1024;

/** Stands before a good registry on loopback and spoils a share of its answers. */
export async function startFaultyFront(behind: string, random: Random): Promise<FaultyFront> {
  const counts = new Map<Fault, number>();
  let faults: readonly Fault[] = [];
  let share = 0;
  const choose = (): Fault | undefined => {
    if (faults.length === 0 || !random.chance(share)) return undefined;
    const fault = faults[random.below(faults.length)];
    if (fault) counts.set(fault, (counts.get(fault) ?? 0) + 1);
    return fault;
  };
  const server = createServer((incoming, response) => {
    response.on('error', () => undefined); // the client may be killed at any time
    incoming.on('error', () => undefined);
    answer({ incoming, response, behind, random }, choose());
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    spoil(wanted, wantedShare) {
      faults = wanted;
      share = wantedShare;
    },
    counts,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Exchange = {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly behind: string;
  readonly random: Random;
};

function answer(exchange: Exchange, fault: Fault | undefined): void {
  const { incoming, response, random } = exchange;
  switch (fault) {
    case 'refuse':
      incoming.socket.destroy();
      return;
    case 'stall':
      setTimeout(() => incoming.socket.destroy(), 3000).unref();
      return;
    case 'status429':
      response.writeHead(429, { 'retry-after': '1' }).end('{}');
      return;
    case 'status5xx':
      response.writeHead(random.pick([500, 502, 503, 504])).end('{}');
      return;
    case 'cut':
    case 'corrupt':
    case 'slow':
    case 'ignoreRange':
    case undefined:
      forward(exchange, fault);
  }
}

function forward({ incoming, response, behind, random }: Exchange, fault: Fault | undefined): void {
  const headers = { ...incoming.headers };
  if (fault === 'ignoreRange') delete headers.range;
  const { method, url } = incoming;
  const asked = request(`http://${behind}${url ?? '/'}`, { method, headers }, (answered) => {
    void send(answered);
  });
  const send = async (answered: IncomingMessage): Promise<void> => {
    const size = Number(answered.headers['content-length'] ?? 0);
    const at = random.below(Math.max(1, size));
    response.writeHead(answered.statusCode ?? 500, answered.headers);
    let sent = 0;
    try {
      for await (const piece of answered) {
        const bytes = Buffer.from(piece as Buffer);
        const isThere = at >= sent && at < sent + bytes.length;
        if (fault === 'corrupt' && isThere) bytes[at - sent] = (bytes[at - sent] ?? 0) ^ 0x40;
        if (fault === 'cut' && isThere) {
          response.write(bytes.subarray(0, at - sent), () => response.destroy());
          return;
        }
        sent += bytes.length;
        if (!(await write(response, bytes, fault === 'slow'))) return;
      }
      response.end();
    } catch {
      response.destroy(); // the registry behind, or the client, is gone
    }
  };
  asked.on('error', () => response.destroy());
  response.on('close', () => asked.destroy());
  asked.end();
}

/** False when nobody reads any more. */
async function write(response: ServerResponse, bytes: Buffer, isSlow: boolean): Promise<boolean> {
  const step = isSlow ? SLOW_PIECE : bytes.length;
  for (let at = 0; at < bytes.length; at += step) {
    if (response.destroyed) return false;
    if (isSlow) await new Promise((resolve) => setTimeout(resolve, 10));
    if (response.write(bytes.subarray(at, at + step))) continue;
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        response.off('drain', goOn).off('close', goOn);
        resolve();
      };
      response.on('drain', goOn).on('close', goOn);
    });
  }
  return !response.destroyed;
}
