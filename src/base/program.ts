import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestOf, isDigest, type Digest } from './digest.ts';
import { readFileIfPresent } from './disk/files.ts';
import { formatCanonicalJson, type Json } from './text/json.ts';

/**
 * The folder with `package.json`, `templates` and `schema`. It is as far from this file as from
 * `dist/cli/main.cjs`, which contains this file.
 */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);

export function readVersion(): string {
  const file = readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

const ROOT = fileURLToPath(PACKAGE_ROOT);
/** `dist` of a built program, `src` of a program that runs from its sources. */
const CODE = fileURLToPath(new URL('..', import.meta.url));
/** Made from the program: its digest, and V8's compiled code in a folder of its own. */
const MADE = ['program-digest.json', 'compiled'];

/** Kept for the process: the program is the same until it ends, and its sources are 830 files. */
let known: Promise<Digest> | undefined;

/**
 * A digest of the program: its code with the code of its packages, its templates and schemas. The
 * build writes it; from sources it is computed, once, with the lock file in place of the packages.
 */
export const readProgramDigest = (): Promise<Digest> => (known ??= findProgramDigest());

async function findProgramDigest(): Promise<Digest> {
  const text = (await readFileIfPresent(join(CODE, 'program-digest.json')))?.toString('utf8');
  const { digest } = text === undefined ? {} : (JSON.parse(text) as { digest?: string });
  return digest !== undefined && isDigest(digest) ? digest : digestSources(ROOT);
}

/**
 * @param root folder with `templates` and `schema`
 * @param code folder with the bundled code
 */
export const digestProgram = (root: string, code: string): Promise<Digest> =>
  digestFolders([code, join(root, 'templates'), join(root, 'schema')]);

/** @param root folder with `src`, `templates`, `schema` and the lock file */
export async function digestSources(root: string): Promise<Digest> {
  const lock = await readFileIfPresent(join(root, 'package-lock.json'));
  const program = await digestProgram(root, join(root, 'src'));
  return digestOf(formatCanonicalJson([program, lock === undefined ? null : digestOf(lock)]));
}

const digestFolders = async (folders: readonly string[]): Promise<Digest> =>
  digestOf(formatCanonicalJson(await Promise.all(folders.map(listDigests))));

async function listDigests(folder: string): Promise<Json> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter(
    (entry) =>
      entry.isFile() && !MADE.includes(entry.name) && !MADE.includes(basename(entry.parentPath)),
  );
  const digests = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(folder.length), digestOf(await readFile(path))] as const;
    }),
  );
  return Object.fromEntries(digests);
}
