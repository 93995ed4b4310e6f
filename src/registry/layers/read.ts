import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { setMode } from '../../base/disk/mode.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { publishNew } from '../../base/disk/publish.ts';
import { IntegrityError } from '../../base/errors.ts';
import { addEntry, createChangeset, hides, type Changeset, createFileFinder } from './changeset.ts';
import { type LayerEntry, normaliseName, openLayer, type Layer } from './stream.ts';

export type { Layer } from './stream.ts';

/** An entry of one layer, `depth` layers below the top. */
export type LayerPlace = { readonly depth: number; readonly path: string };

export type LayerReadOptions = {
  readonly signal: AbortSignal;
  /** Called now and then with the bytes of the file written so far; a file may start again at 0. */
  readonly onProgress?: (written: number) => void;
};

export type LayerFile = { readonly size: number; readonly digest: Digest };

/** Default memory limit of `readFiles`, bytes. */
const DEFAULT_LIMIT = 256 * 1024 * 1024;

const WRITE_SIZE = 1 << 20;

/** Called for every entry of a layer that is a regular file, before its body is read. */
type OnFile = (path: string, entry: LayerEntry) => Promise<void>;

/**
 * Writes one file of an image to `output`, of any size in bounded memory. Layers are given bottom to
 * top and read from the top, no further down than needed; whiteouts, opaque directories, hard links
 * and symbolic links count as they do in a container (OCI image-spec layer.md). Usually a layer is
 * unpacked once; a file that is reached through a link costs its layer a second time.
 *
 * `output` appears by rename, with mode 0644, when all of it is on the disk.
 *
 * @throws IntegrityError `layer.file-missing`, `layer.too-many`, and what `openLayer`, `addEntry` and
 * `createFileFinder` throw.
 */
// eslint-disable-next-line max-params -- source, path, target and options are each clear at the call
export async function extractFile(
  layers: readonly Layer[],
  path: string,
  output: string,
  options: LayerReadOptions,
): Promise<LayerFile> {
  refuseManyLayers(layers);
  const wanted = normaliseName(path);
  await makeDirectory(dirname(output));
  const extracted = await publishNew(output, {}, (file) =>
    copyFile(layers, wanted, { ...options, file }),
  );
  await syncDirectory(dirname(output));
  return extracted;
}

/**
 * The regular files of the flattened image whose path (`release-manifests/image-references`) is wanted,
 * whole. A link whose own path is wanted has the bytes of its target; links to nothing are left out.
 *
 * @throws IntegrityError `layer.files-too-large` above `limit` bytes in all (default 256 MiB), and
 * as `extractFile`.
 */
export async function readFiles(
  layers: readonly Layer[],
  wanted: (path: string) => boolean,
  options: { readonly signal: AbortSignal; readonly limit?: number },
): Promise<Map<string, Uint8Array>> {
  refuseManyLayers(layers);
  const collector = createCollector(options.limit ?? DEFAULT_LIMIT);
  const changesets: Changeset[] = [];
  for (const layer of layers.toReversed()) {
    const depth = changesets.length;
    const isHidden = (path: string): boolean =>
      changesets.some((above) => above.nodes.has(path) || hides(above, path));
    const changeset = await scanLayer(layer, options.signal, async (path, entry) => {
      if (wanted(path) && !isHidden(path)) await collector.take({ depth, path }, entry);
      else entry.skip();
    });
    changesets.push(changeset);
  }
  const files = await findWanted(changesets, wanted, options.signal);
  const linked = [...files.values()].filter((place) => collector.get(place) === undefined);
  for (const depth of new Set(linked.map((place) => place.depth))) {
    const paths = new Set(linked.filter((place) => place.depth === depth).map(({ path }) => path));
    await scanLayer(layerAt(layers, depth), options.signal, async (path, entry) => {
      if (paths.has(path)) await collector.take({ depth, path }, entry);
      else entry.skip();
    });
  }
  return new Map([...files].map(([path, place]) => [path, collector.get(place) ?? missing(path)]));
}

/**
 * Lists which of these paths (`usr/bin/openssl`) are regular files of the flattened image, or links to one.
 * Layers are read from the top, and those below only for paths that are not decided above.
 *
 * Throws the errors of `extractFile`, except for a missing file.
 */
export async function listPresent(
  layers: readonly Layer[],
  paths: readonly string[],
  { signal }: { readonly signal: AbortSignal },
): Promise<ReadonlySet<string>> {
  refuseManyLayers(layers);
  const scanned: Changeset[] = [];
  const scan = async (depth: number): Promise<Changeset | undefined> => {
    while (scanned.length <= depth && scanned.length < layers.length) {
      scanned.push(await scanLayer(layerAt(layers, scanned.length), signal, skipBody));
    }
    return scanned[depth];
  };
  const present = new Set<string>();
  const findFile = createFileFinder(scan, signal);
  for (const path of paths) {
    if ((await findFile(path)) !== undefined) present.add(path);
  }
  return present;
}

const skipBody: OnFile = (_path, entry) => {
  entry.skip();
  return Promise.resolve();
};

/** Limit of overlay file systems (`maxDepth` of containers/storage): no node can run an image of more. */
const MAX_LAYERS = 500;

