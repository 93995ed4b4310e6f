import { lstat, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hexOf, type Digest, digestOf, isDigest } from '../base/digest.ts';
import { sweepAside } from '../base/disk/aside.ts';
import type { BlockDevice } from '../base/disk/block-device.ts';
import { checkOutputPlace, claimOutput, findRealPath } from '../base/disk/claim-output.ts';
import { explainWriteError } from '../base/disk/disk-errors.ts';
import { isSameStamp, parseStamp, readStamp } from '../base/disk/file-digests.ts';
import {
  sizeOf,
  syncDirectory,
  writeFileAtomic,
  readFileIfPresent,
  hasFile,
} from '../base/disk/files.ts';
import { isLeaseText } from '../base/disk/holder.ts';
import { isOwnUser, readRegularFile } from '../base/disk/open-file.ts';
import { prepareFile, type PreparedFile } from '../base/disk/publish.ts';
import { isErrno } from '../base/errors.ts';
import { isObject, withoutUndefined } from '../base/lists.ts';
import { openRandomAccess, type RandomAccess } from '../base/random-access.ts';
import { formatReadableJson, type Json } from '../base/text/json.ts';
import { publishPour } from '../pour/index.ts';
import { claimDevice } from './device.ts';

/*
 * An ISO as a file: its place is claimed before the build, the file gets its name with checksum and
 * report, and a later build recognizes it as finished.
 */

/** Files of this machine that a build may reuse. Absolute paths. */
export type IsoReuse = {
  /** Seeds that the user named: an ISO of ours, the root of a registry, an OCI layout. */
  readonly seeds: readonly string[];
  /** The ISO that is replaced: no error if it does not exist or is not a readable ISO of ours. */
  readonly replaced: string;
  /** A folder of blobs that builds share; absent: none. */
  readonly cache?: string;
  readonly takesBlobs: boolean;
  readonly keepsPlaces: boolean;
  /** True if the record that an earlier build made of a file is trusted while its inode is unchanged. */
  readonly trustsRecords: boolean;
};

type SealNames = { readonly checksum: string; readonly report: string };

/** The files that describe an ISO, and their names until the ISO has its name. */
export const namesBeside = (output: string): SealNames & { readonly aside: SealNames } => ({
  checksum: `${output}.sha256`,
  report: `${output}.report.json`,
  aside: { checksum: `${output}.partial.sha256`, report: `${output}.partial.report.json` },
});

/** The place of an ISO that will be written, and whether an existing file may be replaced. */
export type IsoPlace = {
  /** Absolute path of the ISO. */
  readonly output: string;
  readonly workDir: string;
  /** Every file and directory that the build reads; absolute paths. */
  readonly inputs: readonly string[];
  /** True if a foreign file is replaced. */
  readonly force: boolean;
  /** True if the digest of the whole ISO is computed even if an earlier ISO is cloned. */
  readonly checksum?: boolean;
  /** Absent: nothing is reused. */
  readonly reuses?: IsoReuse;
  /**
   * The block device that takes the bytes; `output` then names the records about it in the work
   * directory.
   */
  readonly device?: BlockDevice;
};

/** True for the contents of a medium of ours, or of a delta. */
export type Recognize = (access: RandomAccess) => Promise<boolean>;

/** The place, taken from a larger request. */
export const placeOf = ({ output, workDir, inputs, force, device }: IsoPlace): IsoPlace => ({
  output,
  workDir,
  inputs,
  force,
  ...withoutUndefined({ device }),
});

/** The place of a written ISO, for its report. */
export type DescribedOutput = {
  /** Path of the ISO, or the block device that it was written to. */
  readonly output: string;
  readonly device?: {
    readonly serial: string;
    /** Bytes. */
    readonly size: number;
    /** Path of the report, which is next to the ISO. */
    readonly report: string;
  };
};

export const describeOutput = ({ output, device }: IsoPlace): DescribedOutput => {
  if (!device) return { output };
  const { path, serial, size } = device;
  return { output: path, device: { serial, size, report: namesBeside(output).report } };
};

/**
 * Decides, before anything is fetched, whether an ISO and the files next to it may be written. Each may be
 * missing, an empty regular file of this user, or made by a build; anything else needs `force`.
 *
 * | file                     | made by a build when                                                  |
 * | ------------------------ | --------------------------------------------------------------------- |
 * | `X`                      | `X.report.json` is for a file of its size, or it is recognized        |
 * | `X.report.json`          | it names a product                                                    |
 * | `X.sha256`               | it is one line of sha256sum(1) for `X`                                |
 * | `X.partial`              | it is this user's, and `X.partial.journal` is one                     |
 * | `X.partial.journal`      | it is this user's, and its first line names a layout                  |
 * | `X.lock`                 | it is the text of a lease: see src/base/disk/holder.ts                |
 *
 * @throws the errors of `claimOutput` and `claimDevice`
 */
