import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile } from '../../base/disk/open-file.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { LayerReadOptions, Place } from './read.ts';
import type { LayerEntry, Layer } from './stream.ts';

/* Owns the files of layers that are unpacked, and wait for their places in a tree. */

export type ExtractTreeOptions = LayerReadOptions & {
  /** Bytes that all files may have together, read or written; default 4 GiB. */
  readonly limit?: number;
  /** True if a layer may have or hide anything at or below the directory; default: each may. */
  readonly mayTouch?: (layer: Layer) => boolean;
};

const DEFAULT_LIMIT = 4 * 1024 ** 3;

/** Each file is synced to the disk; the catalogs of whole products have a few thousand. */
const MAX_FILES = 100_000;

/** NAME_MAX of Linux, bytes. */
const MAX_NAME_SIZE = 255;

const WRITE_SIZE = 1 << 20;
type Staged = { readonly path: string; readonly size: number };

/** Staged files by layer and path, under names of our own: two layers may have the same name. */
export type StagedFiles = {
  readonly add: (place: Place, entry: LayerEntry) => Promise<void>;
  readonly get: (place: Place) => Staged | undefined;
};

export function createStage(directory: string, options: ExtractTreeOptions): StagedFiles {
  const staged = new Map<string, Staged>();
  const keyOf = ({ depth, path }: Place): string => `${depth}/${path}`;
  let total = 0;
  let count = 0;
  return {
    async add(place, entry) {
      const { size } = entry.header;
      total += size;
      refuseLargeTree(total, place.path, options);
      if (count >= MAX_FILES) throw tooMany();
      const key = keyOf(place);
      const earlier = staged.get(key);
      if (earlier) await rm(earlier.path);
      const path = join(directory, String(count++));
      await writeBody(entry, path);
      staged.set(key, { path, size });
      options.onProgress?.(total);
    },
    get: (place) => staged.get(keyOf(place)),
  };
}

async function writeBody(entry: LayerEntry, path: string): Promise<void> {
  const file = await createFile(path, 0o644);
  try {
    let chunks: Buffer[] = [];
    let gathered = 0;
    for await (const chunk of entry.body) {
      chunks.push(chunk);
      gathered += chunk.length;
      if (gathered < WRITE_SIZE) continue;
      await file.appendFile(Buffer.concat(chunks));
      chunks = [];
      gathered = 0;
    }
    await file.appendFile(Buffer.concat(chunks));
    await file.sync();
  } finally {
    await file.close();
  }
}

export function refuseLargeTree(
  total: number,
  path: string,
  { limit = DEFAULT_LIMIT }: ExtractTreeOptions,
) {
  if (total <= limit) return;
  throw new IntegrityError(
    'layer.tree-too-large',
    `image files up to "${path}" take ${total} bytes, but only ${limit} may be unpacked`,
    { expected: `at most ${limit} bytes`, found: `${total} bytes` },
  );
}

const tooMany = (): IntegrityError =>
  new IntegrityError('layer.tree-too-large', `image has more than ${MAX_FILES} files to unpack`, {
    expected: `at most ${MAX_FILES} files`,
    found: 'more',
  });

export function refuseLongName(path: string): void {
  const name = path.split('/').find((one) => Buffer.byteLength(one) > MAX_NAME_SIZE);
  if (name === undefined) return;
  const size = Buffer.byteLength(name);
  throw new IntegrityError(
    'layer.name-too-long',
    `image file "${path.slice(0, 200)}" has a name of ${size} bytes, but only ${MAX_NAME_SIZE} are possible`,
    { expected: `at most ${MAX_NAME_SIZE} bytes`, found: `${size} bytes` },
  );
}
