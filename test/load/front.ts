import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Random } from '../faults/random.ts';
import type { Certificates } from './certificates.ts';
import { DRAIN_MS, type Replica } from './replica.ts';

/** Why a connection may break; whatever else breaks one is a defect. */
export type Excuse = 'cut' | 'SIGKILL' | 'SIGTERM' | 'no replica' | 'slow client';

/** Where a client asks. */
export type Door = {
  readonly port: number;
  /** Whoever asks there speaks TLS. */
  readonly certificates: Certificates | undefined;
  /** Why the connection from this port of a client broke, which had an answer or not; absent: for no reason. */
  readonly excuseOf: (clientPort: number, isAnswered: boolean) => Excuse | undefined;
};

/** What stands before the replicas: clients know only it. */
export type Front = Door & {
  /** Breaks some of the connections that there are; returns how many. */
  readonly cut: (random: Random) => number;
  readonly close: () => void;
};

type Link = {
  readonly client: Socket;
  readonly upstream: Socket;
};

/** Passes connections on to the replicas that take any, in turn. */
export async function startFront(
  listReplicas: () => readonly Replica[],
  certificates: Certificates | undefined,
): Promise<Front> {
  const excuses = new Map<number, Excuse | 'SIGTERM in time'>();
  const links = new Set<Link>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = client.remotePort ?? 0;
    excuses.delete(port);
    const replicas = listReplicas();
    const replica = replicas[turn++ % replicas.length];
    const give = (excuse: Excuse | 'SIGTERM in time' | undefined): void => {
      if (excuse) excuses.set(port, excuse);
      client.destroy();
    };
    client.on('error', () => undefined);
    if (!replica) {
      give('no replica');
      return;
    }
    const upstream = connect({ port: replica.port, host: '127.0.0.1', allowHalfOpen: true });
    const link = { client, upstream };
    links.add(link);
    upstream.on('error', () => {
      give(explain(replica));
    });
    client.once('close', () => {
      links.delete(link);
      upstream.destroy();
    });
    // A killed process closes its connections as an ending one does; its workers answer 503 until they end.
    const note = (): void => {
      const excuse = explain(replica);
      if (excuse && excuses.get(port) !== 'cut') excuses.set(port, excuse);
    };
    upstream.once('end', note);
    upstream.on('data', note);
    client.pipe(upstream);
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    certificates,
    excuseOf(port, isAnswered) {
      const excuse = excuses.get(port);
      if (excuse !== 'SIGTERM in time') return excuse;
      return isAnswered ? undefined : 'SIGTERM';
    },
    cut(random) {
      const chosen = [...links].filter(() => random.chance(0.5));
      for (const { client } of chosen) {
        excuses.set(client.remotePort ?? 0, 'cut');
        client.destroy();
      }
      return chosen.length;
    },
    close() {
      server.close();
      for (const { client } of links) client.destroy();
    },
  };
}

/** One that ends may refuse who comes, but lets downloads that have begun end, as long as `--drain` says. */
function explain({ ending }: Replica): Excuse | 'SIGTERM in time' | undefined {
  if (!ending) return undefined;
  if (ending.signal === 'SIGKILL') return 'SIGKILL';
  return performance.now() - ending.since > DRAIN_MS ? 'SIGTERM' : 'SIGTERM in time';
}
