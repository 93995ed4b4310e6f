import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Http } from '../../src/base/http/http.ts';
import type { ExtentChunk, ExtentOpener } from '../../src/pour/spans.ts';
import { pourIso } from '../../src/pour/pour.ts';
import { createExtentOpener } from '../../src/stages/5-pour/open-extents.ts';
import { downloadFile } from '../../src/base/download/fetch.ts';
import { createFileDigests } from '../../src/base/disk/file-digests.ts';
import { createBlobCache } from '../../src/base/store/blob-cache.ts';
import { createRegistryClient } from '../../src/registry/client.ts';
import type { Descriptor } from '../../src/registry/manifest.ts';

export type DownloadTask = {
  readonly blob: Descriptor;
  /** `127.0.0.1:port/repository`, as many as there are mirrors; only the first one of a file. */
  readonly repositories: readonly string[];
  readonly http: Http;
  /** Where what is left by one run is found by the next. */
  readonly directory: string;
  readonly signal: AbortSignal;
  /** Told how many bytes the download has taken. */
  readonly onBytes?: (count: number) => void;
};

/** Brings the bytes here. */
type DownloadUser = (task: DownloadTask) => Promise<Buffer>;

const clientOf = (http: Http): ReturnType<typeof createRegistryClient> =>
  createRegistryClient({ http, credentials: [], certsDirs: [] });

async function intoCache(task: DownloadTask): Promise<Buffer> {
  const { blob, signal, onBytes } = task;
  const client = clientOf(task.http);
  const sources = task.repositories.flatMap((name) => {
    const [registry = '', ...path] = name.split('/');
    return client.sourcesOf({ registry, repository: path.join('/') });
  });
  const cache = createBlobCache(task.directory);
  const options = { signal, ...(onBytes && { onProgress: onBytes }) };
  return readFile(await cache.ensure(blob, sources, options));
}

async function intoIso(task: DownloadTask): Promise<Buffer> {
  const { blob, directory, signal, onBytes } = task;
  const output = join(directory, 'out.iso');
  const open = createExtentOpener({
    blobs: [{ ...blob, users: [], from: task.repositories }],
    cache: createBlobCache(join(directory, 'cache')),
    digests: createFileDigests(directory),
    client: clientOf(task.http),
  });
  async function* watch(chunks: AsyncIterable<ExtentChunk>): AsyncGenerator<ExtentChunk> {
    for await (const chunk of chunks) {
      yield chunk;
      onBytes?.(chunk.offset + chunk.bytes.length);
    }
  }
  const openExtent: ExtentOpener = async (extent, options) => {
    const opened = await open(extent, options);
    return opened.kind === 'file' ? opened : { ...opened, chunks: watch(opened.chunks) };
  };
  const { digest, size } = blob;
  const extent = { offset: 0, size, digest, source: { kind: 'blob' }, paths: ['/blob'] } as const;
  await pourIso({ layout: { size, extents: [extent] }, output, openExtent, lanes: 1, signal });
  return readFile(`${output}.partial`);
}

async function intoFile(task: DownloadTask): Promise<Buffer> {
  const { blob, http, signal, onBytes } = task;
  const [host = '', ...repository] = task.repositories[0]?.split('/') ?? [];
  const url = new URL(`http://${host}/v2/${repository.join('/')}/blobs/${blob.digest}`);
  const path = join(task.directory, 'file.partial');
  const wanted = { url, digest: blob.digest, limit: blob.size };
  await downloadFile({ ...wanted, path, http, signal, ...(onBytes && { onProgress: onBytes }) });
  return readFile(path);
}

/** All that bring large objects from the network to the disk. */
export const DOWNLOAD_USERS: Readonly<Record<string, DownloadUser>> = {
  'the blob cache': intoCache,
  'a pour': intoIso,
  'a file by address': intoFile,
};
