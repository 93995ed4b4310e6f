import { createHash } from 'node:crypto';
import { digestFromHex } from '../../base/digest.ts';
import { openListed, openToRead } from '../../base/disk/open-file.ts';
import { bringVerified } from '../../base/download/bring-verified.ts';
import { type Attempt, type Wrong, type Source } from '../../base/download/sources.ts';
import { untilAborted } from '../../base/wait.ts';
import type { Extent } from '../../iso/index.ts';
import {
  explainWrong,
  type ExtentChunk,
  type ExtentOpener,
  type OpenExtent,
  tooLong,
} from '../../pour/index.ts';
import type { ObjectPart, Filler, PartGroup } from './parts.ts';

export type GroupTools = {
  readonly openExtent: ExtentOpener;
  readonly openEarlier: (range: Filler) => AsyncIterable<Uint8Array>;
  /** Sends a part; a later part with the same number replaces it. The bytes are not kept. */
  readonly send: (part: ObjectPart, bytes: Uint8Array) => Promise<void>;
  /** Called for the bytes that arrive. */
  readonly onBytes: (size: number, source: Pick<Source, 'local'>) => void;
  readonly signal: AbortSignal;
};

type SentGroup = Extract<PartGroup, { readonly kind: 'send' }>;

/** Resolves when each span had its digest; a span with a wrong one was fetched and sent again. */
export async function sendGroup({ parts, pieces }: SentGroup, tools: GroupTools): Promise<void> {
  const writer = createPartWriter(parts, tools.send);
  for (const piece of pieces) {
    tools.signal.throwIfAborted();
    if ('from' in piece) {
      for await (const bytes of tools.openEarlier(piece)) await writer.add(bytes);
    } else if (piece.source.kind === 'bytes') await writer.add(piece.source.bytes);
    else if (piece.source.kind === 'zero') await addZeros(piece.size, writer);
    else {
      writer.begin();
      await bringVerified((attempt) => bring(piece, attempt, { ...tools, writer }), tools.signal);
    }
  }
}

const ZEROS = new Uint8Array(1 << 20);

async function addZeros(size: number, writer: PartWriter): Promise<void> {
  for (let left = size; left > 0; left -= ZEROS.length) await writer.add(ZEROS.subarray(0, left));
}

async function bring(
  extent: Extent,
  attempt: Attempt,
  tools: GroupTools & { readonly writer: PartWriter },
): Promise<Wrong | undefined> {
  const { writer, signal, onBytes } = tools;
  const used = new Set<Source>();
  let hash = createHash('sha256');
  let position = 0;
  const opened = await tools.openExtent(extent, {
    ...attempt,
    offset: 0,
    signal,
    onFetched: (size) => {
      onBytes(size, { local: false });
    },
  });
  for await (const { offset, bytes, source } of readChunks(opened, extent.size, signal)) {
    if (offset !== position) {
      writer.takeBack();
      hash = createHash('sha256');
      position = 0;
      used.clear();
    }
    if (position + bytes.length > extent.size) throw tooLong(extent, source);
    used.add(source);
    onBytes(bytes.length, source);
    hash.update(bytes);
    position += bytes.length;
    await writer.add(bytes);
  }
  const found = digestFromHex(hash.digest('hex'));
  if (found === extent.digest && position === extent.size) return undefined;
  writer.takeBack();
  return { used, hasPrefix: false, error: explainWrong(extent, found, used) };
}

const readChunks = (
  opened: OpenExtent,
  size: number,
  signal: AbortSignal,
): AsyncIterable<ExtentChunk> =>
  opened.kind === 'stream' ? opened.chunks : readFileChunks(opened, size, signal);

const PIECE = 1 << 20;

/** A file that is too short also has the wrong digest. */
async function* readFileChunks(
  { path, position, source, isListed }: Extract<OpenExtent, { readonly kind: 'file' }>,
  size: number,
  signal: AbortSignal,
): AsyncGenerator<ExtentChunk> {
  const file = await (isListed === true ? openListed : openToRead)(path);
  try {
    const buffer = Buffer.allocUnsafe(Math.min(PIECE, size));
    for (let offset = 0; offset < size;) {
      const length = Math.min(buffer.length, size - offset);
      const reading = file.read(buffer, 0, length, position + offset);
      const { bytesRead } = await untilAborted(reading, signal);
      if (bytesRead === 0) return;
      yield { offset, bytes: buffer.subarray(0, bytesRead), source };
      offset += bytesRead;
    }
  } finally {
    await file.close();
  }
}

/** Fills the parts of a group in order, and sends each full one. */
export type PartWriter = {
  readonly add: (bytes: Uint8Array) => Promise<void>;
  /** Begins a span, which may be taken back. */
  readonly begin: () => void;
  /** Goes back to the beginning of the span; parts of it that were sent are sent again. */
  readonly takeBack: () => void;
};

/** Memory: one part, and the bytes before the span in the part in which the span began. */
function createPartWriter(
  parts: readonly ObjectPart[],
  handOn: (part: ObjectPart, bytes: Uint8Array) => Promise<void>,
): PartWriter {
  const start = parts[0]?.offset ?? 0;
  const buffer = Buffer.allocUnsafe(parts.reduce((most, { size }) => Math.max(most, size), 0));
  /** Index of the part that is being filled. */
  let index = 0;
  let filled = 0;
  /** The part in which the span began, and the number of bytes before the span in it. */
  let began = { index: 0, filled: 0 };
  let front: Uint8Array | undefined;
  const flush = async (part: ObjectPart): Promise<void> => {
    if (began.index === index) front = Buffer.from(buffer.subarray(0, began.filled));
    await handOn(part, buffer.subarray(0, part.size));
    index += 1;
    filled = 0;
  };
  return {
    async add(bytes) {
      for (let done = 0; done < bytes.length;) {
        const part = parts[index];
        if (!part) throw new Error(`more bytes than the parts from byte ${start} have`);
        const piece = bytes.subarray(done, done + part.size - filled);
        buffer.set(piece, filled);
        filled += piece.length;
        done += piece.length;
        if (filled === part.size) await flush(part);
      }
    },
    begin() {
      began = { index, filled };
      front = undefined;
    },
    takeBack() {
      if (index > began.index && front) buffer.set(front);
      ({ index, filled } = began);
    },
  };
}
