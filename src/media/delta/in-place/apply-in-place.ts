import { randomBytes } from 'node:crypto';
import { rm, type FileHandle } from 'node:fs/promises';
import { digestOf, type Digest } from '../../../base/digest.ts';
import { withLock } from '../../../base/disk/lock.ts';
import { digestFile, writeFileAtomic } from '../../../base/disk/files.ts';
import { openInPlace, openOwnFile, openToRead } from '../../../base/disk/open-file.ts';
import { explaining, explainWriteError } from '../../../base/disk/write-errors.ts';
import { ConfigError, DiskError, IntegrityError, isErrno } from '../../../base/errors.ts';
import { sumSizes } from '../../../base/lists.ts';
import { SECTOR_SIZE } from '../../../iso/extent.ts';
import { openRandomAccess } from '../../../iso/random-access.ts';
import { useImage } from '../../open-medium.ts';
import { namesBeside } from '../../output/claim-iso.ts';
import { publishChecksum } from '../../output/publish-iso.ts';
import { findGaps } from '../../verify-contents.ts';
import { formatDelta, readDeltaHead, type DeltaExtent } from '../delta-file.ts';
import { openDelta, renderCarried, type DeltaFiles } from '../open-delta.ts';
import { readMedium, type Medium } from '../read-medium.ts';
import { leaveOut, listMoves, type NewIso } from './list-moves.ts';
import { planSteps, type Step } from './plan-steps.ts';
import { runSteps } from './run-steps.ts';
import { hasExtent, requireCarried, requireVerified, toIndexExtent } from './verify-parts.ts';
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
export const applyInPlace = (
  paths: InPlacePaths,
  options: InPlaceOptions,
): Promise<InPlaceReport> => withLock(options.lock, () => applyLocked(paths, options));

type InPlacePaths = { readonly from: string; readonly delta: string };

async function applyLocked(
  { from: path, delta: deltaPath }: InPlacePaths,
  options: InPlaceOptions,
): Promise<InPlaceReport> {
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
    return { ...journal, steps, marker: formatMarker(journal) };
  };
  const goOn = async (known: Begun): Promise<Begun> => {
    const left = known.steps.slice(known.done);
    const files = { delta: deltaPath, patched: `${aside}.patched`, signal: given.signal };
    await requireCarried(known.now.carried, left, files);
    return known;
  };
  const journal = await readStepJournal(`${aside}.journal`);
  const known = journal?.delta === name ? plan(journal) : undefined;
  const begun = await readMarker(iso);
  if (begun && begun.delta !== name) {
    throw halfApplied(path, { expected: `the delta ${begun.delta}`, found: `the delta ${name}` });
  }
  if (begun) {
    const found = 'none, or one of another delta or medium';
    if (known?.run === begun.run) return goOn(known);
    throw halfApplied(path, { expected: `a journal ${aside}.journal of it`, found });
  }
  if (known && (await isReady(path, known, { ...given, index: head.index }))) return goOn(known);
  const run = randomBytes(16).toString('hex');
  return plan({ delta: name, run, done: 0, ...(await prepare(path, given)) });
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

/** The last check: the new ISO is there, and zeros are between its files. */
function requireNew(path: string, { extents }: NewIso, options: InPlaceOptions): Promise<void> {
  const all = extents.map(toIndexExtent);
  return requireVerified(path, [...all, ...findGaps(all)], options);
}

async function change(
  files: Parameters<typeof runSteps>[0],
  { steps, marker, done, ...begun }: Begun,
  { aside, signal, onProgress }: InPlaceOptions,
): Promise<void> {
  const journal = await startStepJournal(`${aside}.journal`, { ...begun, done });
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
