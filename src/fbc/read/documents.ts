import type { FileHandle } from 'node:fs/promises';
import { openToRead } from '../../base/disk/open-file.ts';
import type { CatalogPlace } from '../catalog.ts';
import { OPEN_BRACE, parseObject, scanObject, startScan, type ParseResult } from './json.ts';
import { findMarker, isSpace, parsePiece } from './yaml.ts';

export type StreamedDocument = { readonly place: CatalogPlace; readonly result: ParseResult };

export type StreamOptions = {
  /** The file's name in places. */
  readonly file: string;
  /** Bytes read at once. */
  readonly chunkSize?: number;
  /** Bytes of the largest document. */
  readonly maxSize?: number;
};

/** Published bundles have less than 100 KiB, and some MiB with all manifests in them. */
const MAX_DOCUMENT_SIZE = 64 << 20;

const NEWLINE = 0x0a;

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

type Stream = {
  readonly window: ByteWindow;
  readonly file: string;
  readonly maxSize: number;
  /** Number of the last document. */
  number: number;
};

/**
 * The documents of a file: a stream of JSON objects when its first byte that is not a space is `{`, else of
 * YAML documents. JSON may change to YAML at a `---`, and JSON objects may be between two of them. Never
 * more than one document is in memory. Reading stops at a document whose end is not found.
 */
export async function* streamDocuments(
  path: string,
  options: StreamOptions,
): AsyncGenerator<StreamedDocument> {
  const file = await openToRead(path);
  try {
    const stream: Stream = {
      window: new ByteWindow(file, options.chunkSize),
      file: options.file,
      maxSize: options.maxSize ?? MAX_DOCUMENT_SIZE,
      number: 0,
    };
    await skipByteOrderMark(stream.window);
    const isJson = (await peekContent(stream.window)) === OPEN_BRACE;
    const goesOn = isJson ? yield* streamJson(stream) : true;
    if (goesOn) yield* streamYaml(stream);
  } finally {
    await file.close();
  }
}

async function skipByteOrderMark(window: ByteWindow): Promise<void> {
  while (window.view.length < 3 && (await window.readMore()));
  if (window.view.subarray(0, 3).equals(BYTE_ORDER_MARK)) window.skip(3);
}

/** The first byte that is not a space. Blank lines before it are skipped; its indentation stays. */
async function peekContent(window: ByteWindow): Promise<number | undefined> {
  for (;;) {
    const { view } = window;
    let at = 0;
    let line = 0;
    while (isSpace(view[at])) if (view[at++] === NEWLINE) line = at;
    window.skip(line);
    if (at < view.length) return view[at];
    if (!(await window.readMore())) return undefined;
  }
}

/** Returns true if YAML follows, after a `---`. */
async function* streamJson(stream: Stream): AsyncGenerator<StreamedDocument, boolean> {
  const { window } = stream;
  for (;;) {
    const first = await peekContent(window);
    if (first === undefined) return false;
    if (first !== OPEN_BRACE) {
      if (await startsWithMarker(window)) return true;
      yield describe(stream, 0, `should begin with "{", but begins with ${await quote(window)}`);
      return false;
    }
    window.skip(window.view.indexOf(OPEN_BRACE));
    const scan = startScan();
    const problem = await findEnd(stream, () => scanObject(scan, window.view));
    if (problem !== undefined) {
      yield describe(stream, scan.position, problem);
      return false;
    }
    const result = parseObject(scan, window.view);
    yield { place: placeOf(stream, { start: 0, size: scan.position, syntax: 'json' }), result };
    window.skip(scan.position);
  }
}

async function startsWithMarker(window: ByteWindow): Promise<boolean> {
  let isEnd = false;
  while (window.view.length < 4 && !isEnd) isEnd = !(await window.readMore());
  return findMarker(window.view.subarray(0, 4), 0, isEnd) === 0;
}

/** The start of the text in place of a document. */
async function quote(window: ByteWindow): Promise<string> {
  while (window.view.length < 20 && (await window.readMore()));
  const [line = ''] = window.view.toString('utf8', 0, 20).trimStart().split('\n');
  return JSON.stringify(line);
}

