import { createHash, type Hash } from 'node:crypto';
import { type Digest, digestOf, isDigest } from '../../base/digest.ts';
import { openToRead } from '../../base/disk/open-file.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';

/** A run of bytes of the ISO that is a layer of its artifact. Between parts are zeros. */
export type Part = {
  /** Bytes from the start of the ISO. */
  readonly offset: number;
  /** Bytes, more than 0. */
  readonly size: number;
  /** Absent if only the bytes give it. */
  readonly digest?: Digest;
};

/** A part in the plan of an ISO. */
export type PlannedPart = Part & {
  /** The small extents in it, if there are several; none is larger than a run may be. */
  readonly extents?: readonly Part[];
  /** The extent of which it is a piece, if that extent is too large for one layer. */
  readonly pieceOf?: Part;
};

/** Bytes; registries refuse layers over some 10 GiB. */
const LARGEST = 8 * 2 ** 30;

/** From this size on, an extent is its own layer: the layer of an image is the image's own blob. */
const OWN = 64 * 1024;

/** Zeros between two small extents that are sent with them. */
const GAP = 16 * 1024;

/** Bytes of small extents in one layer, with the zeros between them. */
const RUN = 16 * 2 ** 20;

/**
 * Cuts an ISO into layers: each blob and each large file is its own, so that other ISOs and the images share
 * it; small extents are joined with their neighbours.
 *
 * @param extents by offset, without overlaps
 */
export function planParts(extents: readonly Part[], largest = LARGEST): readonly PlannedPart[] {
  const parts: PlannedPart[] = [];
  let run: Part[] = [];
  const closeRun = (): void => {
    const joined = joinRun(run);
    if (joined) parts.push(joined);
    run = [];
  };
  for (const { offset, size, digest } of extents) {
    const extent: Part = { offset, size, ...withoutUndefined({ digest }) };
    if (size >= OWN) {
      closeRun();
      for (const part of cut(extent, largest)) parts.push(part);
    } else if (size > 0) {
      if (!belongsTo(run, extent)) closeRun();
      run.push(extent);
    }
  }
  closeRun();
  return parts;
}

function belongsTo(run: readonly Part[], { offset, size }: Part): boolean {
  const [first, last] = [run[0], run.at(-1)];
  if (!first || !last) return true;
  return offset - (last.offset + last.size) <= GAP && offset + size - first.offset <= RUN;
}

/** A single extent stays as it was. */
function joinRun(run: readonly Part[]): PlannedPart | undefined {
  const [first, last] = [run[0], run.at(-1)];
  if (!first || !last || first === last) return first;
  return { offset: first.offset, size: last.offset + last.size - first.offset, extents: run };
}

function* cut(extent: Part, largest: number): Generator<PlannedPart> {
  if (extent.size <= largest) {
    yield extent;
    return;
  }
  for (let done = 0; done < extent.size; done += largest) {
    const size = Math.min(largest, extent.size - done);
    yield { offset: extent.offset + done, size, pieceOf: extent };
  }
}

/** An ISO whose every byte was read. */
export type MeasuredIso = {
  /** SHA-256 of the whole ISO. */
  readonly digest: Digest;
  /** Each with its digest. */
  readonly parts: readonly Required<Part>[];
};

type MeasureOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number) => void;
};

const PIECE = 4 * 2 ** 20;

/**
 * Reads an ISO from front to end, so that everything is measured before a byte is sent.
 *
 * @param parts by offset, without overlaps
 * @throws IntegrityError `artifact.damaged` if an extent has other bytes than its digest states,
 * or there are bytes between parts that are not zeros
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

/** @param extent hash that the bytes of a piece are also added to */
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

/** Bytes of a piece that is sent. */
const SENT_PIECE = 1 << 20;

/** The bytes of a part of a file, up to its end. */
export async function* readPart(path: string, { offset, size }: Part): AsyncGenerator<Uint8Array> {
  const file = await openToRead(path);
  try {
    for (let done = 0; done < size;) {
      const { bytesRead, buffer } = await file.read({
        buffer: Buffer.allocUnsafe(Math.min(SENT_PIECE, size - done)),
        position: offset + done,
      });
      if (bytesRead === 0) return; // who sends it counts
      done += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
