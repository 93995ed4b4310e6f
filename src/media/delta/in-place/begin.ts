import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { digestOf } from '../../../base/digest.ts';
import { sweepAside } from '../../../base/disk/aside.ts';
import { explainWriteError } from '../../../base/disk/disk-errors.ts';
import { writeFileAtomic } from '../../../base/disk/files.ts';
import type { LeaseOptions } from '../../../base/disk/lease.ts';
import { openOwnFile, readOwnFile } from '../../../base/disk/open-file.ts';
import { withoutUndefined } from '../../../base/lists.ts';
import { SECTOR_SIZE } from '../../../iso/index.ts';
import { decodeJson, ifFaultless } from '../../../shape/decode.ts';
import { COUNT, DIGEST, list, oneOf, optional, record, TEXT } from '../../../shape/shape.ts';
import { useImage } from '../../open.ts';
import { findGaps } from '../../verify-contents.ts';
import { verifyExtents } from '../../verify-extents.ts';
import { type DeltaExtent, formatDelta, readDeltaHead, type DeltaHead } from '../file.ts';
import { readApplied } from '../applied.ts';
import { type DeltaIso, readDeltaIso, readDeltaIsoAsBuilt } from '../open.ts';
import {
  type NewIso,
  type InPlaceStep,
  type OldIso,
  leaveOut,
  listMoves,
  planSteps,
} from './plan.ts';
import { formatMarker, halfApplied, type Marked, parseMarker } from './marker.ts';
import { requireCarried, requireVerified, toIndexExtent } from './verified.ts';

/* The start of applying a delta in place, and the journal of the run. */

/**
 * Progress of changing an ISO in place.
 *
 * {"delta":"sha256:...","now":{...},"old":{...},"run":"..."}    the delta, the new ISO, the old ISO
 * <n>                                               the first n steps are on the disk
 *
 * The first line describes both ISOs because the index that names their extents is overwritten early. A
 * torn last line is ignored.
 */
export type StepJournal = {
  /** Digest of the delta, which identifies both ISOs. */
  readonly delta: string;
  /** Identifier also written to the medium: one delta may be half applied to two media. */
  readonly run: string;
  readonly old: OldIso;
  readonly now: NewIso;
  /** Steps that are on the disk. */
  readonly done: number;
};

export type InPlaceOptions = LeaseOptions & {
  /** Path of the journal, the saved bytes and the patched extents, without extensions. */
  readonly aside: string;
  /** Path of the lock. */
  readonly lock: string;
  readonly onProgress: (bytes: number, total?: number) => void;
};

export type Begun = StepJournal & {
  readonly steps: readonly InPlaceStep[];
  readonly marker: Uint8Array;
};

type Given = InPlaceOptions & { readonly deltaPath: string; readonly iso: FileHandle };

/** System Area and descriptors that locate directories and boot images (ECMA-119 6.2.1, 8.2, 8.4). */
const BOOT = { offset: 0, size: 18 * SECTOR_SIZE };

/** Continues an earlier run, or verifies every byte of a new plan; or finds that the ISO is the new one. */
export async function begin(
  path: string,
  given: Given,
): Promise<Begun | { readonly there: NewIso }> {
  const { aside, deltaPath, signal } = given;
  const head = await useImage(deltaPath, readDeltaHead);
  const name = digestOf(formatDelta(plainOf(head))); // as earlier versions compute it
  const known = await findBegun(path, { ...given, name, index: head.index });
  if (known) {
    const files = { delta: deltaPath, patched: `${aside}.patched`, signal };
    await requireCarried(known.now.carried, known.steps.slice(known.done), files);
    return known;
  }
  const medium = await readDeltaIso(path);
  const isNew = isMade(medium, head) || isMade(await readDeltaIsoAsBuilt(path, medium), head);
  if (isNew) return { there: { ...asIso(medium), carried: [] } };
  const run = randomBytes(16).toString('hex');
  return plan({ delta: name, run, done: 0, ...(await prepare(path, medium, given)) });
}

/** Names are for people, and a proof is for transport: with them or without, it is the same delta. */
const plainOf = ({ from, size, index, mutable, patches, bodySize }: DeltaHead): DeltaHead => ({
  from,
  size,
  index,
  ...withoutUndefined({ mutable }),
  patches,
  bodySize,
});

/** Finds the progress of an earlier run of this delta on this ISO. */
async function findBegun(
  path: string,
  given: Given & { readonly name: string; readonly index: DeltaExtent },
): Promise<Begun | undefined> {
  const { name, aside, iso } = given;
  const journal = await readStepJournal(`${aside}.journal`);
  const known = journal?.delta === name ? plan(journal) : undefined;
  const marked = await readMarker(iso);
  if (!marked) return known && (await isReady(path, known, given)) ? known : undefined;
  if (marked.delta !== name) {
    throw halfApplied(path, { expected: `the delta ${marked.delta}`, found: `the delta ${name}` });
  }
  if (known?.run === marked.run) return known;
  const found = 'no journal, or the journal of another delta or medium';
  throw halfApplied(path, { expected: `its journal, ${aside}.journal`, found });
}

/**
 * True if only boot structures are missing. The marker is gone by then; the index of the new ISO
 * distinguishes it from another medium and from the old ISO.
 */
