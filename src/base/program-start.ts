import { access, constants, readFile, realpath, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { explainLimit } from './disk/disk-errors.ts';
import { openListed } from './disk/open-file.ts';
import { isErrno, ToolError, type SealiftError } from './errors.ts';

/* The reasons for which the system does not start a program: execve(2), "ERRORS". */

/** A program that the system did not start. */
type Start = {
  /** File, or a name that is looked for in PATH. */
  readonly file: string;
  /** Its name in errors. */
  readonly shownAs: string;
  readonly env: NodeJS.ProcessEnv;
};

/** The end of a process: an error of the system, or the code with which it exited. */
type Ending = Error & {
  readonly code?: string | undefined;
  readonly exitCode?: number | undefined;
};

const START_CODES = [
  'ENOENT',
  'EACCES',
  'EPERM',
  'ETXTBSY',
  'ELIBBAD',
  'ENOEXEC',
  'ENOTDIR',
  'ELOOP',
];

/** The C library runs a file of another form by sh (execvp(3), ENOEXEC), which exits with these. */
const SHELL_CODES = [2, 126, 127];

/**
 * The error for a program that did not start: `tool.missing`, `tool.not-executable`, or a limit of the
 * machine. Undefined if it started, and ended by itself.
 */
export async function explainStart(
  ending: Ending,
  start: Start,
): Promise<SealiftError | undefined> {
  const { code, exitCode } = ending;
  const limit = explainLimit(ending, `program "${start.shownAs}"`);
  if (limit) return limit;
  const hasFailed = code !== undefined && START_CODES.includes(code);
  if (!hasFailed && !SHELL_CODES.includes(exitCode ?? 0)) return undefined;
  const path = await find(start);
  const name = `program "${start.shownAs}"`;
  if (path === undefined) {
    return new ToolError('tool.missing', `${name} is not installed or not executable`);
  }
  const reason = hasFailed ? await diagnose(code, path) : await findForeign(path);
  if (!reason) return undefined;
  const [problem, hint] = reason;
  return new ToolError('tool.not-executable', `${name} ${problem}`, { hint });
}

type Reason = readonly [problem: string, hint: string];

/** The file of a program; undefined if it does not exist. */
async function find({ file, env }: Start): Promise<string | undefined> {
  const folders = file.includes('/') ? [''] : (env['PATH'] ?? '').split(delimiter);
  for (const folder of folders) {
    const path = folder === '' ? file : join(folder, file);
    if (await isFile(path)) return path;
  }
  return undefined;
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );

async function diagnose(code: string, path: string): Promise<Reason> {
  if (code === 'ENOENT') {
    return [
      'needs an interpreter or a loader that does not exist on this machine',
      'install it, or use the program that was made for this system',
    ];
  }
  if (code === 'ENOEXEC') return (await findForeign(path)) ?? NO_PROGRAM;
  if (code === 'ETXTBSY') return ['is being written by another process', 'run the command again'];
  const { mode } = await stat(path);
  if ((mode & 0o111) === 0) return ['is not marked as executable', `run "chmod +x ${path}"`];
  const mount = await findMount(await realpath(path));
  if (mount?.options.includes('noexec') === true) {
    return [
      `is on "${mount.place}", which is mounted noexec: programs cannot run there`,
      'name a place on another file system: --work-dir <dir> for files of a build',
    ];
  }
  const isAllowed = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
  return isAllowed
    ? ['may not be executed: a rule of this system forbids it', 'ask its administrator']
    : ['may not be executed by this user', 'correct the rights of the file and its folders'];
}

const NO_PROGRAM: Reason = [
  'is not a program that this system can run',
  'use the program that was made for this system',
];

/** e_machine of elf(5), by the names of Node. */
const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183, ppc64: 21, s390x: 22 };

/** Recognizes a program that was made for another machine. */
async function findForeign(path: string): Promise<Reason | undefined> {
  const { buffer, bytesRead } = await readStart(path);
  if (bytesRead < 20 || buffer.toString('latin1', 0, 4) !== '\x7fELF') return undefined;
  const isLittle = buffer[5] === 1;
  const machine = isLittle ? buffer.readUInt16LE(18) : buffer.readUInt16BE(18);
  if (machine === MACHINES[process.arch]) return undefined;
  return [`is not a program for this machine (${process.arch})`, 'use the one of its architecture'];
}

async function readStart(path: string) {
  const file = await openListed(await realpath(path));
  try {
    return await file.read(Buffer.alloc(20), 0, 20, 0);
  } finally {
    await file.close();
  }
}

type Mount = { readonly place: string; readonly options: readonly string[] };

/** The mount that a path is on: proc(5), /proc/pid/mountinfo; of two on one place, the later counts. */
async function findMount(path: string): Promise<Mount | undefined> {
  let found: Mount | undefined;
  for (const line of (await readMounts()).split('\n')) {
    const [, , , , escaped = '', options = ''] = line.split(' ');
    const place = escaped.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const isAbove = place !== '' && `${path}/`.startsWith(place === '/' ? '/' : `${place}/`);
    if (isAbove && place.length >= (found?.place.length ?? 0)) {
      found = { place, options: options.split(',') };
    }
  }
  return found;
}

async function readMounts(): Promise<string> {
  try {
    return await readFile('/proc/self/mountinfo', 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES')) return '';
    throw error;
  }
}