/** Reads on until `isFound`; returns the problem if the document is too large or has no end. */
async function findEnd(stream: Stream, isFound: () => boolean): Promise<string | undefined> {
  while (!isFound()) {
    const { length } = stream.window.view;
    if (length > stream.maxSize) {
      return `has more than ${stream.maxSize} bytes, the most that is read`;
    }
    if (!(await stream.window.readMore())) return 'ends before its closing brace';
  }
  return undefined;
}

async function* streamYaml(stream: Stream): AsyncGenerator<StreamedDocument> {
  const { window } = stream;
  for (let isLast = false; !isLast;) {
    const piece = await readPiece(stream);
    if (piece === undefined) {
      const problem = `has more than ${stream.maxSize} bytes, the most that is read`;
      yield describe(stream, window.view.length, problem);
      return;
    }
    for (const document of parsePiece(window.view.subarray(0, piece.size))) {
      yield { place: placeOf(stream, document), result: document.result };
    }
    isLast = piece.isLast;
    window.skip(isLast ? piece.size : piece.size + 3);
  }
}

/** Reads the next piece: up to a marker, or to the end of the file; undefined if it is too large. */
async function readPiece(
  stream: Stream,
): Promise<{ readonly size: number; readonly isLast: boolean } | undefined> {
  const { window } = stream;
  let searched = 0;
  for (let isEnd = false; ;) {
    const marker = findMarker(window.view, searched, isEnd);
    const size = marker >= 0 ? marker : window.view.length;
    if (size > stream.maxSize) return undefined;
    if (marker >= 0 || isEnd) return { size, isLast: marker < 0 };
    searched = Math.max(0, window.view.length - 4);
    isEnd = !(await window.readMore());
  }
}

function placeOf(
  stream: Stream,
  document: { readonly start: number; readonly size: number; readonly syntax: 'json' | 'yaml' },
): CatalogPlace {
  return {
    file: stream.file,
    number: ++stream.number,
    offset: stream.window.offset + document.start,
    size: document.size,
    syntax: document.syntax,
  };
}

/** A document whose end is not known. */
const describe = (stream: Stream, size: number, problem: string): StreamedDocument => ({
  place: placeOf(stream, { start: 0, size, syntax: 'json' }),
  result: { problem },
});

const DEFAULT_CHUNK_SIZE = 1 << 20;

/**
 * The part of a file that is not yet consumed, as far as it has been read. One buffer serves the whole
 * file: it is as large as the largest run of bytes that was ever held at once.
 */
class ByteWindow {
  readonly #file: FileHandle;
  readonly #chunkSize: number;
  #buffer: Buffer;
  #start = 0;
  #end = 0;
  #offset = 0;

  constructor(file: FileHandle, chunkSize = DEFAULT_CHUNK_SIZE) {
    this.#file = file;
    this.#chunkSize = chunkSize;
    this.#buffer = Buffer.allocUnsafeSlow(2 * chunkSize);
  }

  /** Valid until the next `readMore`. */
  get view(): Buffer {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  /** Position of the view's first byte in the file. */
  get offset(): number {
    return this.#offset;
  }

  skip(count: number): void {
    this.#start += count;
    this.#offset += count;
  }

  /** Makes the view longer by at most a chunk; false at the end of the file. */
  async readMore(): Promise<boolean> {
    this.#makeRoom();
    const { bytesRead } = await this.#file.read(this.#buffer, this.#end, this.#chunkSize);
    this.#end += bytesRead;
    return bytesRead > 0;
  }

  #makeRoom(): void {
    if (this.#end + this.#chunkSize <= this.#buffer.length) return;
    const held = this.#end - this.#start;
    // Only a buffer that would stay more than half full doubles, so each byte is moved about once.
    const grown =
      held > this.#buffer.length / 2 || held + this.#chunkSize > this.#buffer.length
        ? Buffer.allocUnsafeSlow(2 * this.#buffer.length)
        : this.#buffer;
    this.#buffer.copy(grown, 0, this.#start, this.#end);
    this.#buffer = grown;
    this.#start = 0;
    this.#end = held;
  }
}
