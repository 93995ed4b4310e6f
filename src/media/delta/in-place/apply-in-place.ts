import { rm, type FileHandle } from 'node:fs/promises';
import { digestOf, type Digest } from '../../../base/digest.ts';
import { lockOutput } from '../../../base/disk/lock.ts';
import { digestFile, writeFileAtomic } from '../../../base/disk/files.ts';
import { openInPlace, openOwnFile, openToRead } from '../../../base/disk/open-file.ts';
import { explaining, explainWriteError } from '../../../base/disk/write-errors.ts';
import { ConfigError, DiskError, IntegrityError, isErrno } from '../../../base/errors.ts';
import { sumSizes } from '../../../base/lists.ts';
import { SECTOR_SIZE } from '../../../iso/extent.ts';
import { openRandomAccess } from '../../../iso/random-access.ts';
import type { IndexExtent } from '../../index/media-index.ts';
import { useImage } from '../../open-medium.ts';
import { namesBeside } from '../../output/claim-iso.ts';
import { publishChecksum } from '../../output/publish-iso.ts';
import { findGaps } from '../../verify-contents.ts';
import { verifyExtents } from '../../verify-extents.ts';
import { formatDelta, readDeltaHead, type DeltaExtent } from '../delta-file.ts';
import { openDelta, renderCarried, type DeltaFiles } from '../open-delta.ts';
import { readMedium, type Medium } from '../read-medium.ts';
import { leaveOut, listMoves, type NewIso } from './list-moves.ts';
import { planSteps, type Step } from './plan-steps.ts';
import { runSteps } from './run-steps.ts';
import { readStepJournal, startStepJournal, type StepJournal } from './step-journal.ts';

