import { createHash } from 'node:crypto';
import { digestFromHex } from '../../base/digest.ts';
import { bringVerified, type Attempt, type Wrong } from '../../base/download/sources.ts';
import type { Source } from '../../base/download/sources.ts';
import { openListed, openToRead } from '../../base/disk/open-file.ts';
import { untilAborted } from '../../base/wait.ts';
import type { Extent } from '../../iso/extent.ts';
import type { ExtentChunk, ExtentOpener, OpenExtent } from '../../pour/spans.ts';
import { explainWrong } from '../../pour/loop.ts';
import { tooLong } from '../../pour/span-writer.ts';
import { createPartWriter, type PartWriter } from './part-writer.ts';
import type { Filler, Part, PartGroup } from './plan-parts.ts';

export type GroupTools = {
  readonly openExtent: ExtentOpener;
  /** Bytes of the earlier object. */
  readonly openEarlier: (range: Filler) => AsyncIterable<Uint8Array>;
  /** Sends a part; a later one of the same number takes its place. The bytes are not kept. */
  readonly send: (part: Part, bytes: Uint8Array) => Promise<void>;
  /** Told the bytes that arrive. */
  readonly onBytes: (size: number, source: Pick<Source, 'local'>) => void;
  readonly signal: AbortSignal;
};

type SentGroup = Extract<PartGroup, { readonly kind: 'send' }>;

/**
 * Sends all parts of a group. When it resolves, each of its spans had its digest; a span that had not was
 * brought and sent again.
 *
 * @throws IntegrityError `extent.wrong-digest`, `extent.too-long`; whatever the tools throw; the signal's reason
 */
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
      await bringVerified((attempt) => bring(piece, attempt, { ...tools, writer }));
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

/** A file that is too short has the wrong digest, too. */
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
