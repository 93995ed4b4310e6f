import { addAbortSignal, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Extract, type Header, pack, type Pack } from 'tar-stream';
import { explainDecodeError, createExpansionGuard, requireSize } from '../../base/decode/limits.ts';
import { unzstd } from '../../base/decode/zstd.ts';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import type { Descriptor } from '../manifest.ts';

/** One layer of an image: its descriptor, and its bytes. */
export type Layer = {
  readonly descriptor: Descriptor;
  /** The raw blob as the registry holds it, whole and already verified. */
  readonly open: () => Promise<Readable>;
};

/** A tar entry: its header, and a body that must be read to its end or skipped. */
export type LayerEntry = {
  readonly header: Header;
  readonly body: AsyncIterable<Buffer>;
  readonly skip: () => void;
};

type TarEntry = AsyncIterable<Buffer> & { readonly header: Header; readonly resume: () => unknown };

type Compression = 'none' | 'gzip' | 'zstd';

/** Large pieces: at 16 KiB, Node spends more time between chunks than on them. */
const CHUNK_SIZE = 1 << 20;

/** Old tars without a `ustar` magic are read, too; their checksum still has to be right. */
const TAR_OPTIONS = { allowUnknownFormat: true, highWaterMark: CHUNK_SIZE };

/** First bytes, in hex, of every format a tool may have packed a layer with. */
const MAGIC: readonly (readonly [name: string, bytes: RegExp])[] = [
  ['gzip', /^1f8b/], // RFC 1952 2.3.1
  ['zstd', /^28b52ffd|^5[0-9a-f]2a4d18/], // RFC 8878 3.1.1; 3.1.2: frames to skip may come first
  ['xz', /^fd377a58/],
  ['bzip2', /^425a68/],
];

/**
 * The entries of a layer in the order they were packed. The body of an entry must be read or
 * skipped before the next is asked for; leaving the loop closes the blob.
 */
export async function* openLayer(layer: Layer, signal: AbortSignal): AsyncGenerator<LayerEntry> {
  const raw = await layer.open();
  const stop = new AbortController();
  const tar = extract(TAR_OPTIONS);
  const ending = AbortSignal.any([signal, stop.signal]);
  const { size } = layer.descriptor;
  const feeding = feed(addAbortSignal(ending, raw), tar, { size, signal: ending });
  const failure = feeding.then(
    () => undefined,
    (error: unknown) => error,
  );
  const explain: Explain = async (cause) => {
    signal.throwIfAborted();
    throw malformed(layer, (await failure) ?? cause);
  };
  try {
    for await (const entry of explained(tar as AsyncIterable<TarEntry>, explain)) {
      requireSize(entry.header, (cause) => malformed(layer, cause));
      yield {
        header: entry.header,
        body: explained(entry, explain),
        skip: () => void entry.resume(),
      };
    }
    await feeding.catch(explain);
  } finally {
    stop.abort();
    await failure;
    raw.destroy();
  }
}

type FeedOptions = { readonly size: number; readonly signal: AbortSignal };

/** Feeds a layer of `size` bytes, unpacked, to the tar reader. */
async function feed(raw: Readable, tar: Extract, { size, signal }: FeedOptions): Promise<void> {
  try {
    const { head, rest } = await peek(raw);
    const source = Readable.from(rest, { objectMode: false, highWaterMark: CHUNK_SIZE });
    const guard = createExpansionGuard(size);
    switch (compressionOf(head)) {
      case 'none':
        await pipeline(source, tar, { signal });
        break;
      case 'gzip':
        await pipeline(source, createGunzip({ chunkSize: CHUNK_SIZE }), guard, tar, { signal });
        break;
      case 'zstd':
        await pipeline(unzstd(source, signal), guard, tar, { signal });
        break;
    }
  } catch (error) {
    tar.destroy(error as Error);
    throw error;
  }
}

