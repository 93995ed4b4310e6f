import type { Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { parseS3Address } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import type { Stage } from '../../engine/stage.ts';
import { recordPathOf } from '../../outputs/output.ts';
import { findFinished, type FinishedObject } from '../../outputs/object.ts';
import { openStoredObject } from '../../outputs/object/stored.ts';
import { readUploadRecord } from '../../outputs/object/upload.ts';

export type FinishedObjectInput = {
  /** Names every byte of what is to be built. */
  readonly layout: Digest;
  /** Bytes of it. */
  readonly size: number;
  readonly output: string;
};

/** What is known of the object where it has these bytes already; else undefined. */
export const findFinishedObject: Stage<
  FinishedObjectInput,
  FinishedObject | undefined,
  { readonly s3: S3; readonly workDir: string }
> = {
  name: 'find finished object',
  async run({ layout, size, output }, { s3, workDir }, { signal }) {
    const record = await readUploadRecord(recordPathOf({ output, workDir }));
    const found = await findFinished(parseS3Address(output), {
      layout,
      size,
      noted: record?.etag,
      open: (address) => openStoredObject(s3, address, signal),
    });
    if (found?.isSealed !== false) return found;
    const digest = record?.layout === layout ? record.digest : undefined;
    return { ...found, ...withoutUndefined({ digest }) };
  },
};
