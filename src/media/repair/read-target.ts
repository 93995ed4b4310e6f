import { digestOf, type Digest } from '../../base/digest.ts';
import { DifferenceError, SealiftError } from '../../base/errors.ts';
import type { Extent } from '../../iso/extent.ts';
import { fillGaps } from '../../iso/extent.ts';
import { digestLayout } from '../../pour/spans.ts';
import { createLocalSource, type BlobSource } from '../../base/store/blob-source.ts';
import { namesBeside, readReport } from '../../outputs/file.ts';
import {
  decodeMediaIndex,
  readIndex,
  type IndexExtent,
  type MediaIndex,
} from '../index/media-index.ts';
import { INDEX_PATH } from '../index/media-paths.ts';
import { describeDamage, openDamaged, useImage, useMedium, type Medium } from '../open-medium.ts';

/** What an ISO should be, by its own index or by that of an ISO of the same layout. */
export type Target = {
  readonly index: MediaIndex;
  /** Those of the index, and the index with its digest where the other ISO has it. */
  readonly extents: readonly IndexExtent[];
  /** Has the index, where the ISO's own is lost. */
  readonly indexSource?: BlobSource;
};

type OtherIso = Target & {
  readonly own: IndexExtent;
  readonly layout: Digest;
};

/**
 * Reads what the ISO should be. Where its own index cannot be believed, an ISO of the sources says it
 * that has the same layout, as the rest of the own index or the report beside the ISO tells.
 *
 * @throws DifferenceError `repair.no-index`
 */
export async function readTarget(path: string, sources: readonly Medium[]): Promise<Target> {
  const own = await unlessDamaged(() => readOwnIndex(path));
  if (own) return { index: own, extents: own.extents };
  const report = await readReport(namesBeside(path).report);
  for (const source of sources) {
    const other = await unlessDamaged(() => readOther(source));
    const target = other && (await identify(path, other, report?.layout));
    if (target) return target;
  }
  throw new DifferenceError('repair.no-index', `the index of ${path} is damaged`, {
    expected: 'a source of the same layout',
    found: `${sources.length} ISOs, and none is known to be of it`,
    hint: 'name an ISO of the same build with --from, and put the report of the build beside the damaged one',
  });
}

/** What the ISO should be, if the other one tells: by its own index, where only the way to it is lost, or as the other. */
async function identify(
  path: string,
  other: OtherIso,
  layout: unknown,
): Promise<Target | undefined> {
  const rest = await unlessDamaged(() => readRange(path, other.own));
  const found = rest && (await unlessDamaged(() => Promise.resolve(decodeMediaIndex(rest))));
  if (found && !found.damage && found.index.digest !== undefined) {
    return { index: found.index, extents: found.index.extents };
  }
  return layout === other.layout || nameDigest(rest) === other.index.digest ? other : undefined;
}

/** Undefined where there is none that can be believed to the last byte. */
const readOwnIndex = (path: string): Promise<MediaIndex | undefined> =>
  useImage(path, async (image) => {
    const index = await readIndex(await openDamaged(image));
    return index?.digest === undefined ? undefined : index;
  });

const readOther = (medium: Medium): Promise<OtherIso | undefined> =>
  useMedium(medium, async ({ find, readFile, readBytes, fileSize }) => {
    const index = await readIndex({ find, readFile });
    const own = index?.extents.find(({ paths }) => paths.includes(INDEX_PATH));
    if (!index?.digest || !own) return undefined;
    const digest = digestOf(await readBytes(own.offset, own.size));
    const extents = index.extents
      .map((extent) => (extent === own ? { ...extent, digest } : extent))
      .sort((a, b) => a.offset - b.offset);
    const stored: Extent[] = [];
    for (const { offset, size, paths, ...extent } of extents) {
      const digest = extent.digest ?? digestOf(await readBytes(offset, size));
      stored.push({ offset, size, paths, digest, source: { kind: 'blob' } });
    }
    const path = typeof medium === 'string' ? medium : medium.path;
    const place = { path, position: own.offset };
    const indexSource = createLocalSource(path, (blob) =>
      Promise.resolve(blob.digest === digest && typeof medium === 'string' ? place : undefined),
    );
    const layout = digestLayout({ size: fileSize, extents: fillGaps(stored, fileSize) });
    return { index, extents, own, layout, indexSource };
  });

const readRange = (path: string, { offset, size }: IndexExtent): Promise<Uint8Array> =>
  useImage(path, ({ read }) => read(offset, size));

/** What an index says of its own digest, however damaged the rest is. */
const nameDigest = (bytes: Uint8Array | undefined): string | undefined =>
  /\n {2}"digest": "(sha256:[0-9a-f]{64})",\n/.exec(
    Buffer.from(bytes ?? []).toString('latin1'),
  )?.[1];

async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (describeDamage(error) === undefined && !(error instanceof SealiftError)) throw error;
    return undefined;
  }
}
