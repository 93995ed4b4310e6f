import { createHash } from 'node:crypto';
import { digestOf, type Digest } from '../src/base/digest.ts';

/** Bytes that are named by digest and can be had from any offset on. */
export type Blob = {
  readonly digest: Digest;
  readonly size: number;
  /** A view of at most `size` bytes from `offset` on. */
  readonly view: (offset: number, size: number) => Uint8Array;
};

export const blobOf = (bytes: Uint8Array): Blob => ({
  digest: digestOf(bytes),
  size: bytes.length,
  view: (offset, size) => bytes.subarray(offset, offset + size),
});

const NOISE_SIZE = 16 * 1024 * 1024;
const WINDOW = 1024 * 1024;

/** The same bytes at every run, which nothing compresses. */
function makeNoise(name: string): Buffer {
  const noise = createHash('shake256', { outputLength: NOISE_SIZE }).update(name).digest();
  return Buffer.concat([noise, noise.subarray(0, WINDOW)]);
}

/**
 * Makes blobs of any size without holding them: each is a walk through the same noise that starts
 * elsewhere. Their digests are computed once, at about 1 GB/s.
 *
 * @param name of the noise: blobs of another one share no bytes
 */
export function createBlobFactory(name = 'noise'): (index: number, size: number) => Blob {
  const noise = makeNoise(name);
  return (index, size) => {
    const start = (index * 104_729 * 64) % NOISE_SIZE;
    const view = (offset: number, wanted: number): Uint8Array => {
      const at = (start + offset) % NOISE_SIZE;
      const length = Math.min(wanted, size - offset, NOISE_SIZE + WINDOW - at);
      return noise.subarray(at, at + length);
    };
    const hash = createHash('sha256');
    for (let offset = 0; offset < size;) {
      const piece = view(offset, WINDOW);
      hash.update(piece);
      offset += piece.length;
    }
    return { digest: `sha256:${hash.digest('hex')}`, size, view };
  };
}
