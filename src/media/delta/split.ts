import { createHash, type Hash } from 'node:crypto';
import { rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { nameAside } from '../../base/disk/aside.ts';
import { explaining } from '../../base/disk/disk-errors.ts';
import { syncDirectory, writeWhole } from '../../base/disk/files.ts';
import { createFile } from '../../base/disk/open-file.ts';
import { publishFile } from '../../base/disk/publish.ts';
import { UsageError } from '../../base/errors.ts';
import { useImage } from '../open.ts';
import { combine } from './join.ts';
import { readMode } from './open.ts';
import { formatPartHead, MOST_PARTS, PARITY, sizeOfPart, type PartList } from './part.ts';

export type SplitOptions = {
  /** Limit that each part stays below: FAT32 has files of up to 4 GiB less one byte. */
  readonly maxPartSize: number;
  readonly signal: AbortSignal;
  /** Throws if a part may not be written to this path. */
  readonly claim: (path: string) => Promise<void>;
};

const PIECE = 1 << 20;

type Part = {
  readonly number: number;
  readonly path: string;
  readonly aside: string;
  readonly file: FileHandle;
  readonly hash: Hash;
};

/**
 * Cuts a delta into parts of equal size and a parity part: `X.1`, `X.2`, ..., `X.parity`. Any one of them may
 * be lost. The delta itself stays.
 *
 * @throws UsageError `usage.max-part-size`; the errors of `claim`; DiskError `output.full`, ...
 */
export async function splitDelta(path: string, options: SplitOptions): Promise<readonly string[]> {
  return useImage(path, async (whole) => {
    const list = planParts(whole.size, options.maxPartSize);
    const names = list.parts.map((_, at) => `${path}.${at + 1}`);
    const paths = [`${path}.parity`, ...names];
    for (const part of paths) await options.claim(part);
    const mode = await readMode(path);
    const parts: Part[] = [];
    try {
      for (const [number, path] of paths.entries()) {
        const aside = await nameAside(path);
        const file = await explaining(path, () => createFile(aside, mode));
        parts.push({ number, path, aside, file, hash: createHash('sha256') });
      }
      await fill(parts, list, { read: whole.read, signal: options.signal });
      for (const { file, aside, path } of parts) await publishFile(file, aside, path);
      await explaining(path, () => syncDirectory(dirname(path)));
      return [...names, `${path}.parity`];
    } finally {
      for (const { file, aside } of parts) {
        await file.close();
        await rm(aside, { force: true });
      }
    }
  });
}

const EMPTY = `sha256:${'0'.repeat(64)}` as const;

function planParts(size: number, maxPartSize: number): PartList {
  for (let count = 1; count <= MOST_PARTS; count++) {
    const parts = Array.from({ length: count }, () => EMPTY);
    const list = { size, partSize: Math.ceil(size / count), parts, parity: EMPTY };
    const isEnough = Math.ceil(size / list.partSize) === count;
    if (isEnough && formatPartHead(count, list).length + list.partSize < maxPartSize) return list;
  }
  throw new UsageError(
    'usage.max-part-size',
    `a delta of ${size} bytes would have too many parts`,
    {
      expected: `at most ${MOST_PARTS}`,
      found: `parts of ${maxPartSize} bytes`,
      hint: 'give a larger --max-part-size',
    },
  );
}

type Filling = {
  readonly read: (offset: number, size: number) => Promise<Buffer>;
  readonly signal: AbortSignal;
};

async function fill(
  parts: readonly Part[],
  list: PartList,
  { read, signal }: Filling,
): Promise<void> {
  const start = formatPartHead(PARITY, list).length;
  const put = (part: Part, bytes: Uint8Array, at: number): Promise<void> =>
    explaining(part.path, () => writeWhole(part.file, bytes, at));
  for (let at = 0; at < list.partSize; at += PIECE) {
    signal.throwIfAborted();
    const parity = Buffer.alloc(Math.min(PIECE, list.partSize - at));
    for (const part of parts.slice(1)) {
      const size = Math.min(PIECE, sizeOfPart(list, part.number) - at);
      if (size <= 0) continue;
      const bytes = await read((part.number - 1) * list.partSize + at, size);
      part.hash.update(bytes);
      combine(parity, bytes);
      await put(part, bytes, start + at);
    }
    const [first] = parts;
    if (!first) return;
    first.hash.update(parity);
    await put(first, parity, start + at);
  }
  const [parity = EMPTY, ...digests] = parts.map(
    ({ hash }) => `sha256:${hash.digest('hex')}` as const,
  );
  for (const part of parts) {
    await put(part, formatPartHead(part.number, { ...list, parity, parts: digests }), 0);
    await explaining(part.path, () => part.file.sync());
  }
}
