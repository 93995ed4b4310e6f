import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { digestFromHex, hexOf, type Digest } from '../../base/digest.ts';
import {
  makeDirectory,
  readFileIfPresent,
  sizeOf,
  syncDirectory,
  writeFileAtomic,
  writeWhole,
} from '../../base/disk/files.ts';
import { openListed } from '../../base/disk/open-file.ts';
import { publishNew } from '../../base/disk/publish.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { requireInside } from '../../base/random-access.ts';
import type { Part } from '../../outputs/artifact/parts.ts';
import { identifyIso } from '../areas.ts';
import { readIndex } from '../media-index.ts';
import { useMedium } from '../open.ts';
import { readIsoToPush, type ReadIso } from '../push.ts';
import { fillParts, type VirtualBase } from './virtual.ts';

/*
 * A folder of parts that ISOs share: `sha256/<hex>` is a part, `layouts/<hex>.json` lists the parts of an ISO
 * by the digest that identifies it, and is written after all of its parts.
 */

type Layout = {
  readonly format: 1;
  /** Bytes. */
  readonly size: number;
  readonly version?: string;
  /** Offset, size and digest in hex, by offset. Gaps are zeros. */
  readonly parts: readonly (readonly [offset: number, size: number, hex: string])[];
};

const partPath = (directory: string, digest: Digest): string =>
  join(directory, 'sha256', hexOf(digest));
const layoutPath = (directory: string, digest: Digest): string =>
  join(directory, 'layouts', `${hexOf(digest)}.json`);

export type AddOptions = {
  readonly signal: AbortSignal;
  /** Called with the bytes of the ISO that were read and verified. */
  readonly onProgress?: (bytes: number, total: number) => void;
};

export type AddedIso = {
  /** Digest that identifies the ISO, and opens it. */
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  /** Bytes that the folder lacked. */
  readonly added: number;
};

/** Verifies every byte. Existing parts are not written again. */
export async function addToPartStore(
  path: string,
  directory: string,
  { signal, onProgress = () => undefined }: AddOptions,
): Promise<AddedIso> {
  const iso = await readIsoToPush(path, { signal, onProgress });
  const { index, size, version, parts } = iso.artifact;
  const digest = await identifyAdded(path, digestFromHex(index.slice('sha256:'.length)));
  await makeDirectory(join(directory, 'sha256'));
  let added = 0;
  for (const part of parts) {
    signal.throwIfAborted();
    if ((await sizeOf(partPath(directory, part.digest))) === part.size) continue;
    await writePart(iso, part, directory);
    added += part.size;
  }
  await syncDirectory(join(directory, 'sha256'));
  const layout: Layout = {
    format: 1,
    size,
    ...(version !== undefined && { version }),
    parts: parts.map((part) => [part.offset, part.size, hexOf(part.digest)]),
  };
  await writeFileAtomic(layoutPath(directory, digest), JSON.stringify(layout), 0o644);
  return { digest, size, added };
}

/** Two ISOs of one index may have different site values. */
const identifyAdded = (path: string, otherwise: Digest): Promise<Digest> =>
  useMedium(path, async (iso) => {
    const index = await readIndex(iso);
    return (index && (await identifyIso(index, iso.readBytes))) ?? otherwise;
  });

async function writePart(
  iso: Pick<ReadIso, 'open'>,
  part: Required<Part>,
  directory: string,
): Promise<void> {
  const hash = createHash('sha256');
  await publishNew(partPath(directory, part.digest), { mode: 0o644 }, async (file) => {
    let done = 0;
    for await (const piece of iso.open(part)) {
      hash.update(piece);
      await writeWhole(file, piece, done);
      done += piece.length;
    }
    const found = digestFromHex(hash.digest('hex'));
    if (found !== part.digest) throw changed(part, found);
  });
}

const changed = ({ offset, digest }: Required<Part>, found: Digest): IntegrityError =>
  new IntegrityError('artifact.damaged', `the ISO changed at byte ${offset} while it was read`, {
    expected: digest,
    found,
    hint: 'run the same command again when no other process writes to the ISO',
  });

/**
 * Only the layout is read.
 *
 * @throws ConfigError `store.unknown-iso`; IntegrityError `store.part-missing`
 */
export async function openFromPartStore(directory: string, digest: Digest): Promise<VirtualBase> {
  const text = await readFileIfPresent(layoutPath(directory, digest));
  if (!text) {
    throw new ConfigError('store.unknown-iso', `"${directory}" has no layout of ${digest}`, {
      hint: 'add the ISO to the folder first',
    });
  }
  const layout = JSON.parse(text.toString()) as Layout;
  const parts = layout.parts.map(([offset, size, hex]) => {
    return { offset, size, path: partPath(directory, digestFromHex(hex)) };
  });
  for (const { path, size } of parts) await requirePart(path, size);
  const { size } = layout;
  return {
    name: `${directory} ${digest}`,
    size,
    digest,
    async fill(bytes, offset) {
      requireInside({ offset, size: bytes.length }, size);
      await fillParts(parts, { bytes, offset }, ({ part, target, at }) =>
        readPart(part.path, target, at),
      );
    },
    close: () => Promise.resolve(),
  };
}

async function requirePart(path: string, size: number): Promise<void> {
  const found = await sizeOf(path);
  if (found === size) return;
  throw new IntegrityError(
    'store.part-missing',
    `"${path}" does not have the size that a layout names`,
    {
      expected: `${size} bytes`,
      found: `${found} bytes`,
      hint: 'add the ISO to the folder again',
    },
  );
}

async function readPart(path: string, target: Buffer, at: number): Promise<void> {
  const file = await openListed(path);
  try {
    for (let done = 0; done < target.length;) {
      const { bytesRead } = await file.read(target, done, target.length - done, at + done);
      if (bytesRead === 0) await requirePart(path, at + target.length);
      done += bytesRead;
    }
  } finally {
    await file.close();
  }
}
