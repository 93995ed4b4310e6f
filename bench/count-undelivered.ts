import { subscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/**
 * Counts what the servers of this process have handed to their sockets and no client has received:
 * what waits in the process, and in the kernel's send queues (`tx_queue`, proc_net_tcp.txt). A client
 * that is killed never had these bytes.
 */
export function countUndelivered(): () => number {
  const sockets = new Set<Socket>();
  subscribe('net.server.socket', (message) => {
    const { socket } = message as { readonly socket: Socket };
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return () => {
    const open = [...sockets];
    const waiting = open.reduce((sum, { writableLength }) => sum + writableLength, 0);
    const ports = new Set(open.map(({ localPort }) => localPort));
    return waiting + sumSendQueues((port) => ports.has(port));
  };
}

function sumSendQueues(isOurs: (localPort: number) => boolean): number {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFileSync(path, 'utf8'));
  const rows = tables.flatMap((table) => table.trim().split('\n').slice(1));
  return rows.reduce((sum, row) => {
    const [, local = '', , , queues = ''] = row.trim().split(/\s+/);
    const port = Number.parseInt(local.split(':')[1] ?? '', 16);
    return isOurs(port) ? sum + Number.parseInt(queues.split(':')[0] ?? '', 16) : sum;
  }, 0);
}
