import cluster from 'node:cluster';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { openPartCache } from '../src/media/serving/part-cache.ts';
import type { PackedOverlay } from '../src/media/serving/packed-overlay.ts';
import { prepareDrain } from '../src/media/serving/drain.ts';
import { serveBytes } from '../src/media/serving/serve-bytes.ts';
import { openStoredOverlay, storeOverlay } from '../src/media/serving/stored-overlay.ts';
import { openIsoBase } from '../src/media/serving/virtual-base.ts';
import { createVirtualIso, type VirtualBase } from '../src/media/serving/virtual-iso.ts';
import { CONNECTION_LIMITS, limitConnections } from '../src/registry/server/connections.ts';

/*
 * `virtual-server DIRECTORY WORKERS ISO...`: serves each ISO with any number of customisations, `/RELEASE/NAME`. The
 * overlay of a name is made at its first request. Prints its port.
 */

const [directory = '', workers = '', ...paths] = process.argv.slice(2);
const key = Buffer.alloc(32, 'bench');
const signal = new AbortController().signal;

/** Overlays that were asked for lately. */
const WARM = 200;
const overlays = new Map<string, Promise<PackedOverlay>>();

/** An embed area of 1 MiB with 40 KB in it, and arguments in two menus. */
async function findOverlay(base: VirtualBase, name: string): Promise<PackedOverlay> {
  const place = { directory: join(directory, 'overlays'), name: `${name} ${base.digest}`, key };
  const stored = await openStoredOverlay(place);
  if (stored) return stored;
  const config = Buffer.alloc(1 << 20);
  config.fill(name, 0, 40_000);
  return storeOverlay(place, [
    { offset: 4 << 20, bytes: config },
    { offset: 1 << 20, bytes: Buffer.alloc(1139, name) },
    { offset: 2 << 20, bytes: Buffer.alloc(1139, name) },
  ]);
}

function warm(base: VirtualBase, name: string): Promise<PackedOverlay> {
  const id = `${name} ${base.digest}`;
  const found = overlays.get(id) ?? findOverlay(base, name);
  overlays.delete(id);
  overlays.set(id, found);
  for (const oldest of overlays.keys()) {
    if (overlays.size <= WARM) break;
    overlays.delete(oldest);
  }
  return found;
}

async function serve(): Promise<void> {
  const host = { env: {}, cwd: directory, signal, emit: () => undefined };
  const parts = join(directory, `parts-${process.pid}`);
  const cache = await openPartCache({ directory: parts, limit: 1 << 30, warn: console.error });
  const bases: VirtualBase[] = [];
  for (const path of paths) bases.push(await openIsoBase(path, { host, cache }));
  const server = createServer((request, response) => {
    const [, release = '', name = ''] = request.url?.split('/') ?? [];
    const base = bases[Number(release)];
    if (!base) {
      response.writeHead(404).end();
      return;
    }
    warm(base, name)
      .then((overlay) => {
        const iso = createVirtualIso(base, overlay);
        return serveBytes({ request, response }, iso, { filename: name, onProgress });
      })
      .catch((error: unknown) => {
        console.error(error);
        response.writeHead(500).end();
      });
  });
  const onProgress = limitConnections(server, { ...CONNECTION_LIMITS, connections: 4096 });
  const { drain } = prepareDrain(server);
  process.once('SIGTERM', () => {
    void drain(signal).then(() => process.exit());
  });
  server.listen(0, '127.0.0.1', 4096, () => {
    console.log((server.address() as AddressInfo).port);
  });
}

if (cluster.isPrimary && Number(workers) > 1) {
  for (let count = 0; count < Number(workers); count += 1) cluster.fork();
  process.once('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGTERM');
  });
} else await serve();
