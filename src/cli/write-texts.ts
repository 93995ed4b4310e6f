import { stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { claimOutput } from '../base/disk/claim-output.ts';
import { isErrno, DiskError } from '../base/errors.ts';
import { writeFileAtomic } from '../base/disk/files.ts';
import { openStream, readRegularFile } from '../base/disk/open-file.ts';
import type { CliHost } from './host.ts';
import { writeContent } from './terminal/output.ts';

/** A text that a command was asked to write to a file. */
export type TextFile = {
  /** As it was given; relative to the working directory. */
  readonly path: string;
  readonly text: string;
  /** Of its file; default 0600, because people paste secrets into texts. */
  readonly mode?: number;
};

type TextRule = {
  /** Whether a file of other content is replaced. */
  readonly force: boolean;
  /** Files that are read, which are not replaced in any case; as they were given. */
  readonly inputs?: readonly string[];
};

/**
 * Writes texts to files, all or none: the one rule of every command whose result is a text. A file of
 * the same content stays as it is, without a word; one of other content is replaced with `force`
 * only. Texts may go to streams: `-`, `/dev/stdout`, `/dev/stderr`, `/dev/fd/N`, `/dev/null`.
 *
 * @returns names of the files that have the texts now, to be shown; none for streams
 * @throws UsageError and DiskError of `claimOutput`; DiskError `disk.full`, ...
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
  for (const { path, text, mode } of missing) {
    await writeFileAtomic(resolve(host.cwd, path), text, mode);
  }
  return files.map(({ path }) => relative(host.cwd, resolve(host.cwd, path)));
}

/** Whether the text is still to be written. */
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

/** Bytes of what is there. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const STREAM = /^(?:-|\/dev\/(?:stdout|stderr|null|tty|fd\/\d+)|\/proc\/self\/fd\/\d+)$/;

/** Whether a name is that of something open, or of a device that takes any text. */
const isStream = (path: string): boolean => STREAM.test(path);

async function writeStream(host: CliHost, path: string, text: string): Promise<void> {
  if (/^(?:-|\/dev\/stdout|.*\/fd\/1)$/.test(path)) return writeContent(host, text);
  if (/^(?:\/dev\/stderr|.*\/fd\/2)$/.test(path)) {
    return writeContent({ ...host, stdout: host.stderr }, text);
  }
  try {
    // Who opened it decides whether what it has goes: it is not cut off here.
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
