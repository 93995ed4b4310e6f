import { Readable } from 'node:stream';
import { IntegrityError } from '../base/errors.ts';
import type { ByteRange, RandomAccess } from '../base/random-access.ts';
import type { BlobSource, Content } from '../base/store/blob-source.ts';
import { type IsoFile, type IsoImage, openIso } from '../iso/index.ts';
import { pathTo } from '../registry/index.ts';
import { readIndex } from './media-index.ts';
import { findRegistryRoot } from './tree.ts';

/** Finds the runs of a blob in an image, in order. */
type FindBlob = (blob: Content) => Promise<readonly ByteRange[] | undefined>;

/**
 * Opens our own ISO by its index, others by the files of their registry, which an ISO of openshift/appliance
 * has in a data image split into parts. Undefined without a registry. Readers verify each blob.
 */
export async function openImageSeed(image: RandomAccess): Promise<BlobSource | undefined> {
  const iso = await openIso(image);
  const index = await readIndex(iso);
  if (index) {
    const places = new Map(index.extents.map(({ digest, ...place }) => [digest, place]));
    return sourceOf(image, ({ digest, size }) => {
      const place = places.get(digest);
      return Promise.resolve(place?.size === size ? [place] : undefined);
    });
  }
  const root = await findRegistryRoot(iso);
  if (root !== undefined) return sourceOf(image, findInTree(iso, root));
  const data = await openDataImage(iso, image);
  return data && sourceOf(data, findInTree(await openIso(data), ''));
}

const findInTree =
  (iso: IsoImage, root: string): FindBlob =>
  async ({ digest, size }) => {
    const file = await iso.find(`${root}/${pathTo.blob(digest)}`.replace('//', '/'));
    return file?.kind === 'file' && file.size === size ? file.extents : undefined;
  };

/** Prefix of the parts, followed by two letters in the order of split(1). */
const PARTS = '/registry/data.iso';

/** Opens an ISO whose parts are files of another ISO, without joining them. */
async function openDataImage(
  iso: IsoImage,
  image: RandomAccess,
): Promise<RandomAccess | undefined> {
  const parts: IsoFile[] = [];
  for (let part = await findPart(iso, 0); part; part = await findPart(iso, parts.length)) {
    parts.push(part);
  }
  const runs = parts.flatMap(({ extents }) => extents);
  const size = runs.reduce((sum, run) => sum + run.size, 0);
  if (runs.length === 0) return undefined;
  return {
    path: image.path,
    size,
    close: image.close,
    async read(offset, length, buffer = Buffer.allocUnsafe(length)) {
      if (offset + length > size) {
        throw new IntegrityError(
          'iso.out-of-bounds',
          `bytes ${offset} to ${offset + length} are outside the data image of ${size} bytes`,
        );
      }
      let at = 0;
      for (const range of cutOut(runs, { offset, size: length })) {
        await image.read(range.offset, range.size, buffer.subarray(at, at + range.size));
        at += range.size;
      }
      return buffer.subarray(0, length);
    },
  };
}

async function findPart(iso: IsoImage, index: number): Promise<IsoFile | undefined> {
  const letters = String.fromCharCode(97 + Math.floor(index / 26), 97 + (index % 26));
  const node = await iso.find(`${PARTS}${letters}`);
  return node?.kind === 'file' ? node : undefined;
}

function cutOut(runs: readonly ByteRange[], { offset, size }: ByteRange): ByteRange[] {
  const ranges: ByteRange[] = [];
  let before = 0;
  for (const run of runs) {
    const start = Math.max(offset - before, 0);
    const end = Math.min(offset + size - before, run.size);
    if (start < end) ranges.push({ offset: run.offset + start, size: end - start });
    before += run.size;
  }
  return ranges;
}

const PIECE = 1 << 20;

const sourceOf = (image: RandomAccess, find: FindBlob): BlobSource => ({
  name: image.path,
  local: false,
  async open(blob, { offset }) {
    const runs = await find(blob);
    if (!runs) return undefined;
    const ranges = cutOut(runs, { offset, size: blob.size - offset });
    return { offset, body: Readable.from(readPieces(image, ranges), { objectMode: false }) };
  },
});

async function* readPieces(image: RandomAccess, ranges: readonly ByteRange[]) {
  for (const { offset, size } of ranges) {
    for (let at = 0; at < size; at += PIECE) {
      yield await image.read(offset + at, Math.min(PIECE, size - at));
    }
  }
}
