import { resolve } from 'node:path';
import { isErrno, SealiftError } from '../../base/errors.ts';
import { readInputFile } from '../../base/disk/files.ts';

/** What `file:PATH`, `env:NAME` or an inline value came to. No member but `value` holds the secret. */
export type SecretReading =
  | { readonly kind: 'value'; readonly value: string; readonly from: 'inline' | 'reference' }
  /** The file or variable is not there: another machine may have it. */
  | { readonly kind: 'absent'; readonly problem: string; readonly hint: string }
  | { readonly kind: 'refused'; readonly problem: string };

/** Where an appliance configuration has what a secret may be, or a reference to it. */
export const SECRET_PATHS = [
  'pullSecret',
  'sshKey',
  'userCorePass',
  'build.embed.pullSecret',
] as const;

export type SecretPath = (typeof SECRET_PATHS)[number];

export const isReference = (text: string): boolean => /^(?:env|file):/.test(text);

const MAX_SIZE = 4 << 20;

/** Relative paths start at `directory`. White space at the end of a file is not part of its value. */
export function readSecretSource(
  text: string,
  { directory, env }: { readonly directory: string; readonly env: NodeJS.ProcessEnv },
): SecretReading {
  if (text.startsWith('env:')) return readVariable(text.slice('env:'.length), env);
  if (text.startsWith('file:')) return readText(text.slice('file:'.length), directory);
  return { kind: 'value', value: text.trim(), from: 'inline' };
}

function readVariable(name: string, env: NodeJS.ProcessEnv): SecretReading {
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined;
  if (value !== undefined && value !== '') return { kind: 'value', value, from: 'reference' };
  return {
    kind: 'absent',
    problem: `the environment variable ${name} is not set`,
    hint: `export ${name} before the build`,
  };
}

function readText(path: string, directory: string): SecretReading {
  const full = resolve(directory, path.replace(/^\/\/(?=\/)/, ''));
  try {
    const value = readInputFile(full, { domain: 'secret', limit: MAX_SIZE })
      .toString('utf8')
      .trim();
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
