import { rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { syncDirectory, writeFileAtomic, writeWhole } from '../../base/disk/files.ts';
import { withLock } from '../../base/disk/lock.ts';
import { openInPlace, readOwnFile } from '../../base/disk/open-file.ts';
import { explaining, explainWriteError } from '../../base/disk/write-errors.ts';
import { ConfigError, DiskError, isErrno } from '../../base/errors.ts';
import { isObject } from '../../base/members.ts';
import { openIso, type IsoImage } from '../../iso/open-iso.ts';
import { openLocal } from '../source/open-source.ts';
import { namesBeside } from '../output/claim-iso.ts';
import type { OverlayPart } from './overlay.ts';

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

/**
 * Changes areas of an ISO in place. What they held is saved first, so that an ISO on which this was killed gets it
 * back from the next call. The checksum beside the ISO is removed when it is no longer true.
 *
 * @param isPrivate whether others must not read the ISO afterwards
 * @throws DiskError `customize.leftover` and of writing; what `plan` throws
 */
export const writeAreas = (
  place: WritePlace,
  plan: (iso: IsoImage) => Promise<readonly OverlayPart[]>,
  isPrivate: boolean,
): Promise<WrittenAreas> =>
  withLock(place.lock, async () => {
    await sweepAside(place.aside);
    const undone = await undo(place);
    const parts = await useLocal(place.path, plan);
    const file = await openToWrite(place.path);
    try {
      const saved = await readChanges(file, parts);
      if (saved.length === 0) return { changed: 0, undone };
      await writeFileAtomic(place.aside, formatSaved(saved));
      await rm(namesBeside(place.path).checksum, { force: true });
      if (isPrivate && (await file.stat()).isFile()) await file.chmod(0o600);
      await write(
        place.path,
        file,
        saved.map(({ offset, now }) => ({ offset, bytes: now })),
      );
      await finish(place);
      return { changed: saved.reduce((sum, { now }) => sum + now.length, 0), undone };
    } finally {
      await file.close();
    }
  });

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
  const image = await openLocal(path);
  try {
    return await work(await openIso(image));
  } finally {
    await image.close();
  }
}

/** What stands at an offset, and what is to stand there. */
type Saved = { readonly offset: number; readonly old: Buffer; readonly now: Uint8Array };

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

const formatSaved = (saved: readonly Saved[]): string =>
  `${JSON.stringify({
    areas: saved.map(({ offset, old, now }) => ({
      offset,
      old: old.toString('base64'),
      now: Buffer.from(now).toString('base64'),
    })),
  })}\n`;

/** @throws DiskError `customize.leftover` */
function parseSaved(text: string, { path, aside }: WritePlace): readonly Saved[] {
  const areas = parseAreas(text);
  if (areas) return areas;
  throw new DiskError(
    'customize.leftover',
    `${aside} is damaged, and ${path} may be half written`,
    {
      hint: `put ${path} back from where it came, and remove ${aside}`,
    },
  );
}

/** undefined for what `formatSaved` does not write. */
function parseAreas(text: string): readonly Saved[] | undefined {
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

/** Each byte is the old or the new one, or the ISO is another by now. */
async function requireHalfway(
  { path, aside }: WritePlace,
  file: FileHandle,
  saved: readonly Saved[],
): Promise<void> {
  for (const { offset, old, now } of saved) {
    const found = await readAt(file, offset, old.length);
    const isOurs =
      found.length === old.length &&
      found.every((byte, at) => byte === old[at] || byte === now[at]);
    if (isOurs) continue;
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
    if (!isErrno(error, 'ENOENT')) throw explainWriteError(error, path);
    throw new ConfigError('iso.unreadable', `${path} cannot be read: there is no such file`);
  }
}
