import { isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { openRandomAccess, type RandomAccess } from '../../iso/random-access.ts';
import { checkText, parseObject } from '../index/written-json.ts';

/** A run of bytes of the new ISO; between them are zeros. */
export type DeltaExtent = {
  readonly offset: number;
  readonly size: number;
  readonly digest: Digest;
};

/** What the new ISO is made of. Offsets and sizes are bytes. */
export type Delta = {
  /** Digest of the index of the ISO that the delta is for. */
  readonly from: string;
  /** Bytes of the new ISO. */
  readonly size: number;
  /** By offset, without overlaps. */
  readonly extents: readonly DeltaExtent[];
  /** Those whose bytes are in the delta, one behind another from `start` on; all others are in the old ISO. */
  readonly carried: readonly DeltaExtent[];
};

/*
 * sealift delta 1 <bytes of the JSON>\n      padded with spaces to 64 bytes
 * {"carried":[...],"extents":[[offset,size,digest],...],"from":"sha256:...","size":...}
 * the bytes of the carried extents, one behind another
 */
const HEAD_SIZE = 64;
const KIND = 'sealift delta ';
const MAGIC = `${KIND}1 `;

/** 200,000 extents; an index of media has at most 132,000. */
const LARGEST_JSON = 24 * 1024 * 1024;
const MOST_VALUES = 1_000_000;

/** The first bytes of a delta, before those that it carries. */
export function formatDelta({ carried, extents, from, size }: Delta): Uint8Array {
  const rows = extents.map(({ offset, size, digest }) => [offset, size, digest]);
  const numbers = new Map(extents.map(({ digest }, number) => [digest, number]));
  const json = JSON.stringify({
    carried: carried.map(({ digest }) => numbers.get(digest)),
    extents: rows,
    from,
    size,
  });
  const text = Buffer.from(json);
  const head = Buffer.from(`${MAGIC}${text.length}\n`.padEnd(HEAD_SIZE));
  return Buffer.concat([head, text]);
}

/**
 * @returns with the offset of the first carried byte
 * @throws IntegrityError `delta.malformed`
 */
export async function readDelta(file: RandomAccess): Promise<Delta & { readonly start: number }> {
  const jsonSize = await readJsonSize(file);
  const start = HEAD_SIZE + jsonSize;
  const refuse = (problem = 'is not of the form we write'): IntegrityError =>
    malformed(file.path, problem);
  const text = checkText(await file.read(HEAD_SIZE, jsonSize), MOST_VALUES, refuse);
  const { carried, extents, from, size } = parseObject(text, refuse);
  if (typeof from !== 'string' || !isCount(size)) throw refuse();
  if (!Array.isArray(extents) || !Array.isArray(carried)) throw refuse();
  const all = (extents as readonly unknown[]).map((row) => parseExtent(row) ?? fail(refuse()));
  requireOrder(all, size, refuse);
  const own = (carried as readonly unknown[]).map(
    (number) => all[Number(number)] ?? fail(refuse()),
  );
  const bytes = own.reduce((sum, { size }) => sum + size, 0);
  if (start + bytes !== file.size) {
    throw refuse(`has ${file.size} bytes and should have ${start + bytes}`);
  }
  return { from, size, extents: all, carried: own, start };
}

/** Whether a file begins as a delta of any version. */
export async function isDelta(path: string): Promise<boolean> {
  const file = await openRandomAccess(path);
  try {
    const start = await file.read(0, Math.min(KIND.length, file.size));
    return start.toString('latin1') === KIND;
  } finally {
    await file.close();
  }
}

async function readJsonSize(file: RandomAccess): Promise<number> {
  if (file.size < HEAD_SIZE) throw malformed(file.path, 'is shorter than the head of one');
  const head = (await file.read(0, HEAD_SIZE)).toString('latin1');
  const [, size] = /^sealift delta 1 (\d{1,8})\n *$/.exec(head) ?? [];
  if (size === undefined) throw malformed(file.path, 'does not begin as one');
  if (Number(size) <= LARGEST_JSON && HEAD_SIZE + Number(size) <= file.size) return Number(size);
  throw malformed(file.path, 'is cut off');
}

function parseExtent(row: unknown): DeltaExtent | undefined {
  if (!Array.isArray(row)) return undefined;
  const [offset, size, digest] = row as readonly unknown[];
  if (!isCount(offset) || !isCount(size) || size === 0) return undefined;
  return typeof digest === 'string' && isDigest(digest) ? { offset, size, digest } : undefined;
}

function requireOrder(extents: readonly DeltaExtent[], size: number, refuse: () => IntegrityError) {
  let end = 0;
  for (const extent of extents) {
    if (extent.offset < end) throw refuse();
    end = extent.offset + extent.size;
  }
  if (end > size) throw refuse();
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 52;

function fail(error: IntegrityError): never {
  throw error;
}

const malformed = (path: string, problem: string): IntegrityError =>
  new IntegrityError('delta.malformed', `${path} is not a whole delta: it ${problem}`, {
    hint: 'copy it again from where it was made',
  });
