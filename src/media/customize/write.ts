import { rm, type FileHandle, lstat, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { explaining, explainWriteError } from '../../base/disk/disk-errors.ts';
import { syncDirectory, writeFileAtomic, writeWhole } from '../../base/disk/files.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { openInPlace, readOwnFile, readRegularFile } from '../../base/disk/open-file.ts';
import { DiskError, isErrno, SealiftError } from '../../base/errors.ts';
import { formatCommand } from '../../base/text/shell.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import type { IsoImage } from '../../iso/index.ts';
import { namesBeside } from '../../outputs/place.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { COUNT, list, record, refine, TEXT, transform } from '../../shape/shape.ts';
import type { OverlayPart } from '../areas.ts';
import { openGivenIso } from '../delta/describe.ts';

/* Changes of an ISO in place, which the next run undoes if they are interrupted. */

export type Saved = { readonly offset: number; readonly old: Buffer; readonly now: Uint8Array };

/** Formats the text that is stored next to an ISO while it is changed in place. */
const formatSaved = (saved: readonly Saved[]): string =>
  `${JSON.stringify({
    areas: saved.map(({ offset, old, now }) => ({
      offset,
      old: old.toString('base64'),
      now: Buffer.from(now).toString('base64'),
    })),
  })}\n`;

const BASE64 = transform(TEXT, (text) => Buffer.from(text, 'base64'));

/** The text that `formatSaved` writes. */
const SAVED = record({
  areas: list(
    refine(record({ offset: COUNT, old: BASE64, now: BASE64 }), ({ old, now }) =>
      old.length === now.length ? undefined : 'has two sizes',
    ),
  ),
});

/** True if each byte has its old or its new value, as an interrupted write leaves it. */
const isOldOrNew = (found: Uint8Array, { old, now }: Omit<Saved, 'offset'>): boolean =>
  found.length === old.length && found.every((byte, at) => byte === old[at] || byte === now[at]);

export type WritePlace = LeaseOptions & {
  readonly path: string;
  /** Path of the old bytes while they are overwritten. */
  readonly aside: string;
  readonly lock: string;
};

/** Result of a change in place. Sizes are bytes. */
export type WrittenAreas = {
  /** Bytes that changed. */
  readonly changed: number;
  /** True if an earlier run was killed and has been undone. */
  readonly undone: boolean;
};

export type PlannedParts = {
  readonly parts: readonly OverlayPart[];
  /** True if the resulting ISO must not be readable by others. */
  readonly isPrivate: boolean;
};

/**
 * The old contents are saved first; if this run is killed, the next call restores them. The checksum next to
 * the ISO is removed once it no longer matches.
 *
 * @throws DiskError `customize.leftover` and of writing; the errors of `plan`
 */
export const writeAreas = (
  place: WritePlace,
  plan: (iso: IsoImage) => Promise<PlannedParts>,
): Promise<WrittenAreas> =>
  withLease(place.lock, place, async ({ requireHeld }) => {
    await sweepAside(place.aside);
    const undone = await undo(place);
    const { parts, isPrivate } = await useLocal(place.path, plan);
    const file = await openToWrite(place.path);
    try {
      const saved = await readChanges(file, parts);
      if (isPrivate && (await file.stat()).isFile()) await file.chmod(0o600);
      if (saved.length === 0) return { changed: 0, undone };
      await requireHeld(); // planning may have taken long
      await writeFileAtomic(place.aside, formatSaved(saved));
      await writeSaved(place, file, saved);
      await rm(namesBeside(place.path).checksum, { force: true });
      await finish(place);
      return { changed: saved.reduce((sum, { now }) => sum + now.length, 0), undone };
    } finally {
      await file.close();
    }
  });

/** A locked device can be opened and still refuse every byte; nothing is left behind then. */
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

/** Undoes the change of a killed run; true if there was one. The caller holds the lock of the ISO. */
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
    return await work(await openGivenIso(image));
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

function parseSaved(text: string, { path, aside }: WritePlace): readonly Saved[] {
  const areas = ifFaultless(decodeJson(SAVED, text))?.areas;
  if (areas) return areas;
  throw new DiskError(
    'customize.leftover',
    `${aside} is damaged, and ${path} may be half written`,
    {
      hint: `restore ${path} from its source, and remove ${aside}`,
    },
  );
}

/** Requires that each byte has its old or its new value; otherwise the ISO has been replaced. */
async function requireHalfway(
  { path, aside }: WritePlace,
  file: FileHandle,
  saved: readonly Saved[],
): Promise<void> {
  for (const { offset, old, now } of saved) {
    const found = await readAt(file, offset, old.length);
    if (isOldOrNew(found, { old, now })) continue;
    throw new DiskError('customize.leftover', `${aside} does not belong to ${path}`, {
      expected: 'the ISO that a killed run was customising',
      found: `other bytes at offset ${offset}`,
      hint: `remove ${aside}, or put back the ISO that it belongs to`,
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

/** Path of the old bytes of an ISO while it is changed in place. */
export const asideOf = (stem: string): string => `${stem}.customize`;

/**
 * Refuses an ISO that a killed run has left changed: the next run in place undoes it. An ISO that the run had
 * not begun to write is accepted.
 *
 * @param stem for a device, which has no file next to it: its name in the work directory
 */
export async function refuseHalfCustomised(image: RandomAccess, stem?: string): Promise<void> {
  const text = await readAside(image.path, stem);
  const saved = text === undefined ? undefined : ifFaultless(decodeJson(SAVED, text))?.areas;
  if (!saved) return; // absent or damaged; the next run in place reports damage
  let isBegun = false;
  for (const { offset, old, now } of saved) {
    if (offset + old.length > image.size) return;
    const found = await image.read(offset, old.length);
    if (!isOldOrNew(found, { old, now })) return; // belongs to another ISO
    isBegun ||= !found.equals(old);
  }
  if (!isBegun) return;
  throw new DiskError(
    'customize.half-way',
    `${image.path} is only partly customised: a run was killed`,
    {
      hint: `run ${formatCommand('customize', { path: image.path }, '--in-place', '--reset')}, or the same with its values again: either undoes the partial change first`,
    },
  );
}

/** Only if the ISO's own user owns it: any user can write to a world-writable folder. */
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
