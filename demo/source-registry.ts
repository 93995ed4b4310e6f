import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { StoredManifest } from '../src/registry/manifest.ts';
import type { Blob } from './payload.ts';
import { createReleaseSigner, type ReleaseSigner } from './release-signer.ts';

/** An image to serve: its manifests (the top one first) and its blobs. */
export type SourceImage = {
  readonly manifests: readonly StoredManifest[];
  readonly blobs: readonly Blob[];
};

export type SourceRegistry = {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** Puts an image where its digests, and these tags, find it. */
  readonly add: (repository: string, image: SourceImage, ...tags: readonly string[]) => void;
  /** Of the releases in it; the registry is their signature store, too, below `/signatures/`. */
  readonly signer: ReleaseSigner;
  /** Makes it an update graph, too, at `GRAPH`: every channel has these releases. */
  readonly publishGraph: (nodes: readonly GraphNode[]) => void;
  /** Bytes of blobs that were handed to sockets. */
  readonly bytesServed: () => number;
  readonly close: () => Promise<void>;
};

const PIECE = 256 * 1024;

/** Where the signature store is. */
export const SIGNATURES = '/signatures/';

/** Where the update graph is. */
export const GRAPH = '/graph';

type GraphNode = { readonly version: string; readonly payload: string };

export type SourceOptions = {
  /** Milliseconds between two pieces of a blob, to be as slow as a network. */
  readonly pauseMs?: number;
  /** PEM texts; plain HTTP without. */
  readonly tls?: { readonly key: string; readonly cert: string };
};

/** A registry on loopback that makes its blobs while it serves them. Reads only, by Range too. */
export async function startSourceRegistry(options: SourceOptions = {}): Promise<SourceRegistry> {
  const { pauseMs = 0, tls } = options;
  const manifests = new Map<string, StoredManifest>();
  const blobs = new Map<string, Blob>();
  const counter = { bytes: 0 };
  const graph: GraphNode[] = [];
  const signer = createReleaseSigner();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response, { manifests, blobs, graph, signer, counter, pauseMs });
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    add(repository, image, ...tags) {
      const [top] = image.manifests;
      for (const stored of image.manifests) {
        manifests.set(`${repository} ${stored.descriptor.digest}`, stored);
      }
      for (const tag of tags) if (top) manifests.set(`${repository} ${tag}`, top);
      for (const blob of image.blobs) blobs.set(`${repository} ${blob.digest}`, blob);
    },
    signer,
    publishGraph: (nodes) => void graph.push(...nodes),
    bytesServed: () => counter.bytes,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Shelf = {
  readonly manifests: ReadonlyMap<string, StoredManifest>;
  readonly blobs: ReadonlyMap<string, Blob>;
  readonly graph: readonly GraphNode[];
  readonly signer: ReleaseSigner;
  readonly counter: { bytes: number };
  readonly pauseMs: number;
};

function answer(request: IncomingMessage, response: ServerResponse, shelf: Shelf): void {
  if (request.url === '/v2/') {
    response.end('{}');
    return;
  }
  const path = decodeURIComponent(request.url ?? '');
  if (path.startsWith(`${GRAPH}?`)) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ nodes: shelf.graph, edges: [], conditionalEdges: [] }));
    return;
  }
  if (path.startsWith(SIGNATURES)) {
    const message = shelf.signer.find(path.slice(SIGNATURES.length));
    response.writeHead(message ? 200 : 404).end(message);
    return;
  }
  const [, name = '', kind = '', key = ''] =
    /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
  const stored = kind === 'manifests' ? shelf.manifests.get(`${name} ${key}`) : undefined;
  const blob = kind === 'blobs' ? shelf.blobs.get(`${name} ${key}`) : undefined;
  if (stored) {
    response.writeHead(200, {
      'content-type': stored.descriptor.mediaType,
      'content-length': stored.bytes.length,
      'docker-content-digest': stored.descriptor.digest,
    });
    response.end(request.method === 'HEAD' ? undefined : stored.bytes);
  } else if (blob) {
    sendBlob(request, response, { ...shelf, blob });
  } else {
    const code = kind === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN';
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ errors: [{ code, message: `no ${key}`, detail: {} }] }));
  }
}

function sendBlob(
  request: IncomingMessage,
  response: ServerResponse,
  { blob, counter, pauseMs }: Shelf & { readonly blob: Blob },
): void {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const start = range ? Number(range[1]) : 0;
  const end = range?.[2] ? Math.min(Number(range[2]) + 1, blob.size) : blob.size;
  response.writeHead(range ? 206 : 200, {
    'content-type': 'application/octet-stream',
    'content-length': end - start,
    'docker-content-digest': blob.digest,
    ...(range && { 'content-range': `bytes ${start}-${end - 1}/${blob.size}` }),
  });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  let offset = start;
  const send = (): void => {
    while (offset < end && !response.destroyed) {
      const piece = blob.view(offset, Math.min(PIECE, end - offset));
      offset += piece.length;
      counter.bytes += piece.length;
      if (!response.write(piece)) {
        response.once('drain', send);
        return;
      }
      if (pauseMs > 0) {
        setTimeout(send, pauseMs);
        return;
      }
    }
    response.end();
  };
  send();
}
