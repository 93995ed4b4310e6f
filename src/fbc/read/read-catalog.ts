import type { Dirent } from 'node:fs';
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { DecodeBudget } from '../../base/decode/limits.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { openToRead } from '../../base/disk/open-file.ts';
import { ConfigError, isErrno, IntegrityError } from '../../base/errors.ts';
import { append } from '../../base/lists.ts';
import { malformedCatalog } from '../../shape/go-json.ts';
import type { Catalog, CatalogPlace } from '../catalog.ts';
import { streamDocuments } from './documents.ts';
import { createIgnoreBudget, isIgnored, parseIgnoreFile, type IgnoreRule } from './ignore.ts';
import type { ParsedDocument } from './json.ts';
import { addDocument, type CatalogParts } from './parse.ts';

/** A file of a catalog, `/` between names, with its problem if it cannot be read. */
export type CatalogFile = { readonly file: string; readonly problem?: string };

export type ReadCatalogOptions = {
  readonly signal?: AbortSignal;
  /** The catalog's reference, for errors; default: its directory. */
  readonly name?: string;
};

type FileOptions = ReadCatalogOptions & { readonly file: string; readonly problems: Problems };

type Problems = {
  readonly lines: string[];
  /** True if one of them cannot be assigned to a package. */
  isUnreadable: boolean;
};

/** Problems reported for one document, so that a hostile one cannot fill the memory. */
const MAX_DOCUMENT_PROBLEMS = 20;
const MAX_LINE_LENGTH = 1000;

/**
 * Reads a file-based catalog: every regular file below the directory, regardless of its name, that no
 * `.indexignore` excludes, in the order of their names. Only what the selection needs stays in memory.
 * Malformed documents whose package is known are listed separately.
 *
 * @throws ConfigError `catalog.malformed` with all problems of all files, one per line (the first 1000),
 * if one of them belongs to no package; `catalog.missing` if there is no such directory
 */
export async function readCatalog(
  directory: string,
  options: ReadCatalogOptions = {},
): Promise<Catalog> {
  const parts: CatalogParts = {
    packages: [],
    channels: [],
    bundles: [],
    deprecations: [],
    others: [],
    malformed: [],
  };
  const problems: Problems = { lines: [], isUnreadable: false };
  for await (const { file, problem } of walkCatalog(directory)) {
    options.signal?.throwIfAborted();
    if (problem === undefined)
      await readFileInto(parts, join(directory, file), { file, problems, ...options });
    else addUnreadable(problems, `${file}: ${problem}`);
  }
  if (problems.isUnreadable) throw malformedCatalog(options.name ?? directory, problems.lines);
  return parts;
}

async function readFileInto(
  parts: CatalogParts,
  path: string,
  { file, problems, signal }: FileOptions,
): Promise<void> {
  try {
    for await (const document of streamDocuments(path, { file })) {
      signal?.throwIfAborted();
      const { place, result } = document;
      const where = `${file}: document ${place.number} at byte ${place.offset}`;
      if ('problem' in result) addUnreadable(problems, `${where}: ${result.problem}`);
      else addParsed(parts, problems, { where, place, result });
    }
  } catch (error) {
    if (!isErrno(error, 'EACCES')) throw error;
    addUnreadable(problems, `${file}: cannot be read by this user`);
  }
}

function addUnreadable(problems: Problems, line: string): void {
  problems.lines.push(makePrintable(line));
  problems.isUnreadable = true;
}

type Parsed = {
  readonly where: string;
  readonly place: CatalogPlace;
  readonly result: ParsedDocument;
};

function addParsed(parts: CatalogParts, problems: Problems, parsed: Parsed): void {
  const { where, place, result } = parsed;
  const lines: string[] = [];
  let more = 0;
  const owner = addDocument(parts, { document: result, place }, (problem) => {
    if (lines.length < MAX_DOCUMENT_PROBLEMS) lines.push(makePrintable(`${where}: ${problem}`));
    else more++;
  });
  if (lines.length === 0) return;
  if (more > 0) lines.push(`${where}: and ${more} more`);
  append(problems.lines, lines);
  if (owner === undefined) problems.isUnreadable = true;
  else parts.malformed.push({ ...owner, problems: lines, place });
}

/** Names come from the catalog and may hold anything, such as control sequences of a terminal. */
const makePrintable = (line: string): string =>
  line.slice(0, MAX_LINE_LENGTH).replaceAll(/[\p{Cc}\u2028\u2029]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });

/**
 * Reads documents again, byte for byte as in their files. Places come from `readCatalog` of
 * the same directory; each file is opened once, and its documents come in the order given.
 *
 * @throws IntegrityError `catalog.changed` if a file has become shorter
 */
export async function readDocuments(
  directory: string,
  places: Iterable<CatalogPlace>,
  onDocument: (bytes: Buffer, place: CatalogPlace) => void | Promise<void>,
): Promise<void> {
  for (const [file, ofFile] of groupByFile(places)) {
    const handle = await openToRead(join(directory, file));
    try {
      for (const place of ofFile) {
        const bytes = Buffer.allocUnsafe(place.size);
        const { bytesRead } = await handle.read(bytes, 0, place.size, place.offset);
        if (bytesRead < place.size) throw refuseShort(place, bytesRead);
        await onDocument(bytes, place);
      }
    } finally {
      await handle.close();
    }
  }
}

function groupByFile(places: Iterable<CatalogPlace>): Map<string, CatalogPlace[]> {
  const groups = new Map<string, CatalogPlace[]>();
  for (const place of places) {
    const group = groups.get(place.file);
    if (group === undefined) groups.set(place.file, [place]);
    else group.push(place);
  }
  return groups;
}

const refuseShort = (place: CatalogPlace, found: number): IntegrityError =>
  new IntegrityError(
    'catalog.changed',
    `document ${place.number} of ${place.file} should have ${place.size} bytes, but has ${found}`,
    {
      expected: String(place.size),
      found: String(found),
      hint: 'leave the catalog alone while it is in use',
    },
  );

const IGNORE_FILE = '.indexignore';

type Walk = {
  readonly directory: string;
  /** Real path of the directory, to decide which link targets are inside. */
  readonly root: string;
  readonly effort: DecodeBudget<'steps'>;
};

/**
 * The files of a catalog in the order of their names, directory by directory, without those that an
 * `.indexignore` excludes and without those files themselves.
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
    yield { file: path.join('/'), problem: 'cannot be read by this user' };
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

/** Entries sorted by name; undefined if the directory may not be read. */
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
  const file = join(walk.directory, ...path, IGNORE_FILE);
  walk.effort.take('steps', STEPS_OF_BYTE * (await stat(file)).size); // before it is read
  return parseIgnoreFile(await readFile(file, 'utf8'), path);
}

/** A byte of an ignore file takes up to a hundred bytes of memory. */
const STEPS_OF_BYTE = 20;

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
