import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { digestOf } from '../../src/base/digest.ts';
import type { Descriptor } from '../../src/registry/manifest.ts';
import { MEDIA_TYPE } from '../../src/registry/manifest.ts';

/** A request as it came in. */
export type LoggedRequest = {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
};

/** What goes wrong with one answer; members may be combined. */
export type Script = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Instead of the content asked for. */
  readonly body?: string | Uint8Array;
  /** Bytes of the body after which the connection is cut. */
  readonly cutAfter?: number;
  /** Bytes of the body after which nothing more comes. */
  readonly stallAfter?: number;
  readonly ignoreRange?: boolean;
  /** Say nothing about the length: chunked. */
  readonly withoutLength?: boolean;
  /** The answer waits for this. */
  readonly hold?: Promise<void>;
};

export type ScriptedRegistry = {
  /** `127.0.0.1:port` (`localhost:port` with TLS). */
  readonly host: string;
  readonly requests: readonly LoggedRequest[];
  /** Of bodies. */
  readonly bytesServed: () => number;
  readonly addBlob: (bytes: Uint8Array) => Descriptor;
  readonly addManifest: (document: unknown, tag?: string) => Descriptor;
  /** Decides about each request; undefined lets it pass. `nth` counts requests of this path from 1. */
  readonly script: (decide: (request: LoggedRequest, nth: number) => Script | undefined) => void;
  /** Requests whose path has this in it. */
  readonly requestsOf: (part: string) => readonly LoggedRequest[];
  readonly close: () => Promise<void>;
};

type Content = { readonly bytes: Uint8Array; readonly headers: Record<string, string> };

/** A distribution-spec registry in memory, for every repository the same, that does as it is told. */
export async function startScriptedRegistry(tls?: {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}): Promise<ScriptedRegistry> {
  const requests: LoggedRequest[] = [];
  const contents = new Map<string, Content>();
  const counts = new Map<string, number>();
  let bytesServed = 0;
  let decide: (request: LoggedRequest, nth: number) => Script | undefined = () => undefined;

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '';
    const logged = {
      method: request.method ?? '',
      path,
      headers: request.headers,
      body: await readAll(request),
    };
    requests.push(logged);
    const nth = (counts.get(path) ?? 0) + 1;
    counts.set(path, nth);
    const script = decide(logged, nth) ?? {};
    await script.hold;
    const content = contentFor(path, contents);
    bytesServed += respond(logged, response, { script, content });
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response).catch((error: unknown) => {
      response.destroy(error as Error);
    });
  };
  const server = tls
    ? createTlsServer(
        { ...tls, ...(tls.ca && { requestCert: true, rejectUnauthorized: true }) },
        listener,
      )
    : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `${tls ? 'localhost' : '127.0.0.1'}:${port}`,
    requests,
    bytesServed: () => bytesServed,
    addBlob(bytes) {
      const digest = digestOf(bytes);
      contents.set(`blobs/${digest}`, { bytes, headers: { 'docker-content-digest': digest } });
      return { mediaType: MEDIA_TYPE.ociLayer, digest, size: bytes.length };
    },
    addManifest(document, tag) {
      const bytes = Buffer.from(JSON.stringify(document));
      const digest = digestOf(bytes);
      const mediaType = (document as { mediaType?: string }).mediaType ?? MEDIA_TYPE.ociManifest;
      const content = {
        bytes,
        headers: { 'docker-content-digest': digest, 'content-type': mediaType },
      };
      for (const name of [digest, tag]) if (name) contents.set(`manifests/${name}`, content);
      return { mediaType, digest, size: bytes.length };
    },
    script: (next) => {
      decide = next;
    },
    requestsOf: (part) => requests.filter(({ path }) => path.includes(part)),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A small image manifest; `name` makes it another one. */
export function imageManifest(name: string, blobs: readonly Descriptor[] = []): unknown {
  const config: Descriptor = {
    mediaType: MEDIA_TYPE.ociConfig,
    digest: digestOf(name),
    size: name.length,
  };
  return { schemaVersion: 2, mediaType: MEDIA_TYPE.ociManifest, config, layers: blobs };
}

/** Bytes that are the same each time, and different everywhere. */
export function patternOf(size: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(size);
  let state = seed;
  for (let index = 0; index < size; index += 1) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    bytes[index] = state >>> 16;
  }
  return bytes;
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function contentFor(path: string, contents: ReadonlyMap<string, Content>): Content | undefined {
  if (path === '/v2/') return { bytes: Buffer.from('{}'), headers: {} };
  const [, name] = /((?:blobs|manifests)\/[^/?]+)(?:\?.*)?$/.exec(path) ?? [];
  return name === undefined ? undefined : contents.get(name);
}

type Answering = { readonly script: Script; readonly content: Content | undefined };

/** Bytes that were sent. */
function respond(
  request: LoggedRequest,
  response: ServerResponse,
  { script, content }: Answering,
): number {
  const whole =
    script.body === undefined ? (content?.bytes ?? new Uint8Array()) : Buffer.from(script.body);
  const [, from, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const usual = content ? 200 : 404;
  const isPart = from !== undefined && usual === 200 && script.ignoreRange !== true;
  const start = isPart ? Number(from) : 0;
  const bytes = whole.subarray(start, isPart && last !== '' ? Number(last) + 1 : whole.length);
  const status = script.status ?? (isPart ? 206 : usual);
  for (const [name, value] of Object.entries({ ...content?.headers, ...script.headers })) {
    response.setHeader(name, value);
  }
  if (status === 206) {
    const range = `bytes ${start}-${start + bytes.length - 1}/${whole.length}`;
    response.setHeader('content-range', range);
  }
  if (script.withoutLength !== true) response.setHeader('content-length', bytes.length);
  response.writeHead(status);
  if (request.method === 'HEAD') {
    response.end();
    return 0;
  }
  if (script.stallAfter !== undefined) {
    const sent = bytes.subarray(0, script.stallAfter);
    response.write(sent);
    return sent.length;
  }
  if (script.cutAfter === undefined) {
    response.end(bytes);
    return bytes.length;
  }
  const sent = bytes.subarray(0, script.cutAfter);
  response.write(sent, () => response.destroy());
  return sent.length;
}
