import { digestOf } from '../base/digest.ts';
import { sumSizes } from '../base/lists.ts';
import { openRandomAccess } from '../base/random-access.ts';
import type { Extent, Layout } from '../iso/index.ts';
import type { IndexExtent } from './media-index.ts';
import { useMedium } from './open.ts';
import { compareTree, ELSEWHERE, findGaps, type VerifyOptions } from './verify-contents.ts';
import { verifyExtents, type DamagedExtent } from './verify-extents.ts';

/** `structures` are System Area, descriptors and partition tables; `rendered` are files. */
export type IsoPart = 'base' | 'blobs' | 'structures' | 'directories' | 'rendered' | 'padding';

/** Bytes of an ISO that differ from its layout. */
export type LayoutDifference = {
  readonly part: IsoPart;
  /** Bytes. */
  readonly offset: number;
  readonly size: number;
  /** Files that contain these bytes. */
  readonly paths: readonly string[];
};

export type LayoutComparison = {
  /** Bytes in the file, and in the layout. */
  readonly size: { readonly found: number; readonly expected: number };
  /** By offset. */
  readonly differences: readonly LayoutDifference[];
  /** Files of the base and the registry at another place, and files that only one side has. */
  readonly files: readonly LayoutDifference[];
};

/**
 * Writes nothing.
 *
 * @throws the signal's reason; errors of the file system
 */
export async function compareLayout(
  path: string,
  layout: Layout,
  { signal, onProgress }: VerifyOptions,
): Promise<LayoutComparison> {
  const parts = new Map<IndexExtent, IsoPart>();
  for (const extent of layout.extents) {
    const digested = withDigest(extent);
    if (digested) parts.set(digested, partOf(extent, layout));
  }
  const end = { offset: layout.size, size: 0, paths: [] };
  for (const gap of findGaps([...parts.keys(), end])) parts.set(gap, partOfGap(gap, layout));
  const total = sumSizes([...parts.keys()]);
  const { damaged, found } = await verifyFile(path, [...parts.keys()], {
    signal,
    onProgress: (done) => {
      onProgress(done, total);
    },
  });
  const differences = damaged.map(({ extent }) => {
    const { offset, size, paths } = extent;
    return { part: parts.get(extent) ?? 'padding', offset, size, paths };
  });
  const areSame = differences.every(({ part }) => part !== 'directories');
  return {
    size: { found, expected: layout.size },
    differences,
    files: areSame ? [] : await compareFiles(path, parts),
  };
}

async function verifyFile(
  path: string,
  extents: readonly IndexExtent[],
  options: Parameters<typeof verifyExtents>[2],
): Promise<{ readonly damaged: readonly DamagedExtent[]; readonly found: number }> {
  const file = await openRandomAccess(path);
  try {
    return { damaged: await verifyExtents(file, extents, options), found: file.size };
  } finally {
    await file.close();
  }
}

/** Leaves out rendered files that moved: their bytes are already differences. */
function compareFiles(
  path: string,
  parts: ReadonlyMap<IndexExtent, IsoPart>,
): Promise<LayoutDifference[]> {
  const files: LayoutDifference[] = [];
  const rendered = new Set<string>();
  for (const [{ paths }, part] of parts) {
    if (part === 'rendered') for (const path of paths) rendered.add(path);
  }
  return useMedium(path, async (iso) => {
    await compareTree(iso, [...parts.keys()], ({ problem, path = '', offset = 0, size = 0 }) => {
      if (rendered.has(path) && problem === ELSEWHERE) return;
      files.push({ part: 'directories', offset, size, paths: [path] });
    });
    return files;
  });
}

function withDigest({ offset, size, digest, source, paths }: Extent): IndexExtent | undefined {
  if (source.kind === 'zero') return undefined;
  const own = source.kind === 'bytes' ? digestOf(source.bytes) : digest;
  if (own === undefined) throw new Error(`extent at byte ${offset} has no digest`);
  return { offset, size, digest: own, paths };
}

/** The part that a gap belongs to: between rendered files, a longer file would fill it. */
const partOfGap = ({ offset }: IndexExtent, { areas }: Layout): IsoPart =>
  areas && offset >= areas.structures && offset < areas.smallBlobs ? 'rendered' : 'padding';

function partOf({ source, offset, paths }: Extent, { areas }: Layout): IsoPart {
  if (source.kind === 'base') return 'base';
  if (source.kind === 'blob') return 'blobs';
  const isStructure = areas && offset >= areas.structures && offset < areas.files;
  if (isStructure === true) return 'directories';
  return paths.length === 0 ? 'structures' : 'rendered';
}
