import { digestOf, type Digest } from '../../base/digest.ts';
import { DifferenceError } from '../../base/errors.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import { lacksEmbedArea } from '../../iso/index.ts';
import type { IsoImage } from '../../iso/index.ts';
import { applyParts, overlayAccess, type OverlayPart } from '../areas.ts';
import { type BuiltAreas, type CarriedValues, carryValues } from '../customize/carry.ts';
import { readIndex } from '../media-index.ts';
import { readAreas } from '../medium.ts';
import { useMedium } from '../open.ts';
import { fillParts } from '../serve/virtual.ts';
import { type DeltaExtent, readDeltaHead } from './file.ts';
import { type CarriedExtent, damaged, type DeltaFiles, renderCarried } from './carried.ts';
import { type Delta, type DeltaIso, openDelta, readDeltaIso } from './open.ts';

/*
 * The ISO that a delta makes, before a byte of it is written. Values of a customised old ISO are put into it.
 */

export type AppliedDelta = {
  /** Bytes. */
  readonly size: number;
  /** Extents of the new ISO by offset; the rest is zeros. */
  readonly extents: readonly DeltaExtent[];
  /** Extents that the old ISO lacks. */
  readonly carried: readonly CarriedExtent[];
  /** Bytes that neither file has as they are, by digest. */
  readonly rendered: ReadonlyMap<Digest, Uint8Array>;
  /** Parts of the areas that the new ISO has from the old one. */
  readonly values: readonly string[];
};

/**
 * Holds in memory the bytes that patches make, and the files with areas of a customised ISO.
 *
 * @param medium the ISO as it is
 */
export async function readApplied(
  { from, delta: path }: { readonly from: string; readonly delta: string },
  medium: DeltaIso,
): Promise<AppliedDelta> {
  const files = { delta: await openRandomAccess(path), iso: await openRandomAccess(from) };
  try {
    const head = await readDeltaHead(files.delta);
    const { built } = medium;
    return medium.identity !== head.from && built?.identity === head.from
      ? await renderLifted(files, { medium, parts: built.parts })
      : await render(files, medium);
  } finally {
    await files.delta.close();
    await files.iso.close();
  }
}

type Rendered = Omit<AppliedDelta, 'rendered'> & { readonly rendered: Map<Digest, Uint8Array> };

async function render(files: DeltaFiles, old: DeltaIso): Promise<Rendered> {
  const { size, extents, carried }: Delta = await openDelta(files, old);
  const rendered = new Map<Digest, Uint8Array>();
  for (const each of carried) {
    if (each.patch) rendered.set(each.digest, await renderCarried(files, each));
  }
  return { size, extents, carried, rendered, values: [] };
}

type Customised = { readonly medium: DeltaIso; readonly parts: readonly OverlayPart[] };

/** Renders the new ISO from the old one as it was built, and gives it the values of the old one. */
async function renderLifted(
  { delta, iso }: DeltaFiles,
  { medium, parts }: Customised,
): Promise<AppliedDelta> {
  const view = keepOpen(overlayAccess(iso, parts));
  const old = await readDeltaIso(view);
  const made = await render({ delta, iso: view }, old);
  const { rendered } = made;
  const own = new Set(medium.extents.map(({ digest }) => digest));
  for (const { digest, offset, size } of old.extents) {
    if (!own.has(digest)) rendered.set(digest, await view.read(offset, size));
  }
  const next = openMade(made, { delta, iso: view }, old);
  const values = await carryBetween(keepOpen(iso), next);
  const extents: DeltaExtent[] = [];
  for (const extent of made.extents) {
    const bytes = await renderChanged(next, extent, values.parts);
    const digest = bytes ? digestOf(bytes) : extent.digest;
    if (bytes) rendered.set(digest, bytes);
    extents.push({ ...extent, digest });
  }
  return { ...made, extents, values: values.names };
}

/** Renders an extent that holds values; undefined for any other. */
async function renderChanged(
  { path, read }: RandomAccess,
  { offset, size, digest }: DeltaExtent,
  parts: readonly OverlayPart[],
): Promise<Uint8Array | undefined> {
  const own = parts.filter(
    (part) => part.offset < offset + size && part.offset + part.bytes.length > offset,
  );
  if (own.length === 0) return undefined;
  const bytes = await read(offset, size);
  const found = digestOf(bytes);
  if (found !== digest) throw damaged(path, { offset, digest, found });
  applyParts(bytes, offset, own);
  return bytes;
}

/** An image that stays open when its reader is done. */
const keepOpen = (image: RandomAccess): RandomAccess => ({
  ...image,
  close: () => Promise.resolve(),
});

/** Reads the new ISO, which is nowhere as a whole. */
function openMade(
  { size, extents, carried, rendered }: Rendered,
  { delta, iso }: DeltaFiles,
  old: DeltaIso,
): RandomAccess {
  const inOld = new Map(old.extents.map(({ digest, offset }) => [digest, offset]));
  const inDelta = new Map(carried.map(({ digest, position }) => [digest, position]));
  return {
    path: delta.path,
    size,
    async read(offset, wanted, buffer = Buffer.alloc(wanted)) {
      const bytes = buffer.subarray(0, wanted);
      await fillParts(extents, { bytes, offset }, async ({ part: { digest }, target, at }) => {
        const known = rendered.get(digest);
        const position = inDelta.get(digest);
        if (known) target.set(known.subarray(at, at + target.length));
        else if (position !== undefined) await delta.read(position + at, target.length, target);
        else await iso.read((inOld.get(digest) ?? 0) + at, target.length, target);
      });
      return bytes;
    },
    close: () => Promise.resolve(),
  };
}

const carryBetween = (image: RandomAccess, next: RandomAccess): Promise<CarriedValues> =>
  useMedium(image, async (from) =>
    useMedium(next, async (onto) => carryValues(await readBuilt(from), await readBuilt(onto))),
  );

async function readBuilt(iso: IsoImage): Promise<BuiltAreas> {
  try {
    const areas = await readAreas(iso, { index: await readIndex(iso) });
    if (areas.built) return { ...areas, built: areas.built };
  } catch (error) {
    if (!lacksEmbedArea(error)) throw error;
  }
  throw new DifferenceError(
    'delta.values',
    'the old ISO is customised, but the new one takes no values',
    {
      hint: 'reset the old ISO with "sealift customize --reset", and apply the delta then',
    },
  );
}
