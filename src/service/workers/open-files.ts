import { closeSync, fstatSync, statSync } from 'node:fs';
import { openToReadSync } from '../../base/disk/open-file.ts';
import { createFill } from '../../media/serve/file-fill.ts';
import type { IsoIdentity, VirtualBase } from '../../media/serve/virtual.ts';

/* Owns the ISOs that a worker has open. */

type OpenFile = Pick<VirtualBase, 'size' | 'fill' | 'isAtHand'> & {
  /** True while its name has the same file. */
  readonly isCurrent: () => boolean;
};

export type OpenFiles = {
  /** Opens a file, or finds it open; undefined if another file has its name by now. */
  readonly open: (file: IsoIdentity) => OpenFile | undefined;
  /** Closes replaced files that nothing has read for a while. */
  readonly closeIdle: () => void;
};

/** Milliseconds; a client that takes no byte for so long has already lost its connection. */
const IDLE = 300_000;

type Held = { readonly file: OpenFile; readonly descriptor: number; usedAt: number };

export function createOpenFiles(idle = IDLE): OpenFiles {
  const open = new Map<string, Held>();
  return {
    open(wanted) {
      const key = JSON.stringify(wanted);
      const known = open.get(key);
      if (known) return known.file;
      const opened = openSame(wanted);
      if (opened === undefined) return undefined;
      const fill = createFill(opened);
      const held: Held = {
        descriptor: opened,
        usedAt: performance.now(),
        file: {
          size: wanted.size,
          isAtHand: true,
          fill(bytes, offset) {
            held.usedAt = performance.now();
            return fill(bytes, offset);
          },
          isCurrent: () => isSame(wanted),
        },
      };
      open.set(key, held);
      return held.file;
    },
    closeIdle() {
      for (const [key, { file, descriptor, usedAt }] of open) {
        if (performance.now() - usedAt < idle || file.isCurrent()) continue;
        open.delete(key);
        closeSync(descriptor);
      }
    },
  };
}

function openSame(wanted: IsoIdentity): number | undefined {
  let descriptor: number;
  try {
    descriptor = openToReadSync(wanted.path);
  } catch {
    return undefined; // the first process reports the reason
  }
  if (isLike(wanted, fstatSync(descriptor))) return descriptor;
  closeSync(descriptor);
  return undefined;
}

function isSame(wanted: IsoIdentity): boolean {
  try {
    return isLike(wanted, statSync(wanted.path));
  } catch {
    return false;
  }
}

const isLike = (
  { ino, size, mtimeMs }: IsoIdentity,
  found: { readonly ino: number; readonly size: number; readonly mtimeMs: number },
): boolean => found.ino === ino && found.size === size && found.mtimeMs === mtimeMs;
