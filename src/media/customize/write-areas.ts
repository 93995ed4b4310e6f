import { rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { syncDirectory, writeFileAtomic, writeWhole } from '../../base/disk/files.ts';
import { withLock } from '../../base/disk/lease.ts';
import { openInPlace, readOwnFile } from '../../base/disk/open-file.ts';
import { explaining, explainWriteError } from '../../base/disk/disk-errors.ts';
import { DiskError } from '../../base/errors.ts';
import { openIso, type IsoImage } from '../../iso/read/open.ts';
import { openRandomAccess } from '../../base/random-access.ts';
import { namesBeside } from '../../outputs/file.ts';
import type { OverlayPart } from './overlay.ts';
import { formatSaved, isOldOrNew, parseSavedAreas, type Saved } from './saved-areas.ts';

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
