import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import { openListed, openOwnFile } from '../../base/disk/open-file.ts';
import { UsageError } from '../../base/errors.ts';
import type { LogLevel, RunLog } from '../host.ts';
import { formatEvent } from './output.ts';

/** How every line of a log begins, by which a file is known as one. */
const FIRST = '{"time":"';

/** @param warn is called once, when the file takes no more */
export function createRunLog(now: () => number, warn: (message: string) => void): RunLog {
  let level: LogLevel = 'normal';
  let file: FileHandle | undefined;
  let isFull = false;
  return {
    level: () => level,
    record(event) {
      if (file === undefined || isFull) return;
      try {
        writeAll(file.fd, `${formatEvent({ time: new Date(now()).toISOString(), ...event })}\n`);
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

/** A log of earlier runs is continued; no other file with content is touched. */
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

/** At once, so that a process which is killed has told everything up to then. */
function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
}
