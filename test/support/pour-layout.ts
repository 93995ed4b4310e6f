import { randomFillSync } from 'node:crypto';
import { digestOf } from '../../src/base/digest.ts';
import type { Extent, Layout } from '../../src/iso/extent.ts';
import { pourIso, publishPour, type PourOptions, type PourResult } from '../../src/pour/pour.ts';
import type { Source } from '../../src/base/download/sources.ts';
import type { ExtentChunk, ExtentOpener } from '../../src/pour/spans.ts';

export const MIB = 1024 * 1024;

/** A layout of rendered bytes, blobs of odd sizes and padding, and what its file must hold. */
export function makeLayout(sizes: readonly number[]): {
  layout: Layout;
  blobs: Map<string, Buffer>;
  whole: Buffer;
} {
  const blobs = new Map<string, Buffer>();
  const extents: Extent[] = [];
  let offset = 0;
  const add = (bytes: Buffer, kind: 'bytes' | 'blob' | 'zero'): void => {
    const digest = digestOf(bytes);
    if (kind === 'blob') blobs.set(digest, bytes);
    const source = kind === 'bytes' ? ({ kind, bytes } as const) : ({ kind } as const);
    extents.push({
      offset,
      size: bytes.length,
      source,
      paths: kind === 'blob' ? [`/blob-${offset}`] : [],
      ...(kind !== 'zero' && { digest }),
    });
    offset += bytes.length;
  };
  add(Buffer.from('rendered directories '.repeat(400)).subarray(0, 6144), 'bytes');
  for (const size of sizes) {
    const gap = (4096 - (offset % 4096)) % 4096;
    if (gap > 0) add(Buffer.alloc(gap), 'zero');
    add(randomFillSync(Buffer.alloc(size)), 'blob');
  }
  const end = (2048 - (offset % 2048)) % 2048;
  if (end > 0) add(Buffer.alloc(end), 'zero');
  const whole = Buffer.concat(
    extents.map(({ source, digest, size }) =>
      source.kind === 'bytes'
        ? Buffer.from(source.bytes)
        : (blobs.get(digest ?? '') ?? Buffer.alloc(size)),
    ),
  );
  return { layout: { size: offset, extents }, blobs, whole };
}

export const REGISTRY: Source = { name: 'registry', local: false };

/** Pours, and gives the output its name. */
export async function pourAndPublish(options: PourOptions): Promise<PourResult> {
  const result = await pourIso(options);
  await publishPour(options.output);
  return result;
}

/** Serves blobs in pieces of 64 KiB, and counts what it gave. */
export function openFrom(
  blobs: Map<string, Buffer>,
  options: { source?: Source; spoil?: boolean; onBytes?: (size: number) => void } = {},
): ExtentOpener {
  const source = options.source ?? REGISTRY;
  return ({ digest }, { offset, rank, answers }) => {
    if (rank([source]).length === 0)
      return Promise.reject(answers[0]?.error ?? new Error('nobody was asked'));
    const bytes = Buffer.from(blobs.get(digest ?? '') ?? '');
    if (options.spoil) bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    async function* chunks(): AsyncGenerator<ExtentChunk> {
      for (let at = offset; at < bytes.length; at += 65536) {
        await new Promise((resolve) => setImmediate(resolve));
        const piece = bytes.subarray(at, at + 65536);
        options.onBytes?.(piece.length);
        yield { offset: at, bytes: piece, source };
      }
    }
    return Promise.resolve({ kind: 'stream', chunks: chunks() });
  };
}
