import { constants, accessSync, lstatSync, statSync, type Stats } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { advised, findingsOf, refused, type DoctorFinding } from './finding.ts';

/* Owns the rules for files and folders of the service: owners, modes, kinds of file systems. */

export type DoctorFiles = {
  /** The user that runs; undefined if the system has no users. */
  readonly user: number | undefined;
  /** Files by their options. */
  readonly secrets: readonly NamedPath[];
  /** Files that are public, and decide who is trusted. */
  readonly trusted: readonly NamedPath[];
  /** Folder of records. */
  readonly data: string;
  /** Folders with ISOs. */
  readonly stores: readonly string[];
  readonly auditLog?: string | undefined;
};

export type NamedPath = { readonly option: string; readonly path: string };

/** Finds files that others can read or write. What does not exist is left to its reader. */
export async function checkFiles(files: DoctorFiles): Promise<readonly DoctorFinding[]> {
  const { user, secrets, trusted, data, stores, auditLog } = files;
  const isForeign = ({ uid }: Stats): boolean => user !== undefined && uid !== 0 && uid !== user;
  return [
    ...secrets.flatMap(checkReaders),
    ...[...secrets, ...trusted].flatMap((each) => checkWriters(each, isForeign)),
    ...checkData(data, isForeign),
    ...(await checkFileSystem(data)),
    ...stores.flatMap((path) => checkStore(path, user)),
    ...(auditLog === undefined ? [] : checkAudit(auditLog, isForeign)),
  ];
}

function find(path: string, look: (path: string) => Stats = statSync): Stats | undefined {
  try {
    return look(path);
  } catch {
    return undefined; // its reader says why it cannot be reached
  }
}

const modeOf = ({ mode }: Stats): string => `mode 0${(mode & 0o777).toString(8)}`;

/** A file that every user of the machine can read is an error. */
export function checkReaders({ option, path }: NamedPath): readonly DoctorFinding[] {
  const stats = find(path);
  if (!stats || (stats.mode & 0o044) === 0) return [];
  const about = {
    code: 'doctor.secret-readable',
    file: option,
    problem: `${(stats.mode & 0o004) === 0 ? 'its group' : 'every user of the machine'} can read "${path}" (${modeOf(stats)})`,
    hint: 'give it mode 600',
  };
  return [(stats.mode & 0o004) === 0 ? advised(about) : refused(about)];
}

function checkWriters(
  { option, path }: NamedPath,
  isForeign: (stats: Stats) => boolean,
): readonly DoctorFinding[] {
  const folder = find(dirname(path));
  const all = [find(path, lstatSync), find(path)].filter((stats) => stats !== undefined);
  const isShared = (stats: Stats): boolean => !stats.isSymbolicLink() && (stats.mode & 0o022) !== 0;
  const file = all.find((stats) => isShared(stats) || isForeign(stats));
  // A folder without the sticky bit: everyone who can write to it can replace every file in it.
  const isOpen =
    folder !== undefined && (folder.mode & 0o002) !== 0 && (folder.mode & 0o1000) === 0;
  if (!file && !isOpen) return [];
  const who = file ? `${modeOf(file)}, user ${file.uid}` : 'every user can write to its folder';
  return [
    refused({
      code: 'doctor.file-writable',
      file: option,
      problem: `others can change "${path}" (${who})`,
      hint: 'give file and folder to root or to the user of the service, and run "chmod go-w"',
    }),
  ];
}

function checkData(data: string, isForeign: (stats: Stats) => boolean): readonly DoctorFinding[] {
  const stats = find(data);
  if (!stats) return [];
  const shared = {
    code: 'doctor.data-shared',
    file: '--data',
    hint: 'give it to the user of the service, with mode 700',
  };
  return findingsOf(
    isForeign(stats) && refused({ ...shared, problem: `it belongs to user ${stats.uid}` }),
    (stats.mode & 0o022) !== 0 &&
      refused({ ...shared, problem: `others can write to it (${modeOf(stats)})` }),
    (stats.mode & 0o022) === 0 &&
      (stats.mode & 0o055) !== 0 &&
      advised({ ...shared, problem: `others can list it (${modeOf(stats)})` }),
  );
}

/** statfs(2). */
const SHARED_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x01021997, '9P'],
  [0x4d44, 'FAT'],
  [0x2011bab0, 'exFAT'],
]);

async function checkFileSystem(data: string): Promise<readonly DoctorFinding[]> {
  const type = await statfs(data).then(
    (found) => found.type,
    () => 0, // it does not exist yet
  );
  const name = SHARED_SYSTEMS.get(type >>> 0);
  if (name === undefined) return [];
  return [
    advised({
      code: 'doctor.data-network',
      file: '--data',
      problem: `it is on ${name}, which other machines can have, or which has no owners`,
      hint: 'use a local file system, or --database for records',
    }),
  ];
}

function checkStore(path: string, user: number | undefined): readonly DoctorFinding[] {
  const stats = find(path);
  if (!stats) return [];
  const about = { code: 'doctor.store-writable', file: '--store' };
  return findingsOf(
    (stats.mode & 0o002) !== 0 &&
      refused({
        ...about,
        problem: `every user of the machine can put an ISO into "${path}" (${modeOf(stats)})`,
        hint: 'run "chmod o-w" on it',
      }),
    user !== 0 &&
      mayWrite(path) &&
      advised({
        ...about,
        problem: `the user of the service can change the ISOs in "${path}"`,
        hint: 'give the folder to another user: the service reads it only',
      }),
  );
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function checkAudit(path: string, isForeign: (stats: Stats) => boolean): readonly DoctorFinding[] {
  const [folder, file] = [find(dirname(path)), find(path, lstatSync)];
  const isShared = (stats: Stats): boolean => (stats.mode & 0o022) !== 0 || isForeign(stats);
  return findingsOf(
    folder !== undefined &&
      isShared(folder) &&
      refused({ ...AUDIT, problem: `others can write to its folder (${describeOwner(folder)})` }),
    file?.isFile() === false &&
      refused({
        ...AUDIT,
        problem: `"${path}" is not a regular file, and is refused at the start`,
      }),
    ...(file?.isFile() === true ? [checkAuditFile(path, file, isShared(file))] : []),
  );
}

const AUDIT = {
  code: 'doctor.audit-shared',
  file: '--audit-log',
  hint: 'give the log mode 600 and a folder of its own, with mode 700',
};

function checkAuditFile(path: string, file: Stats, isShared: boolean): DoctorFinding | false {
  const about = `"${path}" (${describeOwner(file)})`;
  if (isShared) return refused({ ...AUDIT, problem: `others can write to ${about}` });
  return (file.mode & 0o044) !== 0 && advised({ ...AUDIT, problem: `others can read ${about}` });
}

const describeOwner = (stats: Stats): string => `${modeOf(stats)}, user ${stats.uid}`;
