import { resolve } from 'node:path';
import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { openToRead } from '../../base/disk/open-file.ts';
import { IntegrityError } from '../../base/errors.ts';
import {
  openRandomAccess,
  requireInside,
  type ByteRange,
  type RandomAccess,
} from '../../base/random-access.ts';
import { createCachedAccess } from '../../base/ranges.ts';
import type { CachedPart, PartCache } from '../../base/store/part-cache.ts';
import { planParts, type Part } from '../../outputs/artifact/parts.ts';
import {
  isElsewhere,
  openElsewhere,
  type OpenedElsewhere,
  type SourceHost,
} from '../../outputs/read/open.ts';
import { identifyIso } from '../areas.ts';
import { readIndex, type MediaIndex } from '../media-index.ts';
import { useMedium } from '../open.ts';
import { keepOpen } from '../repair/target.ts';
import { createFill } from './file-fill.ts';
import { CHUNK, fillChunks, fillParts, type VirtualBase } from './virtual.ts';

export type BaseOptions = {
  readonly host: SourceHost;
  /** Cache for bytes fetched from elsewhere. */
  readonly cache: PartCache;
};

/**
 * Opens a file, or an http(s)://, s3:// or oci:// address, which is read through the cache. Blobs of our ISOs
 * are cached by digest: those shared with another release are fetched once. A file may only be replaced by
 * renaming another to its name. The caller must close it.
 *
 * @throws the errors of `openSource`; IntegrityError if its index is damaged
 */
export async function openIsoBase(text: string, options: BaseOptions): Promise<VirtualBase> {
  const { host, cache } = options;
  if (!isElsewhere(text)) return openFile(resolve(host.cwd, text));
  const opened = await openElsewhere(text, host);
  try {
    return await openThroughCache(opened, cache);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function openFile(path: string): Promise<VirtualBase> {
  const named = await openRandomAccess(path); // reports what is wrong with the name
  await named.close();
  const file = await openToRead(path);
  try {
    const stats = await file.stat();
    const size = stats.isFile() ? stats.size : named.size;
    const fill = createFill(file.fd);
    // Identifies the open file, because another file may have its name by now.
    const own = await identify({
      path,
      size,
      async read(offset, size, buffer = Buffer.allocUnsafe(size)) {
        const bytes = buffer.subarray(0, size);
        await fill(bytes, offset);
        return bytes;
      },
      close: () => Promise.resolve(),
    });
    const digest = own ?? digestOf(`${size} ${stats.mtimeMs}`);
    const { ino, mtimeMs } = stats;
    return {
      name: path,
      size,
      digest,
      fill,
      ...(stats.isFile() && { file: { path, ino, size, mtimeMs } }),
      isAtHand: true,
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

const identify = (access: RandomAccess): Promise<Digest | undefined> =>
  useMedium(access, async (iso) => {
    const index = await readIndex(iso);
    return index && identifyIso(index, iso.readBytes);
  });

async function openThroughCache(
  { source, readRange, close }: OpenedElsewhere,
  cache: PartCache,
): Promise<VirtualBase> {
  const { name, size, version } = source;
  const reading = createCachedAccess(source, readRange, () => Promise.resolve());
  const index = await readIndexOf(reading);
  const own = index && (await identifyIso(index, reading.read));
  const digest = own ?? digestOf(`${name} ${size} ${version ?? ''}`);
  const parts = listParts(index, { size, digest });
  let failure: { readonly error: unknown } | undefined;
  const readAll = async (range: ByteRange, bytes: Buffer): Promise<void> => {
    try {
      await readRange(range, (piece, at) => {
        bytes.set(piece, at);
      });
      failure = undefined;
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  const chunkOf = (part: KeyedPart, offset: number): CachedPart => {
    const size = Math.min(CHUNK, part.size - offset);
    const before = failure;
    return {
      name: `${part.key}-${offset / CHUNK}`,
      size,
      async fetch(bytes) {
        // The server failed for another reader while this one waited for its turn; it does not wait again.
        if (failure && failure !== before) throw failure.error;
        await readAll({ offset: part.offset + offset, size }, bytes);
        if (size === part.size) requireDigest(name, part, bytes);
      },
    };
  };
  return {
    name,
    size,
    digest,
    async fill(bytes, offset, signal) {
      requireInside({ offset, size: bytes.length }, size);
      await fillParts(parts, { bytes, offset }, ({ part, target, at }) =>
        fillChunks({ size: part.size, target, at }, async (chunk, wanted) => {
          const next = chunk.offset + CHUNK;
          // A sequential reader will want the next chunk; half of the random readers do not reach this point.
          if (wanted.at >= CHUNK / 2 && next < part.size) cache.expect(chunkOf(part, next));
          await cache.fill(chunkOf(part, chunk.offset), wanted, signal);
        }),
      );
    },
    close,
  };
}

/** The ISO stays open; undefined if sealift did not make it. */
const readIndexOf = (access: RandomAccess): Promise<MediaIndex | undefined> =>
  useMedium(keepOpen(access), readIndex);

type KeyedPart = Part & {
  /** Equal for equal bytes. */
  readonly key: string;
};

/** Lists the parts: blobs and large files by digest, small files by their place in this ISO. */
function listParts(
  index: MediaIndex | undefined,
  { size, digest }: Pick<VirtualBase, 'size' | 'digest'>,
): readonly KeyedPart[] {
  const own = hexOf(digest);
  if (!index) return [{ offset: 0, size, key: own }];
  const extents = index.extents.toSorted((a, b) => a.offset - b.offset);
  return planParts(extents).map(({ offset, size, digest }) => ({
    offset,
    size,
    ...(digest === undefined ? { key: `${own}-${offset}` } : { digest, key: hexOf(digest) }),
  }));
}

/** Checks a part that fits in one chunk; the reader of a whole larger part checks its digest. */
function requireDigest(name: string, { digest, offset }: KeyedPart, bytes: Uint8Array): void {
  if (digest === undefined) return;
  const found = digestOf(bytes);
  if (found === digest) return;
  throw new IntegrityError(
    'source.wrong-bytes',
    `the bytes of ${name} at ${offset} do not match its index`,
    {
      expected: digest,
      found,
      hint: 'run "sealift verify" on it, and upload it again',
    },
  );
}
