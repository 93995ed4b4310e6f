import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';

/**
 * A case as it is kept. Brotli's window holds all of it: what is megabytes is so by repetition, at whatever distance,
 * so that a case takes no more than the seeds it is made of.
 */
export const packCase = (bytes: Uint8Array): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } });

export const unpackCase = (packed: Uint8Array): Buffer => brotliDecompressSync(packed);
