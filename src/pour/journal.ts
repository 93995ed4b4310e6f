import { randomBytes } from 'node:crypto';
import { rm, type FileHandle } from 'node:fs/promises';
import { digestFromHex, hexOf, type Digest } from '../base/digest.ts';
import { nameAside, sweepAside } from '../base/disk/aside.ts';
import { explaining } from '../base/disk/disk-errors.ts';
import { formatHolder, readSelf } from '../base/disk/holder.ts';
import { createFile, readOwnFile } from '../base/disk/open-file.ts';
import { publishFile, requireNamed } from '../base/disk/publish.ts';
import { keepRenewing } from '../base/disk/succession.ts';
import { formatCanonicalJson } from '../base/text/json.ts';

/** State of one extent: complete and synced, or a written prefix (perhaps not synced). */
export type Progress =
  | { readonly kind: 'done' }
  | { readonly kind: 'prefix'; readonly size: number; readonly digest: Digest };

/**
 * Progress of a pour, one fact per line, in a file next to the partial output.
 *
 *     {"format":1,"layout":"sha256:...","writer":"..."}     first line
 *     d <extent>                             its bytes are verified and were synced before this line
 *     p <extent> <bytes> <hex>               this many bytes were written; SHA-256 of that prefix
 *     c                                      the writer has ended
 *
 * A prefix is a hint: the next run hashes it again and compares, so a line written before its bytes reached
 * the disk costs a download and never a wrong byte. A torn last line is ignored. The writer is a process
 * and a random number; it renews the times of the file as long as it lives. Journals of commit 277b08f have
 * no writer.
 */
export type Journal = {
  /** Progress of earlier runs, by index of the extent. */
  readonly achieved: ReadonlyMap<number, Progress>;
  /** This run, as the first line has it. */
  readonly writer: string;
  notePrefix: (extent: number, size: number, digest: Digest) => void;
  /** Call only after the data was synced. */
  noteDone: (extents: readonly number[]) => Promise<void>;
  /** Requires that no other run has begun to write the output. */
  requireOwn: () => Promise<void>;
  close: () => Promise<void>;
};

type Head = { readonly layout: unknown; readonly writer: unknown };

async function readLines(path: string): Promise<readonly string[] | undefined> {
  const text = (await explaining(path, () => readOwnFile(path)))?.toString('latin1');
  return text?.slice(0, text.lastIndexOf('\n')).split('\n');
}

function parseHead(line = ''): Head | undefined {
  try {
    const { format, layout, writer } = JSON.parse(line) as Record<string, unknown>;
    return format === 1 ? { layout, writer } : undefined;
  } catch {
    return undefined; // not a journal, or a damaged one
  }
}

/** The run that wrote a journal; undefined if no file exists, or an earlier version wrote it. */
export async function readWriter(
  path: string,
): Promise<{ readonly writer: string; readonly hasEnded: boolean } | undefined> {
  const lines = await readLines(path);
  const writer = parseHead(lines?.[0])?.writer;
  return typeof writer === 'string' ? { writer, hasEnded: lines?.at(-1) === 'c' } : undefined;
}

/**
 * Reads the journal of a layout.
 *
 * @returns undefined if the file belongs to another layout or was not written by sealift
 */
export async function readJournal(
  path: string,
  layout: Digest,
): Promise<ReadonlyMap<number, Progress> | undefined> {
  const lines = await readLines(path);
  if (!lines || parseHead(lines[0])?.layout !== layout) return undefined;
  const achieved = new Map<number, Progress>();
  for (const line of lines.slice(1)) {
    const match = /^(?:c|d (\d+)|p (\d+) (\d+) ([0-9a-f]{64}))$/.exec(line);
    if (!match) return undefined;
    const [, done, extent, size, hex = ''] = match;
    if (done !== undefined) achieved.set(Number(done), { kind: 'done' });
    else if (extent !== undefined) {
      const prefix = { size: Number(size), digest: digestFromHex(hex) };
      achieved.set(Number(extent), { kind: 'prefix', ...prefix });
    }
  }
  return achieved;
}

/** Rewrites the journal (aside, then renamed) with what is known, and keeps it open to append. */
export async function startJournal(
  path: string,
  layout: Digest,
  achieved: ReadonlyMap<number, Progress>,
): Promise<Journal> {
  const known = [...achieved].map(([extent, progress]) => lineOf(extent, progress));
  const nonce = randomBytes(8).toString('hex');
  const writer = formatHolder(await readSelf(), { nonce, since: Date.now() }).trim();
  const text = `${formatCanonicalJson({ format: 1, layout, writer })}\n${known.join('')}`;
  const file = await explaining(path, () => replaceFile(path, text));
  return createJournal({ path, file, writer }, achieved);
}

async function replaceFile(path: string, text: string): Promise<FileHandle> {
  await sweepAside(path);
  const aside = await nameAside(path);
  const file = await createFile(aside);
  try {
    await file.writeFile(text);
    await file.datasync();
    await publishFile(file, aside, path);
    return file;
  } catch (error) {
    await file.close();
    await rm(aside, { force: true });
    throw error;
  }
}

type OpenJournal = {
  readonly path: string;
  readonly file: FileHandle;
  readonly writer: string;
};

function createJournal(
  { path, file, writer }: OpenJournal,
  achieved: ReadonlyMap<number, Progress>,
): Journal {
  const stopRenewing = keepRenewing(async () => {
    const time = new Date();
    await file.utimes(time, time);
    return true;
  });
  const requireOwn = (): Promise<void> => explaining(path, () => requireNamed(file, path));
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
    writer,
    requireOwn,
    notePrefix(extent, size, digest) {
      append(lineOf(extent, { kind: 'prefix', size, digest })).catch(() => {
        // A lost hint costs a download after a kill; noteDone reports a journal that cannot be written.
      });
    },
    async noteDone(extents) {
      await requireOwn();
      if (extents.length === 0) return;
      await append(extents.map((extent) => lineOf(extent, { kind: 'done' })).join(''));
      await explaining(path, () => file.datasync());
    },
    async close() {
      stopRenewing();
      await append('c\n').catch(() => undefined); // the next run then waits until it sees that we ended
      await file.close();
    },
  };
}

const lineOf = (extent: number, progress: Progress): string =>
  progress.kind === 'done'
    ? `d ${extent}\n`
    : `p ${extent} ${progress.size} ${hexOf(progress.digest)}\n`;
