import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readRange } from '../../../src/outputs/read/open.ts';
import type { BlobSource } from '../../../src/base/store/blob-source.ts';
import { fakeDigest } from '../../support/sparse-medium.ts';

const first = { offset: 0, size: 100, digest: fakeDigest('first') };
const second = { offset: 100, size: 100, digest: fakeDigest('second') };
const signal = new AbortController().signal;

/** A registry whose bodies end after 60 bytes without an error. */
const short: BlobSource = {
  name: 'short',
  local: false,
  open: ({ digest }, { offset, size = 0 }) => {
    const bytes = Buffer.alloc(Math.min(size, 60), digest === first.digest ? 1 : 2);
    return Promise.resolve({ offset, body: Readable.from([bytes]) });
  },
};

async function read(offset: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  const range = { offset, size: 250 - offset };
  const parts = [first, second];
  for await (const piece of readRange({ parts }, range, { sources: [short], signal }))
    pieces.push(piece);
  return Buffer.concat(pieces);
}

describe('a range of an artifact', () => {
  it('ends where a layer breaks off, so that no byte takes the place of another', async () => {
    expect(await read(0)).toEqual(Buffer.alloc(60, 1));
    expect(await read(60)).toEqual(Buffer.concat([Buffer.alloc(40, 1), Buffer.alloc(60, 2)]));
    expect(await read(160)).toEqual(Buffer.concat([Buffer.alloc(40, 2), Buffer.alloc(50)]));
  });
});