export type InPlaceOptions = {
  /** What the journal and what is saved aside are called, less their endings. */
  readonly aside: string;
  /** Path of the lock. */
  readonly lock: string;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

export type InPlaceReport = {
  /** Of the whole ISO; absent on a device, which is larger. */
  readonly digest?: Digest;
  /** Bytes of the new ISO. */
  readonly size: number;
  /** Bytes that the delta has. */
  readonly carried: number;
  /** Bytes that were written to the ISO. */
  readonly written: number;
  /** Bytes that were saved aside before that. */
  readonly saved: number;
};

/** The System Area and what tells where the directories and boot images are (ECMA-119 6.2.1, 8.2, 8.4). */
const BOOT = { offset: 0, size: 18 * SECTOR_SIZE };

/**
 * Makes the new ISO of the old one at its place. Killed at any moment, the same call continues; in between
 * the ISO does not boot, and its first bytes say why.
 *
 * @throws IntegrityError `delta.malformed`, `delta.other-iso`, `delta.no-index`, `delta.half-applied`,
 * `delta.damaged`; DiskError
 */
export async function applyInPlace(
  { from: path, delta: deltaPath }: { readonly from: string; readonly delta: string },
  options: InPlaceOptions,
): Promise<InPlaceReport> {
  const unlock = await lockOutput(options.lock);
  const files: FileHandle[] = [];
  const keep = async (opening: Promise<FileHandle>): Promise<FileHandle> => {
    const file = await opening;
    files.push(file);
    return file;
  };
  try {
    const iso = await keep(openToWrite(path));
    const begun = await begin(path, { ...options, deltaPath, iso });
    const { now, old, steps } = begun;
    const aside = await keep(openOwnFile(`${options.aside}.saved`));
    const delta = await keep(openToRead(deltaPath));
    const patched = await keep(openOwnFile(`${options.aside}.patched`));
    await resize(path, { iso, size: Math.max(old.size, now.size) });
    await change({ path, iso, aside, delta, patched }, begun, options);
    await resize(path, { iso, size: now.size });
    await requireNew(path, now, options);
    const digest = (await iso.stat()).isFile() ? await seal(path, options.signal) : undefined;
    for (const ending of ['journal', 'saved', 'patched'])
      await rm(`${options.aside}.${ending}`, { force: true });
    return { ...(digest && { digest }), ...summarize(steps, now) };
  } finally {
    for (const file of files) await file.close();
    await unlock();
  }
}

type Begun = StepJournal & {
  readonly steps: readonly Step[];
  /** What the ISO begins with meanwhile. */
  readonly marker: Uint8Array;
};

type Given = InPlaceOptions & { readonly deltaPath: string; readonly iso: FileHandle };

/** What an earlier run left, or a new plan, for which every byte that it needs was verified. */
async function begin(path: string, given: Given): Promise<Begun> {
  const { aside, deltaPath, iso } = given;
  const head = await useImage(deltaPath, readDeltaHead);
  const name = digestOf(formatDelta(head));
  const plan = (journal: StepJournal): Begun => {
    const { old, now } = journal;
    const steps = planSteps(leaveOut(listMoves(old, now), old, BOOT), BOOT);
    return { ...journal, steps, marker: formatMarker(name) };
  };
  const journal = await readStepJournal(`${aside}.journal`);
  const known = journal?.delta === name ? plan(journal) : undefined;
  const begun = await readMarker(iso);
  if (begun !== undefined && begun !== name) {
    throw halfApplied(path, { expected: `the delta ${begun}`, found: `the delta ${name}` });
  }
  if (begun !== undefined) {
    const found = 'none, or one of another delta';
    return known ?? fail(halfApplied(path, { expected: `a journal ${aside}.journal`, found }));
  }
  if (known && (await isReady(path, { ...known, from: head.from }))) return known;
  return plan({ delta: name, done: 0, ...(await prepare(path, given)) });
}

/** Whether all is there but what boots, or some of that: the marker is gone then. */
async function isReady(
  path: string,
  { steps, done, from }: Begun & { readonly from: string },
): Promise<boolean> {
  if (done <= steps.findIndex(({ kind }) => kind === 'ready')) return false;
  try {
    return (await readMedium(path)).identity !== from; // else somebody has put the old one back
  } catch (error) {
    if (error instanceof IntegrityError) return true;
    throw error;
  }
}

const MARKER = 'sealift: not whole yet, apply the delta ';

/** What an ISO begins with that is half-way; a sector at most. */
const formatMarker = (delta: string): Buffer => Buffer.from(`${MARKER}${delta} again\n`);

/** The delta that is half applied, if one is. */
async function readMarker(iso: FileHandle): Promise<string | undefined> {
  const start = Buffer.alloc(SECTOR_SIZE);
  await iso.read(start, 0, start.length, 0);
  const text = start.toString('latin1');
  return text.startsWith(MARKER) ? text.slice(MARKER.length).split(' ')[0] : undefined;
}

function fail(error: Error): never {
  throw error;
}

/** Reads both ISOs, verifies every byte that is needed, and makes what is made by patches. */
async function prepare(
  path: string,
  { aside, deltaPath, signal, onProgress }: Given,
): Promise<Pick<StepJournal, 'old' | 'now'>> {
  const medium = await readMedium(path);
  const old = { size: medium.size, extents: medium.extents.map(toDeltaExtent) };
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

const toDeltaExtent = ({ offset, size, digest }: DeltaExtent): DeltaExtent => ({
  offset,
  size,
  digest,
});

const toIndexExtent = ({ offset, size, digest }: DeltaExtent): IndexExtent => ({
  offset,
  size,
  digest,
  paths: [],
});

/** The last check: the new ISO is there, and zeros are between its files. */
function requireNew(path: string, { extents }: NewIso, options: InPlaceOptions): Promise<void> {
  const all = extents.map(toIndexExtent);
  return requireVerified(path, [...all, ...findGaps(all)], options);
}

async function requireVerified(
  path: string,
  extents: readonly IndexExtent[],
  { signal, onProgress }: Pick<InPlaceOptions, 'signal' | 'onProgress'>,
): Promise<void> {
  const total = sumSizes(extents);
  const [first] = await useImage(path, (image) =>
    verifyExtents(image, extents, {
      signal,
      onProgress: (bytes) => {
        onProgress(bytes, total);
      },
    }),
  );
  if (!first) return;
  const { extent, found = first.unreadable ?? '' } = first;
  throw new IntegrityError(
    'delta.damaged',
    `${path} has other bytes at ${extent.offset} than it should have`,
    {
      expected: `${extent.digest ?? ''} for ${extent.size} bytes`,
      found,
      hint: 'repair it with "sealift repair", or copy it again',
    },
  );
}

async function change(
  files: Parameters<typeof runSteps>[0],
  { steps, marker, delta, old, now, done }: Begun,
  { aside, signal, onProgress }: InPlaceOptions,
): Promise<void> {
  const journal = await startStepJournal(`${aside}.journal`, { delta, old, now, done });
  const names = namesBeside(files.path);
  for (const name of [names.checksum, names.report]) await rm(name, { force: true });
  const total = steps.reduce((sum, step) => sum + (step.kind === 'write' ? step.size : 0), 0);
  let bytes = 0;
  try {
    await runSteps(files, {
      steps,
      done,
      marker,
      signal,
      note: journal.note,
      onBytes(size) {
        bytes += size;
        onProgress(bytes, total);
      },
    });
  } finally {
    await journal.close();
  }
}

/** A file gets this size; a device must have it. */
async function resize(
  path: string,
  { iso, size }: { readonly iso: FileHandle; readonly size: number },
): Promise<void> {
  if ((await iso.stat()).isFile()) {
    await explaining(path, () => iso.truncate(size));
    return;
  }
  const device = await openRandomAccess(path);
  await device.close();
  if (device.size >= size) return;
  throw new DiskError('device.too-small', `"${path}" is too small for the new ISO`, {
    expected: `at least ${size} bytes`,
    found: `${device.size} bytes`,
    hint: 'take a larger device',
  });
}

async function openToWrite(path: string): Promise<FileHandle> {
  try {
    return await openInPlace(path);
  } catch (error) {
    throw isErrno(error, 'ENOENT') ? unreadable(path) : explainWriteError(error, path);
  }
}

const unreadable = (path: string): ConfigError =>
  new ConfigError('iso.unreadable', `${path} cannot be read: there is no such file`);

async function seal(path: string, signal: AbortSignal): Promise<Digest> {
  const digest = await digestFile(path, signal);
  await publishChecksum(path, digest);
  return digest;
}

function summarize(
  steps: readonly Step[],
  { size, carried }: NewIso,
): Omit<InPlaceReport, 'digest'> {
  let [written, saved] = [0, 0];
  for (const step of steps) {
    if (step.kind === 'save') saved += step.size;
    else if (step.kind !== 'ready') written += step.size;
  }
  return { size, carried: sumSizes(carried), written, saved };
}

const halfApplied = (
  path: string,
  values: { readonly expected: string; readonly found: string },
): IntegrityError =>
  new IntegrityError('delta.half-applied', `${path} is half-way to another ISO`, {
    ...values,
    hint: 'apply the delta that was begun, with the journal that was made',
  });
