import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import type { Extent, Layout } from '../../src/iso/extent.ts';

/** Gives a blob's bytes; undefined leaves a hole where the blob would be. */
export type OpenBlob = (digest: string) => Uint8Array | undefined;

/** Writes a layout to a file the plainest way, checking the digest of everything written. */
export async function writeLayout(
  path: string,
  layout: Layout,
  { basePath, openBlob = () => undefined }: { basePath: string; openBlob?: OpenBlob },
): Promise<void> {
  const base = await open(basePath, 'r');
  const file = await open(path, 'w');
  try {
    await file.truncate(layout.size);
    for (const extent of layout.extents) {
      const bytes = await bytesOf(extent, { base, openBlob });
      if (!bytes) continue;
      if (bytes.length !== extent.size) throw new Error(`extent at ${extent.offset}: wrong size`);
      const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
      if (digest !== extent.digest) throw new Error(`extent at ${extent.offset}: wrong digest`);
      await file.write(bytes, 0, bytes.length, extent.offset);
    }
  } finally {
    await file.close();
    await base.close();
  }
}

async function bytesOf(
  extent: Extent,
  { base, openBlob }: { base: FileHandle; openBlob: OpenBlob },
): Promise<Uint8Array | undefined> {
  switch (extent.source.kind) {
    case 'zero':
      return undefined;
    case 'bytes':
      return extent.source.bytes;
    case 'blob':
      return extent.digest && openBlob(extent.digest);
    case 'base': {
      const bytes = Buffer.alloc(extent.size);
      await base.read(bytes, 0, extent.size, extent.offset);
      return bytes;
    }
  }
}