/** Reads the first bytes without losing them. */
async function peek(raw: Readable): Promise<{ head: Buffer; rest: AsyncIterable<Buffer> }> {
  const chunks = raw[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let head = Buffer.alloc(0);
  while (head.length < 4) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  const rest = async function* (): AsyncGenerator<Buffer> {
    if (head.length > 0) yield head;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  return { head, rest: rest() };
}

/** The media type is ignored: whole registries have layers with the wrong one. */
function compressionOf(head: Buffer): Compression {
  const hex = head.subarray(0, 4).toString('hex');
  const name = MAGIC.find(([, bytes]) => bytes.test(hex))?.[0];
  if (name === undefined) return 'none';
  if (name === 'gzip' || name === 'zstd') return name;
  throw new IntegrityError(
    'layer.compression-unknown',
    `layer is packed with ${name}, but the image-spec knows only none, gzip and zstd`,
    { expected: 'none, gzip or zstd', found: name },
  );
}

/** Throws the original cause of a stream's error. */
type Explain = (cause: unknown) => Promise<never>;

/** Explains errors of the stream only; an error of its reader is thrown unchanged. */
async function* explained<Item>(
  stream: AsyncIterable<Item>,
  explain: Explain,
): AsyncGenerator<Item> {
  try {
    yield* stream;
  } catch (cause) {
    await explain(cause);
  }
}

function malformed(layer: Layer, cause: unknown): unknown {
  if (cause instanceof SealiftError) return cause;
  return explainDecodeError('layer', `layer ${layer.descriptor.digest}`, cause);
}

/** PATH_MAX of Linux, bytes: no runtime could unpack a longer name. */
const MAX_PATH_SIZE = 4096;

/** Far above any real image: the time to look up a path grows with its depth. */
const MAX_DEPTH = 255;

/** A path from the root of the image: `/a`, `./a` and `a/` are all `a`, the root itself is ''. */
export function normaliseName(name: string): string {
  refuseLongPath(name, 'an entry name');
  const components = name.split('/').filter((component) => !['', '.'].includes(component));
  if (components.length > MAX_DEPTH) throw tooDeep(name, components.length);
  if (!components.includes('..')) return components.join('/');
  throw new IntegrityError(
    'layer.path-escape',
    `layer entry "${printable(name)}" leads out of its directory`,
    { hint: 'do not use this image: no honest tool packs such a name' },
  );
}

/** @param what `an entry name` */
export function refuseLongPath(path: string, what: string): void {
  const size = Buffer.byteLength(path);
  if (size <= MAX_PATH_SIZE && !path.includes('\0')) return;
  throw new IntegrityError(
    'layer.path-malformed',
    `layer has ${what} of ${size} bytes, "${printable(path)}", that no file system can hold`,
    { expected: `at most ${MAX_PATH_SIZE} bytes, none of them 0`, found: `${size} bytes` },
  );
}

export function splitPath(path: string): { parent: string; name: string } {
  const slash = path.lastIndexOf('/');
  return { parent: slash === -1 ? '' : path.slice(0, slash), name: path.slice(slash + 1) };
}

export const joinLayerPath = (parent: string, name: string): string =>
  parent === '' ? name : `${parent}/${name}`;

const printable = (name: string): string => JSON.stringify(name.slice(0, 200)).slice(1, -1);

const tooDeep = (name: string, depth: number): IntegrityError =>
  new IntegrityError(
    'layer.path-malformed',
    `layer entry "${printable(name)}" is ${depth} directories deep, but at most ${MAX_DEPTH} are read`,
    { expected: `at most ${MAX_DEPTH} components`, found: `${depth} components` },
  );

const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;

/**
 * A layer as plain tar in the order of the names: owned by root, without a time, so that its bytes
 * depend on nothing but the arguments.
 *
 * @param directories modes by path, without a slash at the end
 * @param files contents by path, in parts
 */
export async function packFiles(
  directories: ReadonlyMap<string, number>,
  files: ReadonlyMap<string, readonly Buffer[]>,
): Promise<Buffer> {
  const tar = pack();
  const names = [...directories.keys(), ...files.keys()].sort();
  const chunks: Buffer[] = [];
  const reading = (async () => {
    for await (const chunk of tar) chunks.push(chunk as Buffer);
  })();
  for (const name of names) {
    const content = files.get(name);
    const mode = content === undefined ? (directories.get(name) ?? DIRECTORY_MODE) : FILE_MODE;
    await addEntry(tar, { name, mode, content });
  }
  tar.finalize();
  await reading;
  return Buffer.concat(chunks);
}

type NewEntry = {
  readonly name: string;
  readonly mode: number;
  /** Content of a file; undefined for a directory. */
  readonly content: readonly Buffer[] | undefined;
};

function addEntry(tar: Pack, { name, mode, content }: NewEntry): Promise<void> {
  const header = { name, mode, uid: 0, gid: 0, mtime: new Date(0) };
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null): void => {
      if (error) reject(error);
      else resolve();
    };
    if (content === undefined) tar.entry({ ...header, name: `${name}/`, type: 'directory' }, done);
    else {
      const size = content.reduce((sum, part) => sum + part.length, 0);
      const entry = tar.entry({ ...header, type: 'file', size }, done);
      for (const part of content) entry.write(part); // all are in memory, and no copies are made
      entry.end(null);
    }
  });
}
