import { isMap, isScalar, LineCounter, type Document } from 'yaml';
import { composeDocuments, readYamlTokens, YamlExcess } from '../../shape/parse-text.ts';
import { OPEN_BRACE, parseObject, scanObject, startScan, type ParseResult } from './json.ts';

/** A document within a piece of a YAML stream; `start` and `size` are bytes of the piece. */
export type PieceDocument = {
  readonly start: number;
  readonly size: number;
  readonly syntax: 'json' | 'yaml';
  readonly result: ParseResult;
};

/**
 * Limits of a document for the YAML parser, in bytes and in marks that may begin a node. The parser
 * takes about a kilobyte of memory for each mark; published bundles have some 65 in each KiB.
 */
const MAX_YAML_SIZE = 16 << 20;
const MAX_YAML_MARKS = 250_000;
const YAML_MARKS = new Set(Buffer.from('\n,:-[{'));

const NEWLINE = 0x0a;
const MARKER = Buffer.from('\n---');
const SPACES = new Set([0x20, 0x09, 0x0d, NEWLINE]);

export const isSpace = (byte: number | undefined): boolean =>
  byte !== undefined && SPACES.has(byte);

/**
 * Position of the next `---` that begins a line and is followed by its end or white space (YAML 1.2.2,
 * 9.1.2), -1 if `bytes` has no such marker.
 *
 * @param isEnd true if nothing follows `bytes`, so a marker may be at their very end
 */
export function findMarker(bytes: Buffer, from: number, isEnd: boolean): number {
  if (from === 0 && isMarker(bytes, 0, isEnd)) return 0;
  let at = bytes.indexOf(MARKER, from);
  while (at >= 0 && !isMarker(bytes, at + 1, isEnd)) at = bytes.indexOf(MARKER, at + 1);
  return at < 0 ? -1 : at + 1;
}

function isMarker(bytes: Buffer, at: number, isEnd: boolean): boolean {
  const end = at + 3;
  if (bytes.toString('latin1', at, end) !== '---') return false;
  return end === bytes.length ? isEnd : isSpace(bytes[end]);
}

/** The documents between two markers: none if only comments, several if JSON objects follow each other. */
export function parsePiece(bytes: Buffer): readonly PieceDocument[] {
  const content = findContent(bytes);
  if (content === bytes.length) return [];
  const objects = bytes[content] === OPEN_BRACE ? parseObjects(bytes, content) : undefined;
  if (objects !== undefined) return objects;
  const start = findFirstLine(bytes);
  return [
    { start, size: bytes.length - start, syntax: 'yaml', result: parseYaml(bytes.subarray(start)) },
  ];
}

/** The first byte that is neither space nor of a comment or directive. */
function findContent(bytes: Buffer): number {
  let at = 0;
  for (;;) {
    while (isSpace(bytes[at])) at++;
    const isAside = bytes[at] === 0x23 || (bytes[at] === 0x25 && bytes[at - 1] === NEWLINE);
    if (!isAside) return at;
    const end = bytes.indexOf(NEWLINE, at);
    if (end < 0) return bytes.length;
    at = end;
  }
}

/** The start of the first line that is not blank; its indentation matters. */
function findFirstLine(bytes: Buffer): number {
  let start = 0;
  for (let at = 0; isSpace(bytes[at]); at++) {
    if (bytes[at] === NEWLINE) start = at + 1;
  }
  return start;
}

/** JSON objects up to the end of `bytes`; undefined if they have anything else, such as a flow mapping. */
function parseObjects(bytes: Buffer, from: number): readonly PieceDocument[] | undefined {
  const documents: PieceDocument[] = [];
  for (let start = from; start < bytes.length;) {
    const scan = startScan();
    const rest = bytes.subarray(start);
    if (rest[0] !== OPEN_BRACE || !scanObject(scan, rest)) return undefined;
    const result = parseObject(scan, rest);
    if ('problem' in result) return undefined;
    documents.push({ start, size: scan.position, syntax: 'json', result });
    start += scan.position;
    while (isSpace(bytes[start])) start++;
  }
  return documents;
}

function parseYaml(bytes: Buffer): ParseResult {
  const excess = findExcess(bytes);
  if (excess !== undefined) return { problem: excess };
  const lines = new LineCounter();
  try {
    const document = composeFirst(bytes.toString('utf8'), lines);
    const [error] = document.errors;
    if (error) return describeFault(error.message, lines.linePos(error.pos[0]));
    return {
      value: document.toJS({ maxAliasCount: 100 }) as unknown,
      keys: readKeys(document.contents),
    };
  } catch (error) {
    if (error instanceof YamlExcess) {
      return describeFault(error.message, lines.linePos(error.offset));
    }
    // The parser throws ReferenceError for aliases that expand too far or are unknown, and RangeError.
    if (!(error instanceof ReferenceError || error instanceof RangeError)) throw error;
    return { problem: `is not readable YAML: ${error.message}` };
  }
}

function findExcess(bytes: Buffer): string | undefined {
  if (bytes.length > MAX_YAML_SIZE) {
    return `has ${bytes.length} bytes of YAML, but at most ${MAX_YAML_SIZE} are read`;
  }
  const marks = countMarks(bytes);
  if (marks <= MAX_YAML_MARKS) return undefined;
  return `has ${marks} places where a YAML node may begin, but at most ${MAX_YAML_MARKS} are read`;
}

/** The only document of the piece; an empty piece has an empty document. */
function composeFirst(text: string, lines: LineCounter): Document.Parsed {
  const options = { merge: true, prettyErrors: false, uniqueKeys: false, stringKeys: true };
  const [document] = composeDocuments(readYamlTokens(text, { lines }), text.length, options);
  return document;
}

const describeFault = (
  message: string,
  { line, col }: { readonly line: number; readonly col: number },
): ParseResult => ({ problem: `is not valid YAML: ${message} (its line ${line}, column ${col})` });

function countMarks(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if (YAML_MARKS.has(byte)) count++;
  return count;
}

function readKeys(contents: unknown): readonly string[] {
  if (!isMap(contents)) return [];
  return contents.items.map(({ key }) => (isScalar(key) ? String(key.value) : ''));
}
