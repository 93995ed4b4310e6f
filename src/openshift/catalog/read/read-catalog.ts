import { join } from 'node:path';
import { IntegrityError, isErrno } from '../../../base/errors.ts';
import { append } from '../../../base/lists.ts';
import { openToRead } from '../../../base/disk/open-file.ts';
import { malformedCatalog } from '../../../shape/go-json.ts';
import { walkCatalog } from './catalog-files.ts';
import { streamDocuments } from './document-stream.ts';
import { addDocument } from './parse-document.ts';
import type { Catalog, DocumentPlace } from '../catalog.ts';
import type { ParsedDocument } from './json-documents.ts';
import type { CatalogParts } from './parse-document.ts';

export type ReadCatalogOptions = {
  readonly signal?: AbortSignal;
  /** The catalog's reference, for errors; its directory when absent. */
  readonly name?: string;
};

type FileOptions = ReadCatalogOptions & { readonly file: string; readonly problems: Problems };

type Problems = {
  readonly lines: string[];
  /** One of them is not of a package alone. */
  isUnreadable: boolean;
};

/** A document of nothing but mistakes should not fill the memory with them. */
const MAX_DOCUMENT_PROBLEMS = 20;
const MAX_LINE_LENGTH = 1000;

/**
 * Reads a file-based catalog: every regular file below the directory, whatever its name, that no
 * `.indexignore` excludes, in the order of their names. Only what the selection needs stays in memory. Malformed
 * documents that say which package they belong to are listed apart.
 *
 * @throws ConfigError `catalog.malformed` with all problems of all files, one a line (the first 1000),
 * where one of them is not of a package; `catalog.missing` when there is no such directory
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
    addUnreadable(problems, `${file}: may not be read by this user`);
  }
}

function addUnreadable(problems: Problems, line: string): void {
  problems.lines.push(makePrintable(line));
  problems.isUnreadable = true;
}

type Parsed = {
  readonly where: string;
  readonly place: DocumentPlace;
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