export function refuseManyLayers(layers: readonly Layer[]): void {
  if (layers.length <= MAX_LAYERS) return;
  throw new IntegrityError(
    'layer.too-many',
    `image has ${layers.length} layers, but no node can mount more than ${MAX_LAYERS}`,
    { expected: `at most ${MAX_LAYERS}`, found: String(layers.length) },
  );
}

/** Reads all of a layer: what it changes, with every regular file's body given to `onFile`. */
async function scanLayer(layer: Layer, signal: AbortSignal, onFile: OnFile): Promise<Changeset> {
  const changeset = createChangeset();
  for await (const entry of openLayer(layer, signal)) {
    const path = addEntry(changeset, entry.header);
    if (path !== undefined && changeset.nodes.get(path)?.kind === 'file') await onFile(path, entry);
    else entry.skip();
  }
  return changeset;
}

type CopyOptions = LayerReadOptions & { readonly file: FileHandle };

async function copyFile(
  layers: readonly Layer[],
  wanted: string,
  options: CopyOptions,
): Promise<LayerFile> {
  let copied: (LayerPlace & { result: LayerFile }) | undefined;
  const scan = (depth: number, target: string): Promise<Changeset> =>
    scanLayer(layerAt(layers, depth), options.signal, async (path, entry) => {
      if (path !== target) entry.skip();
      else copied = { depth, path, result: await copyBody(entry, options) };
    });
  const scanned: Changeset[] = [];
  const changesets = async (depth: number): Promise<Changeset | undefined> => {
    while (scanned.length <= depth && scanned.length < layers.length) {
      scanned.push(await scan(scanned.length, wanted));
    }
    return scanned[depth];
  };
  const found = await createFileFinder(changesets, options.signal)(wanted);
  if (found === undefined) return missing(wanted);
  const isCopied = (): boolean => copied?.depth === found.depth && copied.path === found.path;
  if (!isCopied()) await scan(found.depth, found.path);
  if (copied === undefined || !isCopied()) return missing(wanted);
  await options.file.sync();
  await setMode(options.file, 0o644);
  return copied.result;
}

/** Overwrites the file with a body, hashing as it passes. */
async function copyBody(entry: LayerEntry, { file, onProgress }: CopyOptions): Promise<LayerFile> {
  const hash = createHash('sha256');
  let size = 0;
  let chunks: Buffer[] = [];
  let gathered = 0;
  const flush = async (): Promise<void> => {
    await writeFully(file, Buffer.concat(chunks), size);
    size += gathered;
    onProgress?.(size);
    chunks = [];
    gathered = 0;
  };
  await file.truncate(0);
  for await (const chunk of entry.body) {
    hash.update(chunk);
    chunks.push(chunk);
    gathered += chunk.length;
    if (gathered >= WRITE_SIZE) await flush();
  }
  if (gathered > 0) await flush();
  return { size, digest: `sha256:${hash.digest('hex')}` };
}

async function writeFully(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Keeps whole files in memory, up to a limit for all of them together. */
export type Collector = {
  /** Reads a body and keeps it; a later one of the same place replaces it. */
  take: (place: LayerPlace, entry: LayerEntry) => Promise<void>;
  get: (place: LayerPlace) => Uint8Array | undefined;
};

function createCollector(limit: number): Collector {
  const files = new Map<string, Uint8Array>();
  const keyOf = ({ depth, path }: LayerPlace): string => `${depth}/${path}`;
  let total = 0;
  return {
    async take(place, entry) {
      const key = keyOf(place);
      total -= files.get(key)?.length ?? 0;
      total += entry.header.size;
      if (total > limit) throw tooLarge(place.path, limit, total);
      const chunks: Buffer[] = [];
      for await (const chunk of entry.body) chunks.push(chunk);
      files.set(key, Buffer.concat(chunks));
    },
    get: (place) => files.get(keyOf(place)),
  };
}

const tooLarge = (path: string, limit: number, total: number): IntegrityError =>
  new IntegrityError(
    'layer.files-too-large',
    `image files up to "${path}" take ${total} bytes, but only ${limit} may be read at once`,
    { expected: `at most ${limit} bytes`, found: `${total} bytes` },
  );

/** Finds the file of the flattened image that each wanted path means. */
async function findWanted(
  changesets: readonly Changeset[],
  wanted: (path: string) => boolean,
  signal: AbortSignal,
): Promise<Map<string, LayerPlace>> {
  const files = new Map<string, LayerPlace>();
  const findFile = createFileFinder((depth) => Promise.resolve(changesets[depth]), signal);
  for (const path of new Set(changesets.flatMap(({ nodes }) => [...nodes.keys()]))) {
    if (!wanted(path)) continue;
    const found = await findFile(path);
    if (found !== undefined) files.set(path, found);
  }
  return files;
}

function layerAt(layers: readonly Layer[], depth: number): Layer {
  const layer = layers.at(-1 - depth);
  if (layer === undefined) throw new RangeError(`image has no layer ${depth} below its top`);
  return layer;
}

function missing(path: string): never {
  throw new IntegrityError('layer.file-missing', `image has no file "${path}"`, {
    expected: path,
    found: 'nothing',
  });
}
