import { digestOf, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { findFirst, sumSizes, withoutUndefined } from '../../base/lists.ts';
import { openRandomAccess, type ByteRange } from '../../base/random-access.ts';
import type { FilePosition } from '../../base/store/blob-source.ts';
import { bytesExtent, type Extent, fillGaps, type Layout } from '../../iso/index.ts';
import { requireSpace } from '../../openshift/mirror/costs.ts';
import { publishIso } from '../../outputs/file.ts';
import { pourIso, type PourOptions, publishPour, surveyPartial } from '../../pour/index.ts';
import {
  type Patch,
  LARGEST_PATCHED,
  makePatch,
  mostPatched,
  digestOfBody,
  formatDelta,
  type DeltaExtent,
} from './file.ts';
import { readApplied } from './applied.ts';
import { listCarried } from './carried.ts';
import { type DeltaIso, type DeltaIsoExtent, readDeltaIso, readMode } from './open.ts';

/* Making a delta from two ISOs, and making the new ISO from the old one and the delta. */

/** Result of making or applying a delta. Sizes are bytes. */
export type DeltaReport = {
  readonly digest: Digest;
  readonly size: number;
  /** Bytes of the new ISO that the old one has. */
  readonly shared: number;
  /** Bytes of the new ISO that the delta carries. */
  readonly carried: number;
  /** Parts of the areas that the new ISO has from a customised old one; absent for a delta. */
  readonly values?: readonly string[];
};

type PourSettings = Pick<PourOptions, 'output' | 'signal' | 'onProgress' | 'warn'>;

const LANES = 4;

/**
 * Writes the bytes that the old ISO lacks, verified; continues an interrupted run. An extent with other
 * content in the old ISO, such as a directory, is written as a patch if that is smaller.
 *
 * @throws IntegrityError `delta.no-index`, `extent.wrong-digest` if the new ISO is damaged; the errors of
 * `pourIso`
 */
export async function makeDelta(
  { from, to }: { readonly from: string; readonly to: string },
  settings: PourSettings,
): Promise<DeltaReport> {
  const [old, now] = [await readDeltaIso(from), await readDeltaIso(to)];
  const known = new Set(old.extents.map(({ digest }) => digest));
  const carried = listCarried(now.extents, now.index, known);
  const patches = await makePatches({ from, to, old, carried });
  const mutable = listAreas(old, now);
  const body = listBody(carried, patches);
  const { size, index } = now;
  const head = formatDelta({
    from: old.identity,
    size,
    index,
    ...withoutUndefined({ mutable }),
    names: { from: old.name, to: now.name },
    patches,
    body: {
      digest: digestOfBody(body.map(({ digest }) => digest)),
      sizes: body.map(({ size }) => size),
    },
    bodySize: sumSizes(body),
  });
  const layout = layOutDelta(head, body);
  const places = new Map(
    carried.map(({ digest, offset }) => [digest, { path: to, position: offset }]),
  );
  const digest = await pour(layout, places, { ...settings, mode: await readMode(from, to) });
  await publishPour(settings.output);
  const bytes = sumSizes(carried);
  return { digest, size: layout.size, carried: bytes, shared: sumSizes(now.extents) - bytes };
}

/** Lists areas of the new ISO that the old one lacks, if any. */
function listAreas(old: DeltaIso, { extents }: DeltaIso): readonly DeltaExtent[] | undefined {
  const before = new Map(old.extents.map(({ offset, digest }) => [offset, digest]));
  const areas = extents.filter(({ isMutable }) => isMutable);
  if (areas.length === 0) return undefined;
  return areas.filter(({ offset, digest }) => before.get(offset) !== digest);
}

/**
 * Verifies every byte; continues an interrupted run. The values of a customised ISO are put into the new one.
 *
 * @throws IntegrityError `delta.malformed`, `delta.other-iso`, `delta.no-index`, `delta.damaged`,
 * `extent.wrong-digest`; DifferenceError `delta.values`; the errors of `pourIso`
 */
export async function applyDelta(
  { from, delta: path }: { readonly from: string; readonly delta: string },
  settings: PourSettings,
): Promise<DeltaReport> {
  const old = await readDeltaIso(from);
  const applied = await readApplied({ from, delta: path }, old);
  const { size, extents, carried, rendered, values } = applied;
  const places = new Map<Digest, FilePosition>();
  for (const { digest, offset } of old.extents)
    places.set(digest, { path: from, position: offset });
  for (const { digest, position } of carried) places.set(digest, { path, position });
  const poured = extents.map((extent): Extent => {
    const bytes = rendered.get(extent.digest);
    return { ...extent, ...STORED, ...(bytes && { source: { kind: 'bytes', bytes } }) };
  });
  const layout = { size, extents: fillGaps(poured, size) };
  const digest = await pour(layout, places, { ...settings, mode: await readMode(from, path) });
  await publishIso(settings.output, { digest });
  const bytes = sumSizes(carried);
  return { digest, size, carried: bytes, shared: sumSizes(extents) - bytes, values };
}

async function pour(
  layout: Layout,
  places: ReadonlyMap<Digest, FilePosition>,
  settings: PourSettings & Pick<PourOptions, 'mode'>,
): Promise<Digest> {
  const { output } = settings;
  const { allocated } = await surveyPartial(layout, output);
  await requireSpace({ output, allocated, isoSize: layout.size, cacheSize: 0 });
  const paths = new Set([...places.values()].map(({ path }) => path));
  const sources = new Map([...paths].map((name) => [name, { name, local: true }]));
  const { digest } = await pourIso({
    ...settings,
    layout,
    lanes: LANES,
    openExtent(extent, { offset, rank, answers }) {
      const place = extent.digest && places.get(extent.digest);
      const source = place && sources.get(place.path);
      if (!place || !source) throw lost(extent);
      if (rank([source]).length === 0) throw answers[0]?.error ?? lost(extent);
      const { path, position } = place;
      return Promise.resolve({ kind: 'file', path, position: position + offset, source });
    },
  });
  return digest;
}

/** An extent of a delta, from the start of its body. */
type BodyExtent = Extent & { readonly digest: Digest };

/** Lists the bytes that a delta carries in a row: extents of the new ISO as they are, or patches. */
function listBody(
  carried: readonly DeltaExtent[],
  patches: ReadonlyMap<number, MadePatch>,
): readonly BodyExtent[] {
  let end = 0;
  return carried.map(({ size, digest }, number) => {
    const patch = patches.get(number);
    const offset = end;
    end += (patch ?? { size }).size;
    return patch
      ? { ...bytesExtent(offset, patch.bytes), digest: digestOf(patch.bytes) }
      : { offset, size, digest, ...STORED };
  });
}

/** Lays out a delta like an ISO, except that its size need not be a multiple of the sector size. */
const layOutDelta = (head: Uint8Array, body: readonly BodyExtent[]): Layout => ({
  size: head.length + sumSizes(body),
  extents: [
    bytesExtent(0, head),
    ...body.map((extent) => ({ ...extent, offset: head.length + extent.offset })),
  ],
});

const STORED = { source: { kind: 'blob' }, paths: [] } as const;

const lost = ({ offset, digest }: Extent): IntegrityError =>
  new IntegrityError(
    'delta.malformed',
    `neither the old ISO nor the delta has the extent at byte ${offset}`,
    {
      expected: digest ?? 'a digest',
      found: 'nothing',
      hint: 'copy the delta again from where it was made',
    },
  );

export type MadePatch = Patch & { readonly bytes: Uint8Array };

/** Smaller extents are links and the like, and the row for a patch in the head costs as much. */
const SMALLEST_PATCHED = 256;

/**
 * By extent number. Files are matched by path, structures by offset. Layers have their digest in their path
 * and are never patched.
 */
export async function makePatches({
  from,
  to,
  old,
  carried,
  most = mostPatched,
}: {
  readonly from: string;
  readonly to: string;
  readonly old: DeltaIso;
  readonly carried: readonly DeltaIsoExtent[];
  /** Total size of the bytes that patches of so many bytes may make. */
  readonly most?: (packed: number) => number;
}): Promise<ReadonlyMap<number, MadePatch>> {
  const [oldFile, file] = [await openRandomAccess(from), await openRandomAccess(to)];
  const findEarlier = createLookup(old.extents);
  const patches = new Map<number, MadePatch>();
  let [made, packed] = [0, 0];
  try {
    for (const [number, extent] of carried.entries()) {
      const earlier = canPatch(extent) ? findEarlier(extent) : undefined;
      if (!earlier || !canPatch(earlier)) continue;
      const { offset, size, digest } = extent;
      const bytes = await file.read(offset, size);
      const found = digestOf(bytes);
      if (found !== digest) throw wrong(to, { offset, digest, found });
      const patch = makePatch(await oldFile.read(earlier.offset, earlier.size), bytes);
      const range = { offset: earlier.offset, size: earlier.size };
      if (!patch || made + size > most(packed + patch.length)) continue;
      patches.set(number, { old: range, size: patch.length, bytes: patch });
      made += size;
      packed += patch.length;
    }
    return patches;
  } finally {
    await oldFile.close();
    await file.close();
  }
}

const canPatch = ({ size }: ByteRange): boolean =>
  size >= SMALLEST_PATCHED && size <= LARGEST_PATCHED;

type Lookup = (extent: DeltaIsoExtent) => DeltaIsoExtent | undefined;

/** Finds the old version of an extent, because a structure may have moved a little. */
function createLookup(extents: readonly DeltaIsoExtent[]): Lookup {
  const byPath = new Map(extents.flatMap((extent) => extent.paths.map((path) => [path, extent])));
  const structures = extents.filter(({ paths }) => paths.length === 0);
  return ({ paths: [path], offset }) => {
    if (path !== undefined) return byPath.get(path);
    const after = findFirst(structures, (extent) => extent.offset >= offset);
    const [below, above] = [structures[after - 1], structures[after]];
    const isBelow = below && above && offset - below.offset <= above.offset - offset;
    return isBelow ? below : (above ?? below);
  };
}

const wrong = (
  path: string,
  { offset, digest, found }: { offset: number; digest: string; found: string },
): IntegrityError =>
  new IntegrityError(
    'extent.wrong-digest',
    `the bytes of ${path} at ${offset} do not match its index`,
    {
      expected: digest,
      found,
      hint: 'verify the ISO, and build or copy it again',
    },
  );
