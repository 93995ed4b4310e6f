import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, IntegrityError } from '../../../base/errors.ts';
import { isErrno } from '../../../base/errno.ts';
import { walkCatalog } from './catalog-files.ts';
import { streamDocuments } from './document-stream.ts';
import { addDocument } from './parse-document.ts';
import type { Catalog, DocumentPlace } from '../catalog.ts';
import type { CatalogParts } from './parse-document.ts';

export type ReadCatalogOptions = {
  readonly signal?: AbortSignal;
  /** The catalog's reference, for errors; its directory when absent. */
  readonly name?: string;
};

type FileOptions = ReadCatalogOptions & { readonly file: string; readonly problems: Problems };

/** A catalog of nothing but mistakes should not fill the memory with them. */
const MAX_PROBLEMS = 1000;
const MAX_LINE_LENGTH = 1000;

/**
 * Reads a file-based catalog: every regular file below the directory, whatever its name, that no
 * `.indexignore` excludes, in the order of their names. Only what decides is kept in memory.
 *
 * @throws ConfigError `catalog.malformed` with all problems of all files, one a line (the first 1000);
 * `catalog.missing` when there is no such directory
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
  };
  const problems = new Problems();
  for await (const { file, problem } of walkCatalog(directory)) {
    options.signal?.throwIfAborted();
    if (problem === undefined)
      await readFileInto(parts, join(directory, file), { file, problems, ...options });
    else problems.add(`${file}: ${problem}`);
  }
  problems.throwIfAny(options.name ?? directory);
  return parts;
}

async function readFileInto(
  parts: CatalogParts,
  path: string,
  { file, problems, signal }: FileOptions,
): Promise<void> {
  try {
    for await (const { place, result } of streamDocuments(path, { file })) {
      signal?.throwIfAborted();
      const report = (problem: string): void => {
        problems.add(`${file}: document ${place.number} at byte ${place.offset}: ${problem}`);
      };
      if ('problem' in result) report(result.problem);
      else addDocument(parts, { document: result, place }, report);
    }
  } catch (error) {
    if (!isErrno(error, 'EACCES')) throw error;
    problems.add(`${file}: may not be read by this user`);
  }
}

class Problems {
  readonly #lines: string[] = [];
  #count = 0;

  add(line: string): void {
    this.#count++;
    if (this.#lines.length < MAX_PROBLEMS) this.#lines.push(makePrintable(line));
  }

  throwIfAny(catalog: string): void {
    if (this.#count === 0) return;
    const more = this.#count - this.#lines.length;
    const lines = more > 0 ? [...this.#lines, `and ${more} more`] : this.#lines;
    const count = this.#count === 1 ? 'a problem' : `${this.#count} problems`;
    throw new ConfigError(
      'catalog.malformed',
      [`catalog ${catalog} has ${count}:`, ...lines.map((line) => `  ${line}`)].join('\n'),
    );
  }
}

/** Names come from the catalog and may hold anything, a terminal's commands among it. */
const makePrintable = (line: string): string =>
  line.slice(0, MAX_LINE_LENGTH).replaceAll(/[\p{Cc}\u2028\u2029]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });

/**
 * Reads documents again, byte for byte as they stand in their files. Places come from `readCatalog` of
 * the same directory; each file is opened once, and its documents come in the order given.
 *
 * @throws IntegrityError `catalog.changed` when a file has become shorter since
 */
export async function readDocuments(
  directory: string,
  places: Iterable<DocumentPlace>,
  onDocument: (bytes: Buffer, place: DocumentPlace) => void | Promise<void>,
): Promise<void> {
  for (const [file, ofFile] of groupByFile(places)) {
    const handle = await open(join(directory, file), 'r');
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

function groupByFile(places: Iterable<DocumentPlace>): Map<string, DocumentPlace[]> {
  const groups = new Map<string, DocumentPlace[]>();
  for (const place of places) {
    const group = groups.get(place.file);
    if (group === undefined) groups.set(place.file, [place]);
    else group.push(place);
  }
  return groups;
}

const refuseShort = (place: DocumentPlace, found: number): IntegrityError =>
  new IntegrityError(
    'catalog.changed',
    `document ${place.number} of ${place.file} should have ${place.size} bytes, but has ${found}`,
    {
      expected: String(place.size),
      found: String(found),
      hint: 'leave the catalog alone while it is in use',
    },
  );
