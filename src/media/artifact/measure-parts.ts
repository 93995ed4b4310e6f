import { createHash, type Hash } from 'node:crypto';
import { digestOf, isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import type { Part, PlannedPart } from './plan-parts.ts';

/** An ISO whose every byte was read. */
export type MeasuredIso = {
  /** SHA-256 of the whole ISO. */
  readonly digest: Digest;
  /** Each with its digest. */
  readonly parts: readonly Required<Part>[];
};

type MeasureOptions = {
  readonly signal: AbortSignal;
  /** Bytes that were read so far. */
  readonly onProgress: (bytes: number) => void;
};

const PIECE = 4 * 2 ** 20;

/**
 * Reads an ISO from front to end: what nobody may take for granted is known then, before a byte is sent.
 *
 * @param parts by offset, without overlaps
 * @throws IntegrityError `artifact.damaged` where an extent has other bytes than its digest says, or there are
 * bytes between parts that are not zeros
 */
export async function measureParts(
  path: string,
  parts: readonly PlannedPart[],
  options: MeasureOptions,
): Promise<MeasuredIso> {
  const file = await openRandomAccess(path);
  const whole = createHash('sha256');
  const measured: Required<Part>[] = [];
  const buffer = Buffer.allocUnsafe(PIECE);
  const reading = { file, whole, buffer, ...options };
  try {
    let end = 0;
    let extent = createHash('sha256');
    for (const part of parts) {
      const { offset, size, pieceOf } = part;
      await readRange(reading, { offset: end, size: offset - end }, requireZeros(path));
      if (pieceOf?.offset === offset) extent = createHash('sha256');
      const digest = await measurePart(reading, part, extent);
      measured.push({ offset, size, digest });
      end = offset + size;
      if (pieceOf && pieceOf.offset + pieceOf.size === end) {
        requireDigest(path, pieceOf, finish(extent));
      }
    }
    await readRange(reading, { offset: end, size: file.size - end }, requireZeros(path));
    return { digest: finish(whole), parts: measured };
  } finally {
    await file.close();
  }
}

type Reading = MeasureOptions & {
  readonly file: RandomAccess;
  readonly whole: Hash;
  readonly buffer: Buffer;
};

/** @param extent what the bytes of a piece are also hashed with */
async function measurePart(reading: Reading, part: PlannedPart, extent: Hash): Promise<Digest> {
  const hash = createHash('sha256');
  const { path } = reading.file;
  const pieces: Buffer[] = [];
  await readRange(reading, part, (piece) => {
    hash.update(piece);
    if (part.pieceOf) extent.update(piece);
    if (part.extents) pieces.push(Buffer.from(piece));
  });
  const run = Buffer.concat(pieces);
  let end = part.offset;
  for (const { offset, size, digest } of part.extents ?? []) {
    const bytesOf = (from: number, to: number): Buffer =>
      run.subarray(from - part.offset, to - part.offset);
    requireZeros(path)(bytesOf(end, offset), end);
    requireDigest(path, { offset, digest }, digestOf(bytesOf(offset, offset + size)));
    end = offset + size;
  }
  const found = finish(hash);
  requireDigest(path, part, found);
  return found;
}

async function readRange(
  { file, whole, buffer, signal, onProgress }: Reading,
  range: Pick<Part, 'offset' | 'size'>,
  use: (piece: Buffer, offset: number) => void,
): Promise<void> {
  for (let done = 0; done < range.size;) {
    signal.throwIfAborted();
    const size = Math.min(PIECE, range.size - done);
    const piece = await file.read(range.offset + done, size, buffer);
    whole.update(piece);
    use(piece, range.offset + done);
    done += size;
    onProgress(range.offset + done);
  }
}

const ZEROS = Buffer.alloc(PIECE);

const requireZeros =
  (path: string) =>
  (piece: Buffer, offset: number): void => {
    if (piece.equals(ZEROS.subarray(0, piece.length))) return;
    const at = offset + piece.findIndex((byte) => byte !== 0);
    throw new IntegrityError('artifact.damaged', `${path} has bytes where there should be zeros`, {
      expected: 'zeros',
      found: `another byte at ${at}`,
      hint: VERIFY,
    });
  };

const VERIFY = 'run "sealift verify" on it, and build it again';

function requireDigest(
  path: string,
  { offset, digest }: { readonly offset: number; readonly digest?: Digest | undefined },
  found: Digest,
): void {
  if (digest === undefined || digest === found) return;
  throw new IntegrityError(
    'artifact.damaged',
    `${path} has other bytes at ${offset} than its index says: ${digest} is now ${found}`,
    { expected: digest, found, hint: VERIFY },
  );
}

function finish(hash: Hash): Digest {
  const digest = `sha256:${hash.digest('hex')}`;
  if (isDigest(digest)) return digest;
  throw new Error(`${digest} is not a digest`);
}
