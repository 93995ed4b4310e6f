import { decodeUserText } from '../base/text/utf8.ts';
import { resolve } from 'node:path';
import { readInputFile } from '../base/disk/files.ts';
import { isErrno, SealiftError, type DocumentProblem } from '../base/errors.ts';
import { append } from '../base/lists.ts';
import type { Redaction } from '../base/text/redact.ts';
import { readSshKeys } from '../keys/index.ts';
import { judgePullSecret } from '../registry/index.ts';
import type { View } from '../shape/document.ts';

/* Owns the secrets of a configuration: their references, and the rules of pull secrets and SSH keys. */

/** The result of reading `file:PATH`, `env:NAME` or an inline value. No member but `value` holds the secret. */
export type SecretReading =
  | { readonly kind: 'value'; readonly value: string; readonly from: 'inline' | 'reference' }
  /** The file or variable does not exist here; another machine may have it. */
  | { readonly kind: 'absent'; readonly problem: string; readonly hint: string }
  | { readonly kind: 'refused'; readonly problem: string };

export const SECRET_PATHS = [
  'pullSecret',
  'sshKey',
  'userCorePass',
  'build.embed.pullSecret',
] as const;

export type SecretPath = (typeof SECRET_PATHS)[number];

/** No problem shows a value. */
export type Secrets = {
  readonly values: ReadonlyMap<SecretPath, string>;
  readonly problems: readonly DocumentProblem[];
  /** References to a file or variable that this machine does not have. */
  readonly absent: readonly DocumentProblem[];
};

/** Reads `file:` and `env:` references, checks the values, and masks them from now on. No problem shows a value. */
export function resolveSecrets(
  view: View,
  { env, redaction }: { readonly env: NodeJS.ProcessEnv; readonly redaction: Redaction },
): Secrets {
  const values = new Map<SecretPath, string>();
  const problems: DocumentProblem[] = [];
  const absent: DocumentProblem[] = [];
  const { report } = view;
  for (const path of SECRET_PATHS) {
    const text = view.text(path);
    if (text === undefined) continue;
    const reading = readSecretSource(text, { directory: view.directoryOf(path), env });
    if (reading.kind === 'absent') {
      absent.push(report(path, reading.problem, { hint: reading.hint }));
    } else if (reading.kind === 'refused') {
      problems.push(report(path, reading.problem));
    } else {
      values.set(path, reading.value);
      if (path !== 'sshKey') redaction.add(reading.value);
      append(
        problems,
        checkValue(path, reading.value).map((problem) => report(path, problem)),
      );
    }
  }
  return { values, problems, absent };
}

/** Reads a secret's value. Relative paths start at `directory`; white space around the value is removed. */
export function readSecretSource(
  text: string,
  { directory, env }: { readonly directory: string; readonly env: NodeJS.ProcessEnv },
): SecretReading {
  if (text.startsWith('env:')) return readVariable(text.slice('env:'.length), env);
  const file = fileOfReference(text, directory);
  if (file !== undefined) return readText(file);
  return { kind: 'value', value: trimBlanks(text), from: 'inline' };
}

export const isReference = (text: string): boolean => /^(?:env|file):/.test(text);

/** The file that `file:PATH` names; undefined for any other text. */
export const fileOfReference = (text: string, directory: string): string | undefined =>
  text.startsWith('file:')
    ? resolve(directory, text.slice('file:'.length).replace(/^\/\/(?=\/)/, ''))
    : undefined;

/** Each a sentence without the value. */
export const checkPullSecret = (
  text: string,
  options?: { readonly isForHosts?: boolean },
): readonly string[] =>
  isPlaceholder(text) ? [PLACEHOLDER_PROBLEM] : judgePullSecret(text, options);

/** A key is one line of an authorized_keys file; comment lines may precede it. */
/** Placeholder of the pull secret in our template and in openshift-install's. */
export const PLACEHOLDER = '<your-pull-secret>';

export const isPlaceholder = (text: string): boolean => text.trim() === PLACEHOLDER;

export const PLACEHOLDER_PROBLEM =
  `"${PLACEHOLDER}" is the placeholder of the template: ` +
  'write file:PATH, env:NAME or the JSON text of your pull secret in its place';

function readVariable(name: string, env: NodeJS.ProcessEnv): SecretReading {
  const value = Object.hasOwn(env, name) ? trimBlanks(env[name] ?? '') : undefined;
  if (value !== undefined && value !== '') return { kind: 'value', value, from: 'reference' };
  return {
    kind: 'absent',
    problem: `the environment variable ${name} is not set`,
    hint: `export ${name} before the build`,
  };
}

const MAX_SIZE = 4 << 20;

/** Other blanks, such as a byte order mark, are part of the value, whose reader refuses them. */
const trimBlanks = (text: string): string =>
  text.replace(/^[ \t\r\n]+|(?<![ \t\r\n])[ \t\r\n]+$/g, '');

function readText(full: string): SecretReading {
  try {
    const bytes = readInputFile(full, { domain: 'secret', limit: MAX_SIZE });
    const value = trimBlanks(decodeUserText(bytes, full));
    if (value === '') return { kind: 'refused', problem: `${full} is empty` };
    return { kind: 'value', value, from: 'reference' };
  } catch (error) {
    if (error instanceof SealiftError) return { kind: 'refused', problem: error.message };
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    if (code === undefined) throw error;
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) {
      return { kind: 'absent', problem: `there is no file ${full}`, hint: `put it at ${full}` };
    }
    return { kind: 'refused', problem: `${full} cannot be read (${code})` };
  }
}

function checkValue(path: SecretPath, value: string): readonly string[] {
  if (path === 'userCorePass') {
    if (value.startsWith('\ufeff')) return ['begins with a byte order mark; save it without'];
    return /[\r\n]/.test(value) ? ['must be one line'] : [];
  }
  if (path !== 'sshKey') return checkPullSecret(value);
  const { problem } = readSshKeys(value);
  return problem === undefined ? [] : [problem];
}
