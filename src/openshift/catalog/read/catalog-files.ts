import { isUnreadable } from '../../../base/disk/disk-errors.ts';
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { ConfigError, isErrno } from '../../../base/errors.ts';
import type { Budget } from '../../../base/decode/limits.ts';
import { createIgnoreBudget, isIgnored, parseIgnoreFile } from './ignore-file.ts';
import type { Dirent } from 'node:fs';
import { append } from '../../../base/lists.ts';
import type { IgnoreRule } from './ignore-file.ts';

/** A file of a catalog, `/` between names, or one that should not be there. */
export type CatalogFile = { readonly file: string; readonly problem?: string };

const IGNORE_FILE = '.indexignore';

type Walk = {
  readonly directory: string;
  /** Without links, to tell what is inside. */
  readonly root: string;
  readonly effort: Budget<'steps'>;
};

/**
 * The files of a catalog in the order of their names, directory by directory, without those that an
 * `.indexignore` excludes and without those files themselves.
 *
 * @throws ConfigError `catalog.missing`, `catalog.ignore-file`
 */
export async function* walkCatalog(directory: string): AsyncGenerator<CatalogFile> {
  const effort = createIgnoreBudget();
  yield* walkDirectory({ directory, root: await findRoot(directory), effort }, [], []);
}

async function findRoot(directory: string): Promise<string> {
  try {
    const root = await realpath(directory);
    if ((await stat(root)).isDirectory()) return root;
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  throw new ConfigError(
    'catalog.missing',
    `there is no directory ${directory} to read a catalog from`,
    {
      expected: 'a directory',
      found: 'none',
      hint: 'name a directory that holds a file-based catalog',
    },
  );
}

async function* walkDirectory(
  walk: Walk,
  path: readonly string[],
  inherited: readonly IgnoreRule[],
): AsyncGenerator<CatalogFile> {
  const entries = await listDirectory(walk, path);
  if (entries === undefined) {
    yield { file: path.join('/'), problem: 'may not be read by this user' };
    return;
  }
  const rules = [...inherited];
  const ignoreFile = entries.find((entry) => entry.name === IGNORE_FILE && !entry.isDirectory());
  if (ignoreFile !== undefined) {
    const file = await examine(walk, path, ignoreFile);
    if (file.problem === undefined) append(rules, await readRules(walk, path));
    else yield file;
  }
  for (const entry of entries) {
    const names = [...path, entry.name];
    if (entry.isDirectory()) yield* walkDirectory(walk, names, rules);
    else if (entry !== ignoreFile && !isIgnored(rules, names, walk.effort))
      yield await examine(walk, path, entry);
  }
}

/** Sorted by name; undefined when we may not look into it. */
async function listDirectory(
  { directory }: Walk,
  path: readonly string[],
): Promise<readonly Dirent[] | undefined> {
  try {
    const entries = await readdir(join(directory, ...path), { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (!isErrno(error, 'EACCES')) throw error;
    return undefined;
  }
}

async function readRules(walk: Walk, path: readonly string[]): Promise<readonly IgnoreRule[]> {
  return parseIgnoreFile(await readFile(join(walk.directory, ...path, IGNORE_FILE), 'utf8'), path);
}

async function examine(
  { directory, root }: Walk,
  path: readonly string[],
  entry: Dirent,
): Promise<CatalogFile> {
  const file = [...path, entry.name].join('/');
  if (entry.isFile()) return { file };
  if (!entry.isSymbolicLink()) return { file, problem: 'is not a regular file' };
  try {
    const target = await realpath(join(directory, file));
    if (!target.startsWith(root.endsWith(sep) ? root : root + sep)) {
      return { file, problem: `is a link out of the catalog, to ${target}` };
    }
    if ((await stat(target)).isFile()) return { file };
    return { file, problem: `is a link to ${target}, which is not a regular file` };
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) throw error;
    return { file, problem: 'is a link to nothing' };
  }
}
