import { parseS3Address } from '../../base/s3/object.ts';
import { createS3 } from '../../base/s3/s3.ts';
import { openS3Source } from '../../base/s3/object.ts';
import type { RangeOpener } from './range-opener.ts';

/** An object of an object store, by `s3://bucket/key`. */
export const openS3Ranges: RangeOpener = async (text, { env, http, signal }) => {
  const s3 = createS3({ http, env });
  const address = parseS3Address(text);
  return { source: await openS3Source(s3, address, signal), host: await s3.hostOf(signal) };
};
