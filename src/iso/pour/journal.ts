import { rename, rm, type FileHandle } from 'node:fs/promises';
import { nameAside, sweepAside } from '../../base/disk/aside.ts';
import { digestFromHex, hexOf, type Digest } from '../../base/digest.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { createFile, readOwnFile } from '../../base/disk/open-file.ts';
import { explaining } from '../../base/disk/disk-errors.ts';

/** What is known of one extent: whole and synced, or a prefix that was written (perhaps not synced). */
export type Progress =
  | { readonly kind: 'done' }
  | { readonly kind: 'prefix'; readonly size: number; readonly digest: Digest };

/**
 * What a pour has achieved, one line a fact, beside the partial output.
 *
 *     {"format":1,"layout":"sha256:..."}     first line
 *     d <extent>                             its bytes are verified and were synced before this line
 *     p <extent> <bytes> <hex>               so many bytes were written; SHA-256 of that prefix
 *
 * A prefix is a hint: whoever continues hashes it again and compares, so a line that ran ahead of the
 * disk costs a download and never a wrong byte. A torn last line is ignored.
 */
export type Journal = {
  /** What earlier runs achieved, by index of the extent. */
  readonly achieved: ReadonlyMap<number, Progress>;
  notePrefix: (extent: number, size: number, digest: Digest) => void;
  /** Call only after the data was synced. */
  noteDone: (extents: readonly number[]) => Promise<void>;
  close: () => Promise<void>;
};

/**
 * Opens the journal of a layout, continuing where the file is one of the same layout.
 *
 * @returns undefined where the file belongs to another layout or was not written by sealift
 */
export async function readJournal(
  path: string,
  layout: Digest,
): Promise<ReadonlyMap<number, Progress> | undefined> {
  const text = (await explaining(path, () => readOwnFile(path)))?.toString('latin1');
  const lines = text?.slice(0, text.lastIndexOf('\n')).split('\n');
  if (lines?.[0] !== headerOf(layout)) return undefined;
  const achieved = new Map<number, Progress>();
  for (const line of lines.slice(1)) {
    const match = /^(?:d (\d+)|p (\d+) (\d+) ([0-9a-f]{64}))$/.exec(line);
    if (!match) return undefined;
    const [, done, extent, size, hex] = match;
    if (done !== undefined) achieved.set(Number(done), { kind: 'done' });
    else {
      const prefix = {
        kind: 'prefix',
        size: Number(size),
        digest: digestFromHex(hex ?? ''),
      } as const;
      achieved.set(Number(extent), prefix);
    }
  }
  return achieved;
}

/**
 * Rewrites the journal (aside, then renamed) with what is known, and keeps it open to append.
 *
 * @throws DiskError `output.full`, `output.unwritable`, `output.broken`, as do its members
 */
export async function startJournal(
  path: string,
  layout: Digest,
  achieved: ReadonlyMap<number, Progress>,
): Promise<Journal> {
  const known = [...achieved].map(([extent, progress]) => lineOf(extent, progress));
  const text = `${headerOf(layout)}\n${known.join('')}`;
  const file = await explaining(path, () => replaceFile(path, text));
  return createJournal(path, file, achieved);
}

async function replaceFile(path: string, text: string): Promise<FileHandle> {
  await sweepAside(path);
  const aside = await nameAside(path);
  const file = await createFile(aside);
  try {
    await file.writeFile(text);
    await file.datasync();
    await rename(aside, path);
    return file;
  } catch (error) {
    await file.close();
    await rm(aside, { force: true });
    throw error;
  }
}

function createJournal(
  path: string,
  file: FileHandle,
  achieved: ReadonlyMap<number, Progress>,
): Journal {
  // Lines must not interleave: each write waits for the one before, and takes all that came meanwhile.
  let lines = '';
  let last: Promise<unknown> = Promise.resolve();
  const write = async (): Promise<void> => {
    const text = lines;
    lines = '';
    if (text !== '') await explaining(path, () => file.appendFile(text));
  };
  const append = (text: string): Promise<unknown> => {
    lines += text;
    last = last.then(write);
    return last;
  };
  return {
    achieved,
    notePrefix(extent, size, digest) {
      append(lineOf(extent, { kind: 'prefix', size, digest })).catch(() => {
        // A lost hint costs a download after a kill; noteDone reports a journal that cannot be written.
      });
    },
    async noteDone(extents) {
      if (extents.length === 0) return;
      await append(extents.map((extent) => lineOf(extent, { kind: 'done' })).join(''));
      await explaining(path, () => file.datasync());
    },
    async close() {
      await last.catch(() => undefined);
      await file.close();
    },
  };
}

const headerOf = (layout: Digest): string => formatCanonicalJson({ format: 1, layout });

const lineOf = (extent: number, progress: Progress): string =>
  progress.kind === 'done'
    ? `d ${extent}\n`
    : `p ${extent} ${progress.size} ${hexOf(progress.digest)}\n`;