const isReady = async (
  path: string,
  { steps, done }: Begun,
  { index, signal }: { readonly index: DeltaExtent; readonly signal: AbortSignal },
): Promise<boolean> =>
  done > steps.findIndex(({ kind }) => kind === 'ready') && (await hasExtent(path, index, signal));

/** True if these bytes are already on the ISO. */
const hasExtent = (path: string, extent: DeltaExtent, signal: AbortSignal): Promise<boolean> =>
  useImage(path, async (image) => {
    const options = { signal, onProgress: () => undefined };
    return (await verifyExtents(image, [toIndexExtent(extent)], options)).length === 0;
  });

function plan(journal: StepJournal): Begun {
  const { old, now } = journal;
  const steps = planSteps(leaveOut(listMoves(old, now), old, BOOT), BOOT);
  return { ...journal, steps, marker: formatMarker(journal) };
}

async function readMarker(iso: FileHandle): Promise<Marked | undefined> {
  const start = Buffer.alloc(SECTOR_SIZE);
  await iso.read(start, 0, start.length, 0);
  return parseMarker(start);
}

/** Includes the areas whose values differ from the old ISO. The ISO may still be damaged. */
function isMade({ index, extents }: DeltaIso, head: DeltaHead): boolean {
  const digests = new Map(extents.map(({ offset, digest }) => [offset, digest]));
  const values = head.mutable ?? [];
  return (
    index.digest === head.index.digest &&
    values.every(({ offset, digest }) => digests.get(offset) === digest)
  );
}

/** Reads both ISOs, verifies every byte that is needed, and applies the patches. */
async function prepare(
  path: string,
  medium: DeltaIso,
  { aside, deltaPath, signal, onProgress }: Given,
): Promise<Pick<StepJournal, 'old' | 'now'>> {
  const old = asIso(medium);
  const now = await expand({ from: path, delta: deltaPath }, medium, `${aside}.patched`);
  const sources = new Set(
    listMoves(old, now).flatMap(({ from }) => (from.kind === 'old' ? from.offset : [])),
  );
  const needed = old.extents.filter(({ offset }) => sources.has(offset)).map(toIndexExtent);
  const gaps = findGaps(old.extents.map(toIndexExtent));
  await requireVerified(path, [...needed, ...gaps], { signal, onProgress });
  const carried = now.carried.filter((extent) => extent.in === 'delta').map(toIndexExtent);
  await requireVerified(deltaPath, carried, { signal, onProgress: () => undefined });
  return { old, now };
}

async function expand(
  paths: Parameters<typeof readApplied>[0],
  medium: DeltaIso,
  patched: string,
): Promise<NewIso> {
  const { size, extents, carried, rendered, values } = await readApplied(paths, medium);
  const places: NewIso['carried'][number][] = carried
    .filter(({ digest }) => !rendered.has(digest))
    .map(({ digest, size, position }) => ({ digest, size, in: 'delta', offset: position }));
  let end = 0;
  for (const [digest, bytes] of rendered) {
    places.push({ digest, size: bytes.length, in: 'patched', offset: end });
    end += bytes.length;
  }
  await sweepAside(patched); // of a run that was killed
  await writeFileAtomic(patched, [...rendered.values()]);
  return { size, extents, carried: places, values };
}

const asIso = ({ size, extents }: DeltaIso): OldIso => ({
  size,
  extents: extents.map(toDeltaExtent),
});

const toDeltaExtent = ({ offset, size, digest }: DeltaExtent): DeltaExtent => ({
  offset,
  size,
  digest,
});

/** Returns undefined if the journal is missing, or if a crash cut its first line. */
async function readStepJournal(path: string): Promise<StepJournal | undefined> {
  const text = (await readOwnFile(path))?.toString('utf8');
  const [head, ...lines] = text?.slice(0, text.lastIndexOf('\n')).split('\n') ?? [];
  if (!head?.startsWith('{')) return undefined;
  const journal = ifFaultless(decodeJson(STEP_JOURNAL, head));
  return journal && { ...journal, done: Number(lines.at(-1) ?? 0) };
}

const RANGE = { offset: COUNT, size: COUNT, digest: DIGEST };
const EXTENTS = list(record(RANGE));

/** The first line, as `startStepJournal` writes it. */
const STEP_JOURNAL = record({
  delta: TEXT,
  run: TEXT,
  old: record({ size: COUNT, extents: EXTENTS }),
  now: record({
    size: COUNT,
    extents: EXTENTS,
    carried: list(record({ ...RANGE, in: oneOf('delta', 'patched') })),
    values: optional(list(TEXT)),
  }),
});

/** Writes the first line, and opens the journal to append; `note` returns when the line is on the disk. */
export async function startStepJournal(
  path: string,
  { delta, now, old, run, done }: StepJournal,
): Promise<{
  readonly note: (done: number) => Promise<void>;
  readonly close: () => Promise<void>;
}> {
  await sweepAside(path); // of a run that was killed
  await writeFileAtomic(path, `${JSON.stringify({ delta, now, old, run })}\n${done}\n`);
  const file: FileHandle = await openOwnFile(path, { create: false, append: true });
  return {
    async note(count) {
      try {
        await file.appendFile(`${count}\n`);
        await file.datasync();
      } catch (error) {
        throw explainWriteError(error, path);
      }
    },
    close: () => file.close(),
  };
}
