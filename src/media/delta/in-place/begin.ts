import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { digestOf } from '../../../base/digest.ts';
import { writeFileAtomic } from '../../../base/disk/files.ts';
import { IntegrityError } from '../../../base/errors.ts';
import { SECTOR_SIZE } from '../../../iso/extent.ts';
import { useImage } from '../../open-medium.ts';
import { findGaps } from '../../verify-contents.ts';
import { formatDelta, readDeltaHead, type DeltaExtent, type DeltaHead } from '../delta-file.ts';
import { openDelta, renderCarried, type DeltaFiles } from '../open-delta.ts';
import { readMedium, type Medium } from '../read-medium.ts';
import { leaveOut, listMoves, type NewIso } from './list-moves.ts';
import { planSteps, type Step } from './plan-steps.ts';
import { hasExtent, requireCarried, requireVerified, toIndexExtent } from './verify-parts.ts';
import { readStepJournal, type StepJournal } from './step-journal.ts';

export type InPlaceOptions = {
  /** What the journal and what is saved aside are called, less their endings. */
  readonly aside: string;
  /** Path of the lock. */
  readonly lock: string;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

export type Begun = StepJournal & {
  readonly steps: readonly Step[];
  /** What the ISO begins with meanwhile. */
  readonly marker: Uint8Array;
};

type Given = InPlaceOptions & { readonly deltaPath: string; readonly iso: FileHandle };

/** The System Area and what tells where the directories and boot images are (ECMA-119 6.2.1, 8.2, 8.4). */
const BOOT = { offset: 0, size: 18 * SECTOR_SIZE };

/**
 * What an earlier run left, or a new plan, for which every byte that it needs was verified; or the new ISO, where it is
 * there already.
 */
export async function begin(
  path: string,
  given: Given,
): Promise<Begun | { readonly there: NewIso }> {
  const { aside, deltaPath, signal } = given;
  const head = await useImage(deltaPath, readDeltaHead);
  const name = digestOf(formatDelta(head));
  const known = await findBegun(path, { ...given, name, index: head.index });
  if (known) {
    const files = { delta: deltaPath, patched: `${aside}.patched`, signal };
    await requireCarried(known.now.carried, known.steps.slice(known.done), files);
    return known;
  }
  const medium = await readMedium(path);
  if (isMade(medium, head)) return { there: { ...asIso(medium), carried: [] } };
  const run = randomBytes(16).toString('hex');
  return plan({ delta: name, run, done: 0, ...(await prepare(path, medium, given)) });
}

/** Whether it is the new ISO, with its values where they are not those of the old one. It may be damaged all the same. */
function isMade({ index, extents }: Medium, head: DeltaHead): boolean {
  const digests = new Map(extents.map(({ offset, digest }) => [offset, digest]));
  const values = head.mutable ?? [];
  return (
    index.digest === head.index.digest &&
    values.every(({ offset, digest }) => digests.get(offset) === digest)
  );
}

function plan(journal: StepJournal): Begun {
  const { old, now } = journal;
  const steps = planSteps(leaveOut(listMoves(old, now), old, BOOT), BOOT);
  return { ...journal, steps, marker: formatMarker(journal) };
}

/** What an earlier run of this delta left of this ISO. */
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
  const found = 'none, or one of another delta or medium';
  throw halfApplied(path, { expected: `a journal ${aside}.journal of it`, found });
}

/**
 * Whether all is there but what boots, or some of that: the marker is gone then, and the index of the new ISO
 * tells it from another medium and from the old ISO.
 */
const isReady = async (
  path: string,
  { steps, done }: Begun,
  { index, signal }: { readonly index: DeltaExtent; readonly signal: AbortSignal },
): Promise<boolean> =>
  done > steps.findIndex(({ kind }) => kind === 'ready') && (await hasExtent(path, index, signal));

const MARKER = 'sealift: not whole yet, apply the delta ';

/** What an ISO begins with that is half-way; a sector at most. */
const formatMarker = ({ delta, run }: Marked): Buffer =>
  Buffer.from(`${MARKER}${delta} again (run ${run})\n`);

type Marked = Pick<StepJournal, 'delta' | 'run'>;

/** The delta that is half applied, if one is. */
async function readMarker(iso: FileHandle): Promise<Marked | undefined> {
  const start = Buffer.alloc(SECTOR_SIZE);
  await iso.read(start, 0, start.length, 0);
  const text = start.toString('latin1');
  if (!text.startsWith(MARKER)) return undefined;
  const [delta = '', , , run = ''] = text.slice(MARKER.length).split(/[ )\n]/);
  return { delta, run };
}

const halfApplied = (
  path: string,
  values: { readonly expected: string; readonly found: string },
): IntegrityError =>
  new IntegrityError('delta.half-applied', `${path} is half-way to another ISO`, {
    ...values,
    hint: 'apply the delta that was begun, with the journal that was made',
  });

/** Reads both ISOs, verifies every byte that is needed, and makes what is made by patches. */
async function prepare(
  path: string,
  medium: Medium,
  { aside, deltaPath, signal, onProgress }: Given,
): Promise<Pick<StepJournal, 'old' | 'now'>> {
  const old = asIso(medium);
  const now = await useImage(path, (iso) =>
    useImage(deltaPath, (delta) => expand({ iso, delta }, medium, `${aside}.patched`)),
  );
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

async function expand(files: DeltaFiles, old: Medium, patched: string): Promise<NewIso> {
  const { size, extents, carried } = await openDelta(files, old);
  const made: Uint8Array[] = [];
  let end = 0;
  const places: NewIso['carried'][number][] = [];
  for (const extent of carried) {
    const { digest, size, position, patch } = extent;
    places.push({
      digest,
      size,
      ...(patch ? { in: 'patched', offset: end } : { in: 'delta', offset: position }),
    });
    if (!patch) continue;
    made.push(await renderCarried(files, extent));
    end += size;
  }
  await writeFileAtomic(patched, Buffer.concat(made));
  return { size, extents, carried: places };
}

const asIso = ({ size, extents }: Medium): Omit<NewIso, 'carried'> => ({
  size,
  extents: extents.map(toDeltaExtent),
});

const toDeltaExtent = ({ offset, size, digest }: DeltaExtent): DeltaExtent => ({
  offset,
  size,
  digest,
});
