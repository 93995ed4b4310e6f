import { Transform } from 'node:stream';
import { formatSize } from '../text/format-size.ts';
import { DecodeError } from './decode-error.ts';

/** Layers of images unfold 2 to 20 times; runs of zeros 1,000 times in gzip and 30,000 in zstd. */
const MAX_RATIO = 250;

/** Not asked of what unfolds to little: that costs seconds at most. */
const RATIO_FLOOR = 256 * 1024 ** 2;

/** Of the largest layer in a catalog or release image, ten times. */
const MAX_TOTAL = 64 * 1024 ** 3;

/**
 * Passes unpacked bytes on, whoever takes or skips them, as long as they are not too many for `packed`
 * bytes: the cost of a stream stays in proportion to its size, and is bounded in total.
 *
 * @throws DecodeError `too-large`, as the error of the stream
 */
export function createExpansionGuard(packed: number): Transform {
  const limit = Math.min(MAX_TOTAL, Math.max(RATIO_FLOOR, packed * MAX_RATIO));
  let size = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size <= limit) done(null, chunk);
      else done(tooLarge(packed, limit));
    },
  });
}

const tooLarge = (packed: number, limit: number): DecodeError =>
  new DecodeError('too-large', `its ${packed} bytes unpack to more than ${formatSize(limit)}`, {
    expected: `at most ${limit} bytes`,
    found: `more than ${limit} bytes`,
  });
