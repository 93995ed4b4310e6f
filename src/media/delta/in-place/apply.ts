import { rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../../base/digest.ts';
import { explaining, explainWriteError } from '../../../base/disk/disk-errors.ts';
import { digestFile, readFreeBytes } from '../../../base/disk/files.ts';
import { withLease } from '../../../base/disk/lease.ts';
import type { Lease } from '../../../base/disk/succession.ts';
import { openInPlace, openOwnFile, openToRead } from '../../../base/disk/open-file.ts';
import { DiskError } from '../../../base/errors.ts';
import { maxOf, sumSizes } from '../../../base/lists.ts';
import { openRandomAccess } from '../../../base/random-access.ts';
import { formatSize } from '../../../base/text/words.ts';
import { publishChecksum } from '../../../outputs/file.ts';
import { namesBeside } from '../../../outputs/place.ts';
import { findGaps } from '../../verify-contents.ts';
import { begin, type Begun, type InPlaceOptions, startStepJournal } from './begin.ts';
import { requireVerified, toIndexExtent } from './verified.ts';
import type { NewIso, InPlaceStep } from './plan.ts';
import { runSteps } from './run.ts';

export type InPlaceReport = {
  /** Digest of the whole ISO; absent on a device, which is larger. */
  readonly digest?: Digest;
  /** Size of the new ISO in bytes. */
  readonly size: number;
  readonly carried: number;
  readonly written: number;
  /** Bytes saved aside before they were overwritten. */
  readonly saved: number;
  /** Parts of the areas that the new ISO has from a customised old one. */
  readonly values: readonly string[];
};

/**
 * Turns the old ISO into the new one. If it is killed, the same call continues; meanwhile the ISO does not
 * boot, and its first bytes say why. If the ISO already is the new one, it is verified.
 *
 * @throws IntegrityError `delta.malformed`, `delta.other-iso`, `delta.no-index`, `delta.half-applied`,
 * `delta.damaged`; DiskError
 */
export const applyInPlace = (
  paths: InPlacePaths,
  options: InPlaceOptions,
): Promise<InPlaceReport> =>
  withLease(options.lock, options, (lease) => applyLocked(paths, options, lease));

type InPlacePaths = { readonly from: string; readonly delta: string };

async function applyLocked(
  { from: path, delta: deltaPath }: InPlacePaths,
  options: InPlaceOptions,
  { requireHeld }: Lease,
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
    if ('there' in begun) {
      await requireNew(path, begun.there, options);
      return await finish(path, { iso, now: begun.there, steps: [] }, options);
    }
    const { now, old, steps } = begun;
    const isFile = (await iso.stat()).isFile();
    if (begun.done === 0) await requireRoom(begun, { aside: options.aside, isFile });
    const aside = await keep(openAside(`${options.aside}.saved`));
    const delta = await keep(openToRead(deltaPath));
    const patched = await keep(openAside(`${options.aside}.patched`));
    await resize(path, { iso, size: Math.max(old.size, now.size) });
    await change({ path, iso, aside, delta, patched, requireHeld }, begun, options);
    await requireHeld();
    await resize(path, { iso, size: now.size });
    await requireNew(path, now, options);
    return await finish(path, { iso, now, steps }, options);
  } finally {
    for (const file of files) await file.close();
  }
}

const openAside = (path: string): Promise<FileHandle> => explaining(path, () => openOwnFile(path));

/** Bytes of room for the journal and for file system overhead. */
const MARGIN = 1 << 20;

/** Before the first byte is overwritten: from then on, the medium does not boot. */
async function requireRoom(
  { now, old, steps }: Begun,
  { aside, isFile }: { readonly aside: string; readonly isFile: boolean },
): Promise<void> {
  const ends = steps.map((step) => (step.kind === 'save' ? step.slot + step.size : 0));
  const grown = isFile ? Math.max(0, now.size - old.size) : 0;
  const needed = maxOf(ends, 0) + grown + MARGIN;
  const free = await readFreeBytes(dirname(aside));
  if (needed <= free) return;
  throw new DiskError(
    'disk.too-small',
    `applying the delta needs ${formatSize(needed)} in "${dirname(aside)}", but only ${formatSize(free)} is free; nothing was changed`,
    { expected: String(needed), found: String(free), hint: 'free some space' },
  );
}

type Made = {
  readonly iso: FileHandle;
  readonly now: NewIso;
  readonly steps: readonly InPlaceStep[];
};

async function finish(
  path: string,
  { iso, now, steps }: Made,
  { aside, signal }: InPlaceOptions,
): Promise<InPlaceReport> {
  const digest = (await iso.stat()).isFile() ? await seal(path, signal) : undefined;
  for (const ending of ['journal', 'saved', 'patched']) {
    await rm(`${aside}.${ending}`, { force: true });
  }
  return { ...(digest && { digest }), ...summarize(steps, now) };
}

/** Verifies the result: the extents of the new ISO, and zeros between its files. */
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

/** A device must be large enough already. */
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
    hint: 'use a larger device',
  });
}

async function openToWrite(path: string): Promise<FileHandle> {
  try {
    return await openInPlace(path);
  } catch (error) {
    throw explainWriteError(error, path);
  }
}

async function seal(path: string, signal: AbortSignal): Promise<Digest> {
  const digest = await digestFile(path, signal);
  await publishChecksum(path, digest);
  return digest;
}

function summarize(
  steps: readonly InPlaceStep[],
  { size, carried, values = [] }: NewIso,
): Omit<InPlaceReport, 'digest'> {
  let [written, saved] = [0, 0];
  for (const step of steps) {
    if (step.kind === 'save') saved += step.size;
    else if (step.kind !== 'ready') written += step.size;
  }
  return { size, carried: sumSizes(carried), written, saved, values };
}
