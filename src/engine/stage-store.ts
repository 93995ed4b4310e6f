import { link, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nameAside } from '../base/disk/aside.ts';
import { hexOf, type Digest } from '../base/digest.ts';
import { isErrno } from '../base/errors.ts';
import { formatReadableJson, type Json } from '../base/text/json.ts';
import { makeDirectory, syncDirectory, writeFileAtomic } from '../base/disk/files.ts';
import { readOwnFile, writeNewFile } from '../base/disk/open-file.ts';

/** A stage, and what it was made from. */
export type StageEntry = { readonly stage: string; readonly fingerprint: Digest };

type Known = { readonly result: Json };

/**
 * What stages made before.
 *
 * Of an ordinary stage the last result is stored, one file a stage. It is removed before its stage starts
 * and written after it ended, so a build killed in between finds no entry and runs the stage again. There
 * is not a state that says "half done".
 *
 * What was drawn at random is stored permanently, one file for each fingerprint (0600): it cannot be made again.
 */
export type StageStore = {
  /** The last result, when it was made from inputs with this fingerprint. */
  read: (entry: StageEntry) => Promise<Known | undefined>;
  /** Whether there is any result, of whatever inputs. */
  has: (stage: string) => Promise<boolean>;
  remove: (stage: string) => Promise<void>;
  write: (entry: StageEntry, result: Json) => Promise<void>;
  readDrawn: (entry: StageEntry) => Promise<Known | undefined>;
  /** The first to write wins. @returns what is stored */
  writeDrawn: (entry: StageEntry, result: Json) => Promise<Json>;
};

/**
 * @param root path of the work directory, which is another one in each run: paths below it are stored
 * relative to it
 */
export function createStageStore(directory: string, root: string): StageStore {
  const format = (value: Json): string =>
    formatReadableJson(value).replaceAll(`"${root}/`, `"${ROOT}/`);
  const readEntry = async (
    path: string,
    { fingerprint }: StageEntry,
  ): Promise<Known | undefined> => {
    const text = (await readOwnFile(path))?.toString('utf8').replaceAll(`"${ROOT}/`, `"${root}/`);
    const entry = text === undefined ? undefined : parseEntry(text);
    return entry?.fingerprint === fingerprint ? { result: entry.result } : undefined;
  };

  const nameOf = (stage: string): string => stage.replaceAll(' ', '-');
  const pathOf = (stage: string): string => join(directory, `${nameOf(stage)}.json`);
  const drawnPathOf = ({ stage, fingerprint }: StageEntry): string =>
    join(directory, 'drawn', `${nameOf(stage)}-${hexOf(fingerprint).slice(0, 32)}.json`);
  return {
    read: (entry) => readEntry(pathOf(entry.stage), entry),
    has: async (stage) => (await readOwnFile(pathOf(stage))) !== undefined,
    remove: (stage) => rm(pathOf(stage), { force: true }),
    write: ({ stage, fingerprint }, result) =>
      writeFileAtomic(pathOf(stage), format({ fingerprint, result })),
    readDrawn: (entry) => readEntry(drawnPathOf(entry), entry),
    async writeDrawn(entry, result) {
      const path = drawnPathOf(entry);
      const text = format({ fingerprint: entry.fingerprint, result });
      const isFirst = await writeOnce(path, text);
      const stored = isFirst ? { result } : await readEntry(path, entry);
      if (stored) return stored.result;
      // What is there is damaged: nothing can be made of it.
      await writeFileAtomic(path, text);
      return result;
    },
  };
}

/** Stands for the work directory in what is stored. */
const ROOT = 'work-directory:';

/** @returns whether nothing was there before */
async function writeOnce(path: string, text: string): Promise<boolean> {
  await makeDirectory(dirname(path), 0o700);
  const aside = await nameAside(path);
  await writeNewFile(aside, text);
  try {
    await link(aside, path);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    if (!isErrno(error, 'EPERM', 'ENOTSUP', 'ENOSYS')) throw error;
    await writeNewFile(path, text); // a file system without hard links
  } finally {
    await rm(aside, { force: true });
  }
  await syncDirectory(dirname(path));
  return true;
}

/** undefined for a file that somebody damaged: the stage just runs again. */
export function parseEntry(text: string): { fingerprint: string; result: Json } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('fingerprint' in value) || typeof value.fingerprint !== 'string') return undefined;
  return 'result' in value
    ? { fingerprint: value.fingerprint, result: value.result as Json }
    : undefined;
}
