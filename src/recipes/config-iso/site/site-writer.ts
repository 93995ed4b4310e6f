import {
  closeSync,
  fdatasync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { nameAside, sweepDirectory } from '../../../base/aside.ts';
import { ConfigError } from '../../../base/errors.ts';
import { isErrno } from '../../../base/errno.ts';
import { explainOutputError } from '../../../iso/pour/output-file.ts';

export type NewFile = { readonly path: string; readonly data: string | Uint8Array };

/** What is written of one site. */
export type NewFiles = {
  /** What it is called in errors. */
  readonly shownAs: string;
  /** Made if it is not there; the others are there. */
  readonly directory: string;
  /** In the order in which they are to appear. */
  readonly files: readonly NewFile[];
  /** Tells what the files are of: it appears last. */
  readonly record: NewFile;
};

/** Writes the files of sites with mode 0600; nobody sees a part of one. */
export type SiteWriter = {
  /**
   * Resolves when all are in their places, and the data of all but the record is on the disk; who
   * needs the names to outlive a loss of power syncs their directories. The record is checked before
   * it is used.
   *
   * @throws ConfigError `config-iso.in-the-way`; DiskError
   */
  readonly write: (site: NewFiles) => Promise<void>;
};

/**
 * So many sites are synced together: the disk then takes two thirds of the time. Each has four open
 * files meanwhile.
 */
export const SITES_AT_ONCE = 32;

type Job = NewFiles & {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
};

/** A file that is written aside. */
type Aside = { readonly path: string; readonly aside: string; readonly file: number };

const syncData = promisify(fdatasync);

const MODE = 0o600;

/** Those that come while others are synced make up the next group: nobody waits for a group to fill. */
export function createSiteWriter(): SiteWriter {
  const waiting: Job[] = [];
  let isWriting = false;
  const writeAll = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) await writeGroup(waiting.splice(0, SITES_AT_ONCE));
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

/** Never rejects: of each site it is told how it went. */
async function writeGroup(jobs: readonly Job[]): Promise<void> {
  const opened: (readonly [Job, readonly Aside[]])[] = [];
  for (const job of jobs) {
    const asides = await openAll(job);
    if (asides) opened.push([job, asides]);
  }
  await Promise.all(opened.map(([job, asides]) => finish(job, asides)));
}

/** Undefined when it did not go well, and the job was told. */
async function openAll(job: Job): Promise<readonly Aside[] | undefined> {
  const asides: Aside[] = [];
  try {
    const isNew = mkdirSync(job.directory, { recursive: true }) !== undefined;
    if (!isNew) await sweepDirectory(job.directory, { alone: true });
    for (const file of job.files) await openAside(file, asides);
    return asides;
  } catch (error) {
    closeAll(asides);
    removeAll(asides);
    job.reject(explainObstacle(error, job));
    return undefined;
  }
}

async function openAside({ path, data }: NewFile, asides: Aside[]): Promise<void> {
  const aside = await nameAside(path);
  const file = openSync(aside, 'wx', MODE);
  asides.push({ path, aside, file });
  writeFileSync(file, data);
}

async function finish(job: Job, asides: readonly Aside[]): Promise<void> {
  try {
    await syncAndClose(asides);
    for (const { aside, path } of asides) renameSync(aside, path);
    await writeRecord(job.record);
    job.resolve();
  } catch (error) {
    removeAll(asides);
    job.reject(explainObstacle(error, job));
  }
}

/** None is closed while another is synced. */
async function syncAndClose(asides: readonly Aside[]): Promise<void> {
  const results = await Promise.allSettled(asides.map(({ file }) => syncData(file)));
  closeAll(asides);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function writeRecord({ path, data }: NewFile): Promise<void> {
  const aside = await nameAside(path);
  try {
    writeFileSync(aside, data, { flag: 'wx', mode: MODE });
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

const closeAll = (asides: readonly Aside[]): void => {
  for (const { file } of asides) closeSync(file);
};

const removeAll = (asides: readonly Aside[]): void => {
  for (const { aside } of asides) rmSync(aside, { force: true });
};

/** Something else of the same name concerns this site only. */
function explainObstacle(error: unknown, { shownAs }: Job): unknown {
  if (!isErrno(error, 'EEXIST', 'ENOTDIR', 'EISDIR')) return explainOutputError(error, shownAs);
  const { dest = shownAs } = error as { readonly dest?: string }; // where a rename leads
  return new ConfigError('config-iso.in-the-way', `something else is in the way of ${dest}`, {
    cause: error,
    hint: 'choose another folder with --out, or move it away',
  });
}
