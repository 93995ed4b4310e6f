import { closeSync, existsSync, fdatasync, linkSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { nameAside, sweepDirectory } from '../../base/disk/aside.ts';
import { explainOutputError } from '../../base/disk/disk-errors.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { createFileSync, fillFileSync, openOwnDirectory } from '../../base/disk/open-file.ts';
import { publishFileSync } from '../../base/disk/publish.ts';
import type { Lease } from '../../base/disk/succession.ts';
import { ConfigError, DiskError, isErrno } from '../../base/errors.ts';

/* Owns the order in which the files of sites reach the disk. */

export type NewFile = { readonly path: string; readonly data: string | Uint8Array };

/** A file of the state directory; a new one never replaces another. */
export type NewStateFile = NewFile & { readonly isNew: boolean };

export type NewFiles = {
  readonly shownAs: string;
  /** Directories of the files, from the outermost; made if they do not exist. All other directories exist. */
  readonly directories: readonly string[];
  /** Files that are on the disk with their names before the first of the others appears. */
  readonly state: readonly NewStateFile[];
  /** Files in the order in which they must appear. */
  readonly files: readonly NewFile[];
};

/** Writes the files of sites with mode 0600; no reader sees a part of a file. */
export type SiteWriter = {
  /**
   * Resolves when all files are in their places, and the data of all is on the disk. The state
   * also has its names there before another file appears; a caller that needs the names of the
   * others to survive a loss of power syncs their directories.
   *
   * @throws ConfigError `config-iso.in-the-way`
   */
  readonly write: (site: NewFiles) => Promise<void>;
};

type Job = NewFiles & {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
};

type Aside = {
  readonly path: string;
  readonly aside: string;
  readonly file: number;
  readonly isNew: boolean;
};

/** A site whose files are all written aside. */
type Opened = {
  readonly job: Job;
  readonly state: readonly Aside[];
  readonly files: readonly Aside[];
  /** The reason why it failed; no further step runs then. */
  failure?: { readonly reason: unknown };
};

/** Sites that are synced together: two thirds of the time for the disk, but four open files for each site. */
export const SITES_AT_ONCE = 32;

/**
 * Creates a writer. Sites that arrive while others are synced form the next group, so that no site waits
 * for a group to fill. A group of which no name has appeared fails if the lease is lost.
 */
export function createSiteWriter({ requireHeld }: Pick<Lease, 'requireHeld'>): SiteWriter {
  const waiting: Job[] = [];
  let isWriting = false;
  const writeAll = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) await writeGroup(waiting.splice(0, SITES_AT_ONCE), requireHeld);
    isWriting = false;
  };
  return {
    write: (site) =>
      new Promise((resolve, reject) => {
        waiting.push({ ...site, resolve, reject });
        if (!isWriting) void writeAll();
      }),
  };
}

/** Never rejects: each site's own promise does. */
async function writeGroup(jobs: readonly Job[], requireHeld: Lease['requireHeld']): Promise<void> {
  const opened: Opened[] = [];
  for (const job of jobs) {
    const site = await openAll(job);
    if (site) opened.push(site);
  }
  await Promise.all(opened.map(syncAll));
  await requireHeld().catch((reason: unknown) => {
    for (const site of opened) site.failure ??= { reason };
  });
  for (const site of opened) {
    attempt(site, () => {
      for (const aside of site.state) showState(aside);
    });
  }
  await syncStates(opened);
  for (const site of opened) finish(site);
}

/** Undefined if it failed, in which case the job's promise is rejected. */
async function openAll(job: Job): Promise<Opened | undefined> {
  const asides: Aside[] = [];
  try {
    for (const directory of job.directories) {
      const isNew = !existsSync(directory);
      if (isNew) await makeDirectory(directory);
      await (await openOwnDirectory(directory)).close();
      if (!isNew) await sweepDirectory(directory, { alone: true });
    }
    for (const file of [...job.state, ...job.files]) await openAside(file, asides);
    const count = job.state.length;
    return { job, state: asides.slice(0, count), files: asides.slice(count) };
  } catch (error) {
    closeAll(asides);
    removeAll(asides);
    job.reject(explainObstacle(error, job));
    return undefined;
  }
}

async function openAside(given: NewFile | NewStateFile, asides: Aside[]): Promise<void> {
  const { path, data } = given;
  const aside = await nameAside(path);
  const file = createFileSync(aside);
  asides.push({ path, aside, file, isNew: 'isNew' in given && given.isNew });
  fillFileSync(file, data);
}

const syncData = promisify(fdatasync);

/** The files stay open until they have their names. */
async function syncAll(site: Opened): Promise<void> {
  const asides = [...site.state, ...site.files];
  const results = await Promise.allSettled(asides.map(({ file }) => syncData(file)));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) site.failure = { reason: failed.reason };
}

/** A link appears whole and replaces nothing; on a disk without links, no other process writes either. */
function showState({ aside, path, file, isNew }: Aside): void {
  if (!isNew) {
    publishFileSync(file, aside, path);
    return;
  }
  try {
    linkSync(aside, path);
    rmSync(aside);
  } catch (error) {
    if (!isErrno(error, 'EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS', 'EMLINK')) throw error;
    if (existsSync(path)) throw error;
    publishFileSync(file, aside, path);
  }
}

/** Names of generations reach the disk before an ISO that uses them appears. */
async function syncStates(opened: readonly Opened[]): Promise<void> {
  const directories = new Set(
    opened.flatMap(({ state }) => state.map(({ path }) => dirname(path))),
  );
  try {
    for (const directory of directories) await syncDirectory(directory);
  } catch (reason) {
    for (const site of opened) site.failure ??= { reason };
  }
}

function finish(site: Opened): void {
  const { job, files } = site;
  attempt(site, () => {
    for (const { file, aside, path } of files) publishFileSync(file, aside, path);
  });
  closeAll([...site.state, ...files]);
  if (!site.failure) {
    job.resolve();
    return;
  }
  removeAll([...site.state, ...files]);
  job.reject(explainObstacle(site.failure.reason, job));
}

function attempt(site: Opened, step: () => void): void {
  if (site.failure) return;
  try {
    step();
  } catch (reason) {
    site.failure = { reason };
  }
}

const closeAll = (asides: readonly Aside[]): void => {
  for (const { file } of asides) closeSync(file);
};

const removeAll = (asides: readonly Aside[]): void => {
  for (const { aside } of asides) rmSync(aside, { force: true });
};

/** A link, or another user's directory, in place of that of a site. */
const OF_ONE_PLACE: readonly string[] = ['file.not-directory', 'file.foreign'];

/** Explains an error; another kind of file with the same name concerns only this site. */
function explainObstacle(error: unknown, { shownAs }: Job): unknown {
  if (error instanceof DiskError && OF_ONE_PLACE.includes(error.code)) {
    const { message, hint } = error;
    return new ConfigError('config-iso.in-the-way', message, {
      cause: error,
      ...(hint !== undefined && { hint }),
    });
  }
  if (!isErrno(error, 'EEXIST', 'ENOTDIR', 'EISDIR')) return explainOutputError(error, shownAs);
  const { dest = shownAs } = error as { readonly dest?: string }; // the place to which a rename leads
  return new ConfigError('config-iso.in-the-way', `another kind of file is in the way of ${dest}`, {
    cause: error,
    hint: 'choose another folder with --out, or move it away',
  });
}