export async function claimIso({ force, ...place }: IsoPlace, recognize: Recognize): Promise<void> {
  if (place.device) return claimDevice(place.device, { ...place, force });
  const workDirs = await listWorkDirs(place);
  const { inputs } = place;
  for (const { path, expected, isOurs } of listOutputs(place.output)) {
    const isReplaceable = (): Promise<boolean> => isOurs(path, recognize);
    await claimOutput({ path, inputs, workDirs }, { force, expected, isReplaceable });
  }
  if (!force) return;
  // A pour writes into a partial output; a foreign file may also have other names.
  for (const { path, isOurs, isWrittenInto } of listOutputs(place.output)) {
    if (isWrittenInto && !(await isOurs(path, recognize))) await rm(path, { force: true });
  }
}

/**
 * Refuses a place that no build could write to, as `claimIso` does with `force`. For commands that
 * only report what a build would do.
 *
 * @throws the errors of `checkOutputPlace`
 */
export async function checkIsoPlace(place: Omit<IsoPlace, 'force'>): Promise<void> {
  if (place.device) return claimDevice(place.device, { ...place, force: true });
  const workDirs = await listWorkDirs(place);
  const { inputs, output } = place;
  for (const { path } of listOutputs(output)) await checkOutputPlace({ path, inputs, workDirs });
}

/** The work directory of this build, and directories that are one by their name. */
async function listWorkDirs({ workDir, output }: Omit<IsoPlace, 'force'>): Promise<string[]> {
  const above = listAncestors(join(await findRealPath(dirname(output)), basename(output)));
  return [workDir, ...above.filter((path) => basename(path) === '.sealift')];
}

function listAncestors(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...listAncestors(parent)];
}

type Output = {
  readonly path: string;
  /** Files that a build may replace, in words. */
  readonly expected: string;
  readonly isOurs: (path: string, recognize: Recognize) => Promise<boolean>;
  /** True if a build writes into the existing file. */
  readonly isWrittenInto?: boolean;
};

function listOutputs(output: string): readonly Output[] {
  const { report, checksum, aside } = namesBeside(output);
  const partial = `${output}.partial`;
  const journal = `${partial}.journal`;
  const ofBuild = 'of an earlier build';
  return [
    { path: output, expected: `an ISO ${ofBuild}`, isOurs: isOurIso },
    ...[report, aside.report].map((path) => ({
      path,
      expected: `the report ${ofBuild}`,
      isOurs: isOurReport,
    })),
    ...[checksum, aside.checksum].map((path) => ({
      path,
      expected: `the checksum ${ofBuild}`,
      isOurs: (path: string) => isOurChecksum(path, basename(output)),
    })),
    { path: journal, expected: `the journal ${ofBuild} of this user`, isOurs: isOurJournal },
    {
      path: partial,
      expected: `the partial output ${ofBuild} of this user`,
      isWrittenInto: true,
      isOurs: async () => (await isOwnFile(partial)) && isOurJournal(journal),
    },
    { path: `${output}.lock`, expected: `the lock ${ofBuild}`, isOurs: isOurLock },
  ];
}

/**
 * True for an ISO that has its report next to it, or was about to get one when the build was
 * killed, and for a file that is recognized.
 */
async function isOurIso(path: string, recognize: Recognize): Promise<boolean> {
  const size = await sizeOf(path);
  const { report, aside } = namesBeside(path);
  for (const name of [report, aside.report]) {
    if ((await readReport(name))?.isoSize === size) return true;
  }
  const access = await openRandomAccess(path);
  try {
    return await recognize(access);
  } finally {
    await access.close();
  }
}

const isOurReport = async (path: string): Promise<boolean> =>
  (await readReport(path)) !== undefined;

const PRODUCTS: readonly unknown[] = ['live-iso', 'installation-iso', 'upgrade-iso'];

/** The report next to an ISO; undefined for any other file. */
export async function readReport(path: string): Promise<WrittenReport | undefined> {
  const text = await readSmall(path);
  if (text === undefined) return undefined;
  try {
    const report: unknown = JSON.parse(text);
    return isObject(report) && PRODUCTS.includes(report['product']) ? report : undefined;
  } catch {
    return undefined; // not a report
  }
}

/** A report that any program may have written. */
type WrittenReport = {
  readonly isoSize?: unknown;
  readonly layout?: unknown;
  readonly digest?: unknown;
};

async function isOurChecksum(path: string, name: string): Promise<boolean> {
  const text = await readSmall(path);
  return text !== undefined && /^[0-9a-f]{64}$/.test(text.replace(`  ${name}\n`, ''));
}

/** See src/pour/start.ts; a journal of any version. */
const isOurJournal = async (path: string): Promise<boolean> =>
  (await isOwnFile(path)) && matches(path, /^\{"format":\d+,"layout":"sha256:[0-9a-f]{64}"/);

const isOurLock = async (path: string): Promise<boolean> =>
  isLeaseText((await readSmall(path)) ?? '');

const matches = async (path: string, pattern: RegExp): Promise<boolean> =>
  pattern.test((await readSmall(path)) ?? '');

/** Bytes; a report with the costs of some thousand images has about one tenth. */
const MAX_SMALL = 64 << 20;

/**
 * The text of a regular file, unless it is unreadable or larger than any file that a build writes.
 */
async function readSmall(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile() || found.size > MAX_SMALL) return undefined;
    return (await readRegularFile(path))?.toString('utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES', 'EPERM')) return undefined;
    throw error;
  }
}

