import { writeSync } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import { dirname, resolve, relative } from 'node:path';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { makeDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { openListed, openOwnFile, openStream, readRegularFile } from '../../base/disk/open-file.ts';
import { UsageError, isErrno, DiskError } from '../../base/errors.ts';
import type { LogLevel, RunLog, CliHost } from '../host.ts';
import { formatEvent, writeContent } from './output.ts';

/* This file owns the files that a command writes as text: the log of a run, and texts that are results. */

/** Beginning of every line of a log, by which a file is recognized as one. */
const FIRST = '{"time":"';

/** @param warn called once, when writing to the file fails */
export function createRunLog(
  { now, redaction }: Pick<CliHost, 'now' | 'redaction'>,
  warn: (message: string) => void,
): RunLog {
  let level: LogLevel = 'normal';
  let file: FileHandle | undefined;
  let isFull = false;
  return {
    level: () => level,
    record(event) {
      if (file === undefined || isFull) return;
      try {
        const timed = { time: new Date(now()).toISOString(), ...event };
        writeAll(file.fd, `${formatEvent(timed, redaction)}\n`);
      } catch (error) {
        isFull = true;
        const why = error instanceof Error ? error.message : String(error);
        warn(`the log file is not complete: ${why}`);
      }
    },
    async open({ quiet = false, verbose = false, logFile }, cwd) {
      if (quiet && verbose) {
        const hint = 'leave one of them out';
        const message = '--quiet and --verbose exclude each other';
        throw new UsageError('usage.conflicting-option', message, { hint });
      }
      if (quiet || verbose) level = quiet ? 'quiet' : 'verbose';
      if (logFile !== undefined) file = await openLog(logFile, cwd);
    },
    async close() {
      await file?.close();
      file = undefined;
    },
  };
}

/** Opens a log: a log of earlier runs is continued; no other file with content is touched. */
async function openLog(name: string, cwd: string): Promise<FileHandle> {
  if (name === '') {
    throw new UsageError('usage.empty-path', '--log-file is empty', { hint: 'name a file' });
  }
  const path = resolve(cwd, name);
  const isReplaceable = (): Promise<boolean> => beginsAsLog(path);
  await claimOutput({ path }, { force: false, expected: 'a log of earlier runs', isReplaceable });
  await makeDirectory(dirname(path));
  return openOwnFile(path, { append: true });
}

async function beginsAsLog(path: string): Promise<boolean> {
  const file = await openListed(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(FIRST.length), 0, FIRST.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === FIRST;
  } finally {
    await file.close();
  }
}

/** Writes synchronously, so that the log of a killed process is complete up to the kill. */
function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
}

export type TextFile = {
  /** Path as it was given; relative to the working directory. */
  readonly path: string;
  readonly text: string;
  /** Mode of its file; default 0600, because people paste secrets into texts. */
  readonly mode?: number;
};

type TextRule = {
  /** True if a file with other content is replaced. */
  readonly force: boolean;
  /** Paths of files that are read, as they were given; these files are never replaced. */
  readonly inputs?: readonly string[];
};

/**
 * Writes texts to files, all or none: the one rule for every command whose result is a text. A file with the
 * same content is left unchanged, without a message; a file with other content is replaced only with `force`.
 * Texts may go to streams: `-`, `/dev/stdout`, `/dev/stderr`, `/dev/fd/N`, `/dev/null`.
 *
 * @returns names of the files that have the texts now, to be shown; empty for streams
 */
export async function writeTexts(
  host: CliHost,
  texts: readonly TextFile[],
  rule: TextRule,
): Promise<readonly string[]> {
  const files = texts.filter(({ path }) => !isStream(path));
  const missing: TextFile[] = [];
  for (const file of files) {
    if (await claimText(host, file, rule)) missing.push(file);
  }
  for (const { path, text } of texts) if (isStream(path)) await writeStream(host, path, text);
  for (const { path: given, text, mode } of missing) {
    const path = resolve(host.cwd, given);
    await writeFileAtomic(path, text, mode);
  }
  return files.map(({ path }) => relative(host.cwd, resolve(host.cwd, path)));
}

/** Checks the place of a text; true if the text must still be written. */
async function claimText(
  { cwd }: CliHost,
  { path: given, text }: TextFile,
  { force, inputs = [] }: TextRule,
): Promise<boolean> {
  const path = resolve(cwd, given);
  const isSame = async (): Promise<boolean> =>
    (await sizeOf(path)) === Buffer.byteLength(text) &&
    (await readRegularFile(path))?.toString('utf8') === text;
  await claimOutput(
    { path, inputs: inputs.map((input) => resolve(cwd, input)) },
    { force, expected: 'a file of the same content', isReplaceable: isSame },
  );
  return !(await isSame());
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const STREAM = /^(?:-|\/dev\/(?:stdout|stderr|null|tty|fd\/\d+)|\/proc\/self\/fd\/\d+)$/;

/** True if a path names an open stream, or a device that takes any text. */
const isStream = (path: string): boolean => STREAM.test(path);

async function writeStream(host: CliHost, path: string, text: string): Promise<void> {
  if (/^(?:-|\/dev\/stdout|.*\/fd\/1)$/.test(path)) return writeContent(host, text);
  if (/^(?:\/dev\/stderr|.*\/fd\/2)$/.test(path)) {
    return writeContent({ ...host, stdout: host.stderr }, text);
  }
  try {
    // Not truncated: the process that opened the stream decides about its content.
    const file = await openStream(path);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new DiskError('output.unwritable', `nothing can be written to "${path}"`, {
      cause,
      hint: 'name a file, or /dev/stdout',
    });
  }
}
