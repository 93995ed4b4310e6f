import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { useImage } from '../../src/media/open.ts';
import { verifyExtents } from '../../src/media/verify-extents.ts';

it('verification names each of 130,000 damaged extents in one piece of the file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-extents-'));
  try {
    const path = join(directory, 'medium.iso');
    await writeFile(path, Buffer.alloc(130_000));
    const extents = Array.from({ length: 130_000 }, (_, offset) => ({
      offset,
      size: 1,
      digest: digestOf('another'),
      paths: [],
    }));
    const damaged = await useImage(path, (image) =>
      verifyExtents(image, extents, {
        signal: new AbortController().signal,
        onProgress: () => undefined,
      }),
    );
    expect(damaged).toHaveLength(130_000);
    expect(damaged.at(-1)).toEqual({ extent: extents.at(-1), found: digestOf(Buffer.alloc(1)) });
  } finally {
    await rm(directory, { recursive: true });
  }
});