/** True if there is a regular file with only one name that belongs to us. */
async function isOwnFile(path: string): Promise<boolean> {
  try {
    const stats = await lstat(path);
    return stats.isFile() && stats.nlink === 1 && (await isOwnUser(stats.uid, path));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

export type PublishedIso = {
  /**
   * True if the ISO is on a block device, which gets no name and has no file next to it except a
   * report.
   */
  readonly isDevice?: boolean;
  /** Digest of the whole ISO; absent: no checksum is written next to it. */
  readonly digest?: Digest;
  /** Absent: no report is written. */
  readonly report?: Readonly<Record<string, Json | undefined>>;
};

/**
 * Gives a poured ISO its name, with a checksum as `sha256sum -c` reads it and the report next to
 * it. Both are written before the ISO has its name, and get their names right after it: they never
 * describe an ISO that does not exist. The output is locked meanwhile.
 */
export async function publishIso(
  output: string,
  { report, isDevice = false, digest }: PublishedIso,
): Promise<void> {
  const { aside, ...names } = namesBeside(output);
  const made: PreparedFile[] = [];
  const prepare = async (path: string, text?: string): Promise<PreparedFile | undefined> => {
    if (text === undefined) return undefined;
    const file = await prepareBeside(path, text);
    made.push(file);
    return file;
  };
  try {
    for (const path of Object.values(aside)) await sweepAside(path);
    const sum = isDevice ? undefined : digest && formatChecksum(output, digest);
    const checksum = await prepare(aside.checksum, sum);
    const told = await prepare(aside.report, report && formatReadableJson(report));
    if (!checksum) await rm(names.checksum, { force: true });
    await publishPour(output, isDevice);
    await told?.publish(names.report);
    await checksum?.publish(names.checksum);
    await syncDirectory(dirname(output));
  } finally {
    for (const file of made) await file.close();
  }
}

const prepareBeside = (path: string, text: string): Promise<PreparedFile> =>
  prepareFile(path, text, 0o644).catch((error: unknown) => {
    throw explainWriteError(error, path);
  });

/** Writes the checksum next to an ISO that already has its name. */
export const publishChecksum = (path: string, digest: Digest): Promise<void> =>
  writeFileAtomic(namesBeside(path).checksum, formatChecksum(path, digest), 0o644);

const formatChecksum = (path: string, digest: Digest): string =>
  `${hexOf(digest)}  ${basename(path)}\n`;

/**
 * The ISOs that this work directory finished, each with the state of its inode at that time. As
 * long as the inode is unchanged, every byte of the ISO is assumed to match its layout, without
 * reading it.
 */
export type IsoRecords = {
  /** The digest of its layout; undefined if it is not known, or its inode has changed. */
  readonly recall: (path: string) => Promise<Digest | undefined>;
  /** Records an ISO that was just verified, synced and named. */
  readonly remember: (path: string, layout: Digest) => Promise<void>;
};

/** @param isTrusted true if earlier records count; new records count for later runs in any case */
export function createIsoRecords(workDir: string, isTrusted = true): IsoRecords {
  const entryOf = (path: string): string =>
    join(workDir, 'finished', `${hexOf(digestOf(path)).slice(0, 32)}.stamp.json`);
  return {
    async recall(path) {
      const stamp = isTrusted ? await readStamp(path) : undefined;
      const known = stamp && parse(await readFileIfPresent(entryOf(path)));
      return known && isSameStamp(known.stamp, stamp) ? known.layout : undefined;
    },
    async remember(path, layout) {
      const stamp = await readStamp(path);
      await writeFileAtomic(entryOf(path), formatReadableJson({ path, layout, stamp }));
    },
  };
}

function parse(bytes: Uint8Array | undefined) {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes ?? []).toString('utf8'));
    const { layout, stamp } = isObject(value) ? value : {};
    const found = parseStamp(stamp);
    return found && typeof layout === 'string' && isDigest(layout)
      ? { stamp: found, layout }
      : undefined;
  } catch {
    return undefined; // missing or damaged: the ISO is read
  }
}

/** An ISO that an earlier build finished; its digest if that build computed it. */
export type KnownIso = { readonly layout: Digest; readonly digest?: Digest };

/**
 * The contents of the report next to an ISO, if it describes the file that an earlier build gave
 * this name.
 */
export async function recallFinished(
  output: string,
  records: IsoRecords,
): Promise<KnownIso | undefined> {
  const names = namesBeside(output);
  const layout = await records.recall(output);
  const report = await readReport(names.report);
  if (layout === undefined || report?.layout !== layout) return undefined;
  const digest = report.digest as Digest | undefined; // a layout that we finished
  if (digest !== undefined && !(await hasFile(names.checksum))) return undefined;
  return { layout, ...withoutUndefined({ digest }) };
}
