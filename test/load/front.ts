import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Random } from '../faults/random.ts';
import { DRAIN_MS, type Replica } from './replica.ts';

/** Why a connection may break; whatever else breaks one is a defect. */
export type Excuse = 'cut' | 'SIGKILL' | 'SIGTERM' | 'no replica';

/** What stands before the replicas: clients know only it. */
export type Front = {
  readonly port: number;
  /** Why the connection from this port of a client broke; absent where there is no reason. */
  readonly excuseOf: (clientPort: number) => Excuse | undefined;
  /** Breaks some of the connections that there are; returns how many. */
  readonly cut: (random: Random) => number;
  readonly close: () => void;
};

type Link = {
  readonly client: Socket;
  readonly upstream: Socket;
};

/** Passes connections on to the replicas that take any, in turn. */
export async function startFront(listReplicas: () => readonly Replica[]): Promise<Front> {
  const excuses = new Map<number, Excuse>();
  const links = new Set<Link>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = client.remotePort ?? 0;
    excuses.delete(port);
    const replicas = listReplicas();
    const replica = replicas[turn++ % replicas.length];
    const give = (excuse: Excuse | undefined): void => {
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
    let isForwarded = false;
    upstream.once('data', () => (isForwarded = true));
    upstream.on('error', () => {
      give(explain(replica, isForwarded));
    });
    client.once('close', () => {
      links.delete(link);
      upstream.destroy();
    });
    // A killed process closes its connections as an ending one does.
    upstream.once('end', () => {
      const excuse = explain(replica, isForwarded);
      if (excuse && !excuses.has(port)) excuses.set(port, excuse);
    });
    client.pipe(upstream);
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    excuseOf: (port) => excuses.get(port),
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
function explain({ ending }: Replica, isForwarded: boolean): Excuse | undefined {
  if (!ending) return undefined;
  if (ending.signal === 'SIGKILL') return 'SIGKILL';
  const isLate = performance.now() - ending.since > DRAIN_MS;
  return isLate || !isForwarded ? 'SIGTERM' : undefined;
}
