import { posix } from 'node:path';
import { SaxesParser } from 'saxes';
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl';
import { ConfigError, SealiftError } from '../base/errors.ts';
import { formatSize } from '../base/text/words.ts';

/*
 * Owns the parts of an .xlsx workbook (ECMA-376 part 2, Open Packaging Conventions): the archive with its limits, and
 * its XML. External links are never followed.
 */

/** A start tag, without the prefix of its name. */
export type Tag = {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | undefined>>;
};

export type XmlHandlers = {
  readonly open?: (tag: Tag) => void;
  readonly text?: (text: string) => void;
  readonly close?: (name: string) => void;
};

export type Workbook = {
  /** Reads a part from start to end, if the workbook has it. */
  readonly parse: (path: string, handlers: XmlHandlers) => Promise<void>;
  /** Paths of parts by the id of their relation to a part, and by its type's last word. */
  readonly relationsOf: (path: string) => Promise<ReadonlyMap<string, string>>;
};

const MAX_ENTRIES = 1000;
/** Bytes of all parts together. */
const MAX_INFLATED = 200 << 20;
/** Sheets of ten thousand sites reach about 20 times; small parts may reach more. */
const MAX_RATIO = 100;
const RATIO_FLOOR = 4 << 20;
/** Levels of elements, and attributes of one: workbooks have about ten, and a dozen. */
const MAX_DEPTH = 100;
const MAX_ATTRIBUTES = 200;

/** First bytes of OLE files: workbooks of Excel before 2007, and those with a password. */
const OLE = 'd0cf11e0a1b11ae1';

export type WorkbookOptions = {
  /** Name of the file in errors. */
  readonly shownAs: string;
  readonly signal: AbortSignal;
};

/** @throws ConfigError `sites.spreadsheet`, `sites.too-large`, `sites.damaged` */
export async function openWorkbook(
  bytes: Buffer,
  { shownAs, signal }: WorkbookOptions,
): Promise<Workbook> {
  const rescue = <Result>(work: () => Promise<Result>): Promise<Result> =>
    work().catch((cause: unknown) => {
      throw explainWorkbook(cause, shownAs);
    });
  const [zip, entries] = await rescue(() => openArchive(bytes, signal));
  const parse: Workbook['parse'] = async (path, handlers) => {
    const entry = entries.get(path);
    if (entry) await rescue(() => parseEntry(zip, { entry, handlers, signal }));
  };
  return { parse, relationsOf: (path) => readRelations(path, parse) };
}

async function openArchive(
  bytes: Buffer,
  signal: AbortSignal,
): Promise<readonly [ZipFile, ReadonlyMap<string, Entry>]> {
  if (bytes.toString('hex', 0, 8) === OLE) {
    throw new OtherKind('is a workbook of Excel before 2007, or has a password');
  }
  const zip = await fromBufferPromise(bytes);
  const entries = await listEntries(zip, signal);
  const kind = findKind(entries);
  if (kind !== undefined) throw new OtherKind(kind);
  return [zip, entries];
}

async function listEntries(zip: ZipFile, signal: AbortSignal): Promise<ReadonlyMap<string, Entry>> {
  if (zip.entryCount > MAX_ENTRIES) throw new TooLarge(`has more than ${MAX_ENTRIES} parts`);
  const entries = new Map<string, Entry>();
  let size = 0;
  for await (const entry of zip.eachEntry()) {
    signal.throwIfAborted();
    const { uncompressedSize, compressedSize, fileName } = entry;
    size += uncompressedSize;
    if (size > MAX_INFLATED)
      throw new TooLarge(`has more than ${formatSize(MAX_INFLATED)} unpacked`);
    if (uncompressedSize > RATIO_FLOOR && uncompressedSize > compressedSize * MAX_RATIO) {
      throw new TooLarge(`unpacks to more than ${MAX_RATIO} times its size`);
    }
    entries.set(fileName, entry);
  }
  return entries;
}

