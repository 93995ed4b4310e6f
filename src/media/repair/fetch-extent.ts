import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../base/digest.ts';
import { createResumableFile, type ResumableFile } from '../../base/download/fill-file.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { fillFile } from '../../base/download/fill-file.ts';
import { SealiftError } from '../../base/errors.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { describeBlob } from '../../base/store/blob-source.ts';
import type { Reference } from '../../registry/reference.ts';
import { readImageContents } from '../image-contents.ts';
import type { IndexExtent, IndexImage, MediaIndex } from '../index/media-index.ts';
import {
  copyFromFile,
  readPiece,
  writeAt,
  type OpenTarget,
  type Repair,
  type Run,
} from './copy-verified.ts';

export type RemoteOptions = {
  readonly client: Pick<RegistryClient, 'fetchManifest' | 'sourcesOf'>;
  /** Where an image may be: where it came from, or where somebody says. */
  readonly referencesOf: (image: IndexImage) => readonly Reference[];
  /** Where a blob stays until it is verified. */
  readonly workDir: string;
  /** Told why a source does not have an extent. */
  readonly warn: (message: string) => void;
  readonly index: MediaIndex;
  readonly signal: AbortSignal;
};

/** Manifests first: they say which image a blob is of. */
export const repairFromManifests =
  (target: OpenTarget, { index, client, referencesOf, signal, warn }: RemoteOptions): Repair =>
  async ({ extent: { digest, offset, size } }) => {
    if (digest === undefined) return undefined;
    const images = index.images.filter(({ manifests }) => manifests.includes(digest));
    for (const { registry, repository } of images.flatMap(referencesOf)) {
      const found = await unlessFailed(warn, () =>
        client.fetchManifest({ registry, repository, digest }, { signal }),
      );
      if (found?.bytes.length !== size || digestOf(found.bytes) !== digest) continue;
      await writeAt(target, found.bytes, offset);
      return { source: registry, read: size, written: size };
    }
    return undefined;
  };

/** Fetches blobs of the images whose manifests name them. */
export async function openBlobRepair(target: OpenTarget, options: RemoteOptions): Promise<Repair> {
  const sources = await listSources(target, options);
  const { signal, warn } = options;
  return async ({ extent, unreadable }) => {
    const { digest, offset, size } = extent;
    const list = [...(sources.get(extent) ?? [])];
    if (digest === undefined || list.length === 0) return undefined;
    const path = join(options.workDir, `repair-${hexOf(digest)}`);
    const run = { offset, size, digest };
    const isCut = unreadable !== undefined;
    const fetched = await unlessFailed(warn, () =>
      stage({ target, run, path, signal, sources: list, isCut }),
    );
    if (fetched === undefined) return undefined;
    const from = { path, position: 0 };
    const copied = await copyFromFile(target, run, { from, signal });
    await rm(path, { force: true });
    if (!copied) return undefined;
    return { source: list[0]?.name ?? '', read: fetched, written: copied.written };
  };
}

async function listSources(
  { file }: OpenTarget,
  { index, client, referencesOf }: RemoteOptions,
): Promise<ReadonlyMap<IndexExtent, ReadonlySet<BlobSource>>> {
  const sources = new Map<IndexExtent, Set<BlobSource>>();
  const known = new Map<string, readonly BlobSource[]>();
  const readBytes = async (offset: number, size: number): Promise<Buffer> => {
    const bytes = Buffer.alloc(size);
    await readPiece(file, bytes, offset); // a manifest that is lost names nothing
    return bytes;
  };
  for await (const { image, extents } of readImageContents({ readBytes }, index)) {
    for (const reference of referencesOf(image)) {
      const name = `${reference.registry}/${reference.repository}`;
      const found = known.get(name) ?? client.sourcesOf(reference);
      known.set(name, found);
      for (const extent of extents) {
        const all = sources.get(extent) ?? new Set();
        for (const source of found) all.add(source);
        sources.set(extent, all);
      }
    }
  }
  return sources;
}

type Staging = {
  readonly target: OpenTarget;
  readonly run: Run;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly sources: readonly BlobSource[];
  /** Whether bytes are lost, and those in front of them may be right. */
  readonly isCut: boolean;
};

/** Brings a blob into a file, verified; returns how many bytes were fetched for it. */
async function stage({ target, run, path, signal, sources, isCut }: Staging): Promise<number> {
  const { digest, size } = run;
  const file = await openOwnFile(path);
  try {
    const staged = createResumableFile(file);
    const earlier = (await file.stat()).size;
    const isNew = earlier === 0 && isCut;
    const prefix = isNew ? await copyFront(target, run, staged) : Math.min(earlier, size);
    let [fetched, before] = [0, prefix];
    await fillFile(staged, {
      sources,
      wanted: describeBlob({ digest, size, mediaType: 'application/octet-stream' }),
      prefix,
      cutsOff: true,
      signal,
      onProgress(bytes) {
        fetched += Math.max(0, bytes - before);
        before = bytes;
      },
    });
    await file.sync();
    return fetched;
  } finally {
    await file.close();
  }
}

const PIECE = 1 << 20;

/** What the ISO still has of a run that was cut off: only the rest is fetched, if that is right. */
async function copyFront(
  { file }: OpenTarget,
  { offset, size }: Run,
  staged: ResumableFile,
): Promise<number> {
  let at = 0;
  for (; at + PIECE <= size; at += PIECE) {
    const piece = Buffer.allocUnsafe(PIECE); // append takes it
    if (!(await readPiece(file, piece, offset + at))) break;
    await staged.append(piece);
  }
  await staged.flush();
  return at;
}

/** What a source does not give now, another one may. */
export async function unlessFailed<T>(
  warn: (message: string) => void,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    warn(error.message);
    return undefined;
  }
}
