import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { nameAside, sweepAside } from '../../base/disk/aside.ts';
import { cloneFile } from '../../base/disk/copy.ts';
import { makeDirectory, syncDirectory, writeWhole } from '../../base/disk/files.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { explainWriteError } from '../../base/disk/disk-errors.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import { namesBeside } from '../../outputs/file.ts';
import { overlayAccess, type OverlayPart } from './overlay.ts';

export type CopyOptions = {
  readonly output: string;
  /** Whether the image is a file of this machine, whose blocks a copy may share. */
  readonly isLocal: boolean;
  /** Permission bits. */
  readonly mode: number;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

const PIECE = 4 * 2 ** 20;

/**
 * Writes a copy of an image with other bytes in some places. It gets its name when all is there. Where the file system
 * can, the copy shares the blocks of the original.
 *
 * @throws DiskError of writing; the signal's reason
 */
export async function copyWithParts(
  image: RandomAccess,
  parts: readonly OverlayPart[],
  options: CopyOptions,
): Promise<{ readonly cloned: boolean }> {
  const { output } = options;
  await makeDirectory(dirname(output));
  await sweepAside(output);
  const aside = await nameAside(output);
  try {
    const cloned = options.isLocal && (await cloneFile(image.path, aside));
    await fill(aside, { image, parts, cloned, ...options });
    await rm(namesBeside(output).checksum, { force: true });
    await rm(namesBeside(output).report, { force: true });
    await rename(aside, output);
    await syncDirectory(dirname(output));
    return { cloned };
  } catch (error) {
    await rm(aside, { force: true });
    throw explainWriteError(error, output);
  }
}

type Filling = CopyOptions & {
  readonly image: RandomAccess;
  readonly parts: readonly OverlayPart[];
  readonly cloned: boolean;
};

async function fill(path: string, filling: Filling): Promise<void> {
  const { image, parts, cloned, mode, signal, onProgress } = filling;
  const file = await openOwnFile(path, { mode });
  try {
    await file.chmod(mode);
    await file.truncate(image.size);
    if (cloned) for (const { offset, bytes } of parts) await writeWhole(file, bytes, offset);
    const { read, size } = overlayAccess(image, parts);
    for (let at = cloned ? size : 0; at < size; at += PIECE) {
      signal.throwIfAborted();
      const bytes = await read(at, Math.min(PIECE, size - at));
      // What is left out of a new file reads as zeros.
      if (bytes.some((byte) => byte !== 0)) await writeWhole(file, bytes, at);
      onProgress(at + bytes.length, size);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}