function findKind(entries: ReadonlyMap<string, Entry>): string | undefined {
  const names = [...entries.keys()];
  if (names.some((name) => name.endsWith('vbaProject.bin'))) return 'has macros';
  if (names.includes('xl/workbook.bin')) return 'is a binary workbook (.xlsb)';
  if ([...entries.values()].some((entry) => entry.isEncrypted())) return 'has a password';
  return undefined;
}

type Parsing = {
  readonly entry: Entry;
  readonly handlers: XmlHandlers;
  readonly signal: AbortSignal;
};

async function parseEntry(zip: ZipFile, { entry, handlers, signal }: Parsing): Promise<void> {
  const parser = new SaxesParser<{ position: false; xmlns: false }>({
    position: false,
    xmlns: false,
  });
  const plain = (name: string): string => name.slice(name.indexOf(':') + 1);
  let [depth, attributes] = [0, 0];
  parser.on('opentagstart', () => {
    attributes = 0;
    if (++depth > MAX_DEPTH) throw new TooLarge(`has elements in more than ${MAX_DEPTH} levels`);
  });
  parser.on('attribute', () => {
    if (++attributes > MAX_ATTRIBUTES)
      throw new TooLarge(`has an element of more than ${MAX_ATTRIBUTES} attributes`);
  });
  parser.on('doctype', () => {
    throw new OtherKind('has a document type declaration, which no spreadsheet program writes');
  });
  parser.on('opentag', ({ name, attributes }) => {
    handlers.open?.({ name: plain(name), attributes });
  });
  if (handlers.text) {
    parser.on('text', handlers.text);
    parser.on('cdata', handlers.text);
  }
  parser.on('closetag', ({ name }) => {
    depth -= 1;
    handlers.close?.(plain(name));
  });
  const decoder = new TextDecoder('utf-8', { fatal: true });
  // The stream ends with an error if it has more bytes than the directory of the archive says.
  for await (const piece of await zip.openReadStreamPromise(entry)) {
    signal.throwIfAborted();
    parser.write(decoder.decode(piece as Buffer, { stream: true }));
  }
  parser.write(decoder.decode()).close();
}

/** Part 2, 9.3: relations of a part are in `_rels` next to it, and its targets are relative to it. */
async function readRelations(
  path: string,
  parse: Workbook['parse'],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const folder = posix.dirname(path);
  await parse(posix.join(folder, '_rels', `${posix.basename(path)}.rels`), {
    open({ name, attributes: { Id, Type = '', Target = '', TargetMode } }) {
      if (name !== 'Relationship' || TargetMode === 'External') return;
      const target = posix.join('/', Target.startsWith('/') ? '' : folder, Target).slice(1);
      if (Id !== undefined) found.set(Id, target);
      found.set(posix.basename(Type), target);
    },
  });
  return found;
}

/** Predicate of a sentence about a file that is not a workbook of sites. */
class OtherKind extends Error {}

/** Predicate of a sentence about a workbook above its limits. */
class TooLarge extends Error {}

function explainWorkbook(cause: unknown, shownAs: string): unknown {
  const { name, message } = cause as Error;
  if (name === 'AbortError' || cause instanceof SealiftError) return cause;
  if (cause instanceof OtherKind) {
    return new ConfigError('sites.spreadsheet', `${shownAs} ${message}`, {
      expected: 'an .xlsx workbook without macros and password, or a table as .csv, .tsv or .yaml',
      hint: 'save it as "Excel workbook (.xlsx)" without a password, or export it as CSV UTF-8',
    });
  }
  if (cause instanceof TooLarge) {
    const hint = 'keep only the sheet of the sites in it';
    return new ConfigError('sites.too-large', `${shownAs} ${message}`, { hint });
  }
  return new ConfigError('sites.damaged', `${shownAs} cannot be read: ${messageOf(cause)}`, {
    hint: 'open it in a spreadsheet program and save it again',
  });
}

/** The parser quotes what it found, which may be a password. */
const messageOf = (cause: unknown): string =>
  /^(?:\d+:\d+: )?[\w ]+/.exec((cause as Error).message)?.[0] ?? 'its XML is not well-formed';
