import { lstat, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isDigestHex } from '../../base/digest.ts';
import { checkOutputPlace, claimOutput, findRealPath } from '../../base/disk/claim-output.ts';
import { sizeOf } from '../../base/disk/files.ts';
import { isLeaseText } from '../../base/disk/holder.ts';
import { isOwnUser, readRegularFile } from '../../base/disk/open-file.ts';
import { isErrno, UsageError } from '../../base/errors.ts';
import { openRandomAccess } from '../../base/random-access.ts';
import {
  namesBeside,
  parseReport,
  type IsoPlace,
  type MediaReader,
  type WrittenReport,
} from '../place.ts';

/* The files of an ISO that a build may replace: which of them a build of ours made. */

type Claimed = Pick<IsoPlace, 'output' | 'workDir' | 'inputs' | 'force'>;

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
 * @throws the errors of `claimOutput`
 */
export async function claimFile(
  { force, ...place }: Claimed,
  recognize: MediaReader['recognize'],
): Promise<void> {
  const workDirs = await listWorkDirs(place);
  const { inputs } = place;
  for (const { path, expected, isOurs } of listOutputs(place.output)) {
    const isReplaceable = (): Promise<boolean> => isOurs(path, recognize);
    const describe = (): Promise<string | undefined> => describeForeignChecksum(path);
    await claimOutput({ path, inputs, workDirs }, { force, expected, isReplaceable, describe });
  }
  if (!force) return;
  // A pour writes into a partial output; a foreign file may also have other names.
  for (const { path, isOurs, isWrittenInto } of listOutputs(place.output)) {
    if (isWrittenInto && !(await isOurs(path, recognize))) await rm(path, { force: true });
  }
}

/**
 * Refuses a file beside an output that has the name of the output, or of a file that its build writes or reads.
 *
 * @throws UsageError `output.reserved`
 */
export async function refuseNameOf(output: string, path: string): Promise<void> {
  const names = [output, ...listOutputs(output).map((file) => file.path)];
  const [real, ...reserved] = await Promise.all(
    [path, ...names].map(async (name) => join(await findRealPath(dirname(name)), basename(name))),
  );
  if (real === undefined || !reserved.includes(real)) return;
  throw new UsageError(
    'output.reserved',
    `"${path}" is a name of the output or of a file next to it`,
    {
      expected: `another name than "${output}" and the files of its build`,
      found: basename(path),
      hint: 'name another file',
    },
  );
}

/** Refuses a place that `claimFile` refuses even with `force`, for commands that build nothing. */
export async function checkFile(place: Omit<Claimed, 'force'>): Promise<void> {
  const workDirs = await listWorkDirs(place);
  const { inputs, output } = place;
  for (const { path } of listOutputs(output)) await checkOutputPlace({ path, inputs, workDirs });
}

/** The work directory of this build, and directories that are one by their name. */
async function listWorkDirs({ workDir, output }: Omit<Claimed, 'force'>): Promise<string[]> {
  const above = listAncestors(join(await findRealPath(dirname(output)), basename(output)));
  return [workDir, ...above.filter((path) => basename(path) === '.sealift')];
}

function listAncestors(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...listAncestors(parent)];
}

type OutputFile = {
  readonly path: string;
  /** Files that a build may replace, in words. */
  readonly expected: string;
  readonly isOurs: (path: string, recognize: MediaReader['recognize']) => Promise<boolean>;
  /** True if a build writes into the existing file. */
  readonly isWrittenInto?: boolean;
};

function listOutputs(output: string): readonly OutputFile[] {
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

/** A build that was killed may have left the report aside. */
async function isOurIso(path: string, recognize: MediaReader['recognize']): Promise<boolean> {
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

export async function readReport(path: string): Promise<WrittenReport | undefined> {
  const text = await readSmall(path);
  return text === undefined ? undefined : parseReport(text);
}

async function isOurChecksum(path: string, name: string): Promise<boolean> {
  const text = await readSmall(path);
  return text !== undefined && isDigestHex(text.replace(`  ${name}\n`, ''));
}

/** Says whose checksum a file is: an ISO that was copied with its checksum has that of its old name. */
async function describeForeignChecksum(path: string): Promise<string | undefined> {
  const text = await readSmall(path);
  const [, name] = /^[0-9a-f]{64} [ *]([^\n]+)\n?$/.exec(text ?? '') ?? [];
  return name === undefined ? undefined : `the checksum of "${name}"`;
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

/** The text of a regular file, unless it is unreadable or larger than any file that a build writes. */
async function readSmall(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile() || found.size > MAX_SMALL) return undefined;
    return (await readRegularFile(path))?.toString('utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES', 'EPERM', 'ELOOP')) return undefined;
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
