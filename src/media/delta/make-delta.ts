import { stat } from 'node:fs/promises';
import type { Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Extent, Layout } from '../../iso/extent.ts';
import { bytesExtent, fillGaps } from '../../iso/live-base/extent-list.ts';
import { pourIso, publishPour, type PourOptions } from '../../iso/pour/pour-iso.ts';
import { surveyPartial } from '../../iso/pour/survey.ts';
import { requireSpace } from '../../openshift/mirror/space.ts';
import type { FilePosition } from '../../registry/blob-source.ts';
import { openRandomAccess } from '../../iso/random-access.ts';
import { publishIso } from '../output/publish-iso.ts';
import { otherIso, readMedium } from './read-medium.ts';
import { formatDelta, readDelta, type Delta, type DeltaExtent } from './delta-file.ts';

type PourSettings = Pick<PourOptions, 'output' | 'signal' | 'onProgress' | 'warn'>;

/** Bytes. */
export type DeltaReport = {
  readonly digest: Digest;
  /** Of the file that was written. */
  readonly size: number;
  /** Of the new ISO that the old one has. */
  readonly shared: number;
  /** Of the new ISO that the delta carries. */
  readonly carried: number;
};

const LANES = 4;

/**
 * Writes what the new ISO has and the old one has not, verified; continues what was interrupted.
 *
 * @throws IntegrityError `delta.no-index`, `extent.wrong-digest` when the new ISO is damaged; what `pourIso`
 * throws
 */
export async function makeDelta(
  { from, to }: { readonly from: string; readonly to: string },
  settings: PourSettings,
): Promise<DeltaReport> {
  const old = await readMedium(from);
  const { size, extents } = await readMedium(to);
  const known = new Set(old.extents.map(({ digest }) => digest));
  const carried = unique(extents.filter(({ digest }) => !known.has(digest)));
  const delta: Delta = { from: old.identity, size, extents, carried };
  const head = formatDelta(delta);
  const layout = layOutDelta(head, carried);
  const places = new Map(
    carried.map(({ digest, offset }) => [digest, { path: to, position: offset }]),
  );
  const digest = await pour(layout, places, { ...settings, mode: await readMode(from, to) });
  await publishPour(settings.output);
  const bytes = sum(carried);
  return { digest, size: layout.size, carried: bytes, shared: sum(extents) - bytes };
}

/**
 * Makes the new ISO of the old one and a delta, every byte verified; continues what was interrupted.
 *
 * @throws IntegrityError `delta.malformed`, `delta.other-iso`, `delta.no-index`, `extent.wrong-digest`;
 * what `pourIso` throws
 */
export async function applyDelta(
  { from, delta: path }: { readonly from: string; readonly delta: string },
  settings: PourSettings,
): Promise<DeltaReport> {
  const file = await openRandomAccess(path);
  const delta = await readDelta(file).finally(() => file.close());
  const old = await readMedium(from);
  if (old.identity !== delta.from)
    throw otherIso(from, { found: old.identity, expected: delta.from });
  const places = new Map<Digest, FilePosition>();
  for (const { digest, offset } of old.extents)
    places.set(digest, { path: from, position: offset });
  let position = delta.start;
  for (const { digest, size } of delta.carried) {
    places.set(digest, { path, position });
    position += size;
  }
  const extents = delta.extents.map((extent): Extent => ({ ...extent, ...STORED }));
  const layout = { size: delta.size, extents: fillGaps(extents, delta.size) };
  const digest = await pour(layout, places, { ...settings, mode: await readMode(from, path) });
  await publishIso(settings.output, { digest });
  const carried = sum(delta.carried);
  return { digest, size: delta.size, carried, shared: sum(delta.extents) - carried };
}

const STORED = { source: { kind: 'blob' }, paths: [] } as const;

/** Pours out of files of this machine; returns the digest of the whole. */
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

/** Who may not read one of both may not read what is made of them: media can have secrets. */
async function readMode(...paths: readonly string[]): Promise<number> {
  let mode = 0o644;
  for (const path of paths) mode &= (await stat(path)).mode;
  return mode | 0o600;
}

const unique = (extents: readonly DeltaExtent[]): readonly DeltaExtent[] => [
  ...new Map(extents.map((extent) => [extent.digest, extent])).values(),
];

const sum = (extents: readonly DeltaExtent[]): number =>
  extents.reduce((bytes, { size }) => bytes + size, 0);

/** A delta is poured as an ISO is; its size need not be whole sectors. */
function layOutDelta(head: Uint8Array, carried: readonly DeltaExtent[]): Layout {
  const extents: Extent[] = [bytesExtent(0, head)];
  let offset = head.length;
  for (const { size, digest } of carried) {
    extents.push({ offset, size, digest, ...STORED });
    offset += size;
  }
  return { size: offset, extents };
}

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
