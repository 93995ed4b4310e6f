import { rm, type FileHandle, lstat, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { explaining, explainWriteError } from '../../base/disk/disk-errors.ts';
import { syncDirectory, writeFileAtomic, writeWhole } from '../../base/disk/files.ts';
import { withLock } from '../../base/disk/lease.ts';
import { openInPlace, readOwnFile, readRegularFile } from '../../base/disk/open-file.ts';
import { DiskError, isErrno, SealiftError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import { openIso, type IsoImage } from '../../iso/read/open.ts';
import { namesBeside } from '../../outputs/file.ts';
import type { OverlayPart } from '../areas.ts';

/** What stands at an offset, and what is to stand there. */
export type Saved = { readonly offset: number; readonly old: Buffer; readonly now: Uint8Array };

/** The text that is beside an ISO while it is changed in place. */
const formatSaved = (saved: readonly Saved[]): string =>
  `${JSON.stringify({
    areas: saved.map(({ offset, old, now }) => ({
      offset,
      old: old.toString('base64'),
      now: Buffer.from(now).toString('base64'),
    })),
  })}\n`;

/** undefined for what `formatSaved` does not write. */
function parseSavedAreas(text: string): readonly Saved[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const areas = isObject(value) ? value['areas'] : undefined;
  if (!Array.isArray(areas)) return undefined;
  const parsed = areas.map((area: unknown): Saved | undefined => {
    const { offset, old, now } = isObject(area) ? area : {};
    if (typeof offset !== 'number' || !Number.isSafeInteger(offset) || offset < 0) return undefined;
    if (typeof old !== 'string' || typeof now !== 'string') return undefined;
    const bytes = { old: Buffer.from(old, 'base64'), now: Buffer.from(now, 'base64') };
    return bytes.old.length === bytes.now.length ? { offset, ...bytes } : undefined;
  });
  return parsed.every((area) => area !== undefined) ? parsed : undefined;
}

/** Whether each byte that was found is the old or the new one: what a write that was broken off leaves. */
const isOldOrNew = (found: Uint8Array, { old, now }: Omit<Saved, 'offset'>): boolean =>
  found.length === old.length && found.every((byte, at) => byte === old[at] || byte === now[at]);

export type WritePlace = {
  /** Path of the ISO: a file or a block device. */
  readonly path: string;
  /** Where the old bytes are while they are overwritten. */
  readonly aside: string;
  /** Path of the lock. */
  readonly lock: string;
};

/** What of an ISO was changed in place. Bytes. */
export type WrittenAreas = {
  /** Bytes that are other than before. */
  readonly changed: number;
  /** Whether an earlier run had been killed, and was undone. */
  readonly undone: boolean;
};

/** What changes an ISO. */
export type PlannedParts = {
  readonly parts: readonly OverlayPart[];
  /** Whether others must not read the ISO that they make. */
  readonly isPrivate: boolean;
};

/**
 * Changes areas of an ISO in place. What they held is saved first, so that an ISO on which this was killed gets it
 * back from the next call. The checksum beside the ISO is removed when it is no longer true.
 *
 * @throws DiskError `customize.leftover` and of writing; what `plan` throws
 */
export const writeAreas = (
  place: WritePlace,
  plan: (iso: IsoImage) => Promise<PlannedParts>,
): Promise<WrittenAreas> =>
  withLock(place.lock, async () => {
    await sweepAside(place.aside);
    const undone = await undo(place);
    const { parts, isPrivate } = await useLocal(place.path, plan);
    const file = await openToWrite(place.path);
    try {
      const saved = await readChanges(file, parts);
      if (isPrivate && (await file.stat()).isFile()) await file.chmod(0o600);
      if (saved.length === 0) return { changed: 0, undone };
      await writeFileAtomic(place.aside, formatSaved(saved));
      await writeSaved(place, file, saved);
      await rm(namesBeside(place.path).checksum, { force: true });
      await finish(place);
      return { changed: saved.reduce((sum, { now }) => sum + now.length, 0), undone };
    } finally {
      await file.close();
    }
  });

/** A device that takes no byte, because it is locked, may be opened to be written: nothing is left of that. */
async function writeSaved(
  place: WritePlace,
  file: FileHandle,
  saved: readonly Saved[],
): Promise<void> {
  const parts = saved.map(({ offset, now }) => ({ offset, bytes: now }));
  try {
    await write(place.path, file, parts);
  } catch (error) {
    if (await isAsBefore(file, saved).catch(() => false)) await finish(place);
    throw error;
  }
}

async function isAsBefore(file: FileHandle, saved: readonly Saved[]): Promise<boolean> {
  const changes = await readChanges(
    file,
    saved.map(({ offset, old }) => ({ offset, bytes: old })),
  );
  return changes.length === 0;
}

/** Undoes what a killed run began; nothing where there is none. Others must not change the ISO meanwhile. */
async function undo(place: WritePlace): Promise<boolean> {
  const text = (await readOwnFile(place.aside))?.toString('utf8');
  if (text === undefined) return false;
  const saved = parseSaved(text, place);
  const file = await openToWrite(place.path);
  try {
    await requireHalfway(place, file, saved);
    await write(
      place.path,
      file,
      saved.map(({ offset, old }) => ({ offset, bytes: old })),
    );
  } finally {
    await file.close();
  }
  await finish(place);
  return true;
}

async function useLocal<Result>(
  path: string,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> {
  const image = await openRandomAccess(path);
  try {
    return await work(await openIso(image));
  } finally {
    await image.close();
  }
}

async function readChanges(
  file: FileHandle,
  parts: readonly OverlayPart[],
): Promise<readonly Saved[]> {
  const changes: Saved[] = [];
  for (const { offset, bytes } of parts) {
    const old = await readAt(file, offset, bytes.length);
    if (!old.equals(bytes)) changes.push({ offset, old, now: bytes });
  }
  return changes;
}

async function readAt(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  for (let done = 0; done < size;) {
    const { bytesRead } = await file.read(bytes, done, size - done, offset + done);
    if (bytesRead === 0) return bytes.subarray(0, done);
    done += bytesRead;
  }
  return bytes;
}

async function write(path: string, file: FileHandle, parts: readonly OverlayPart[]): Promise<void> {
  await explaining(path, async () => {
    for (const { offset, bytes } of parts) await writeWhole(file, bytes, offset);
    await file.sync();
  });
}

async function finish({ aside }: WritePlace): Promise<void> {
  await rm(aside, { force: true });
  await syncDirectory(dirname(aside));
}

/** @throws DiskError `customize.leftover` */
function parseSaved(text: string, { path, aside }: WritePlace): readonly Saved[] {
  const areas = parseSavedAreas(text);
  if (areas) return areas;
  throw new DiskError(
    'customize.leftover',
    `${aside} is damaged, and ${path} may be half written`,
    {
      hint: `put ${path} back from where it came, and remove ${aside}`,
    },
  );
}

/** Each byte is the old or the new one, or the ISO is another by now. */
async function requireHalfway(
  { path, aside }: WritePlace,
  file: FileHandle,
  saved: readonly Saved[],
): Promise<void> {
  for (const { offset, old, now } of saved) {
    const found = await readAt(file, offset, old.length);
    if (isOldOrNew(found, { old, now })) continue;
    throw new DiskError('customize.leftover', `${aside} is of another ISO than ${path}`, {
      expected: 'the ISO that was being customised when a run was killed',
      found: `other bytes at ${offset}`,
      hint: `remove ${aside}, or put the ISO back that it belongs to`,
    });
  }
}

async function openToWrite(path: string): Promise<FileHandle> {
  try {
    return await openInPlace(path);
  } catch (error) {
    throw explainWriteError(error, path);
  }
}

/** Where the old bytes of an ISO are while it is changed in place. */
export const asideOf = (stem: string): string => `${stem}.customize`;

/**
 * Refuses an ISO that a killed run has left customised in part, or in whole but not for good: the next run in place
 * undoes it. One that it had not begun to write is as it was.
 *
 * @param stem of a device, which has nothing beside it: its name in the work directory
 * @throws DiskError `customize.half-way`
 */
export async function refuseHalfCustomised(image: RandomAccess, stem?: string): Promise<void> {
  const text = await readAside(image.path, stem);
  const saved = text === undefined ? undefined : parseSavedAreas(text);
  if (!saved) return; // none, or a damaged one, which the next run in place names
  let isBegun = false;
  for (const { offset, old, now } of saved) {
    if (offset + old.length > image.size) return;
    const found = await image.read(offset, old.length);
    if (!isOldOrNew(found, { old, now })) return; // of another ISO
    isBegun ||= !found.equals(old);
  }
  if (!isBegun) return;
  throw new DiskError(
    'customize.half-way',
    `${image.path} is customised in part: a run was killed`,
    {
      hint: `run "sealift customize ${image.path} --in-place" again with its values, or with --reset: it undoes that first`,
    },
  );
}

/** Of the ISO's own user: anybody can write beside an ISO in a folder that is open to all. */
async function readAside(path: string, stem?: string): Promise<string | undefined> {
  try {
    const real = await realpath(path);
    const aside = asideOf(stem ?? real);
    const isForeign = stem === undefined && (await lstat(aside)).uid !== (await lstat(real)).uid;
    return isForeign ? undefined : (await readRegularFile(aside))?.toString('utf8');
  } catch (error) {
    const isUnreadable = isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENAMETOOLONG');
    if (isUnreadable || error instanceof SealiftError) return undefined;
    throw error;
  }
}
