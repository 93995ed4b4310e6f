import type { Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { parseS3Address } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import type { Json } from '../../base/text/json.ts';
import type { Stage } from '../../engine/stage.ts';
import { recordPathOf } from '../../outputs/output.ts';
import { sealObject as seal } from '../../outputs/object.ts';
import { openStoredObject } from '../../outputs/object/stored.ts';
import { readUploadRecord, removeUploadRecord } from '../../outputs/object/upload.ts';

export type SealObjectInput = {
  readonly output: string;
  readonly layout: Digest;
  /** Of the object, where an earlier run sent it. */
  readonly etag?: string;
  /** Absent where nobody has seen every byte. */
  readonly digest?: Digest;
  readonly report: Readonly<Record<string, Json | undefined>>;
};

/** Writes checksum and report beside a finished object. Killed before that, the next build does it. */
export const sealObject: Stage<
  SealObjectInput,
  undefined,
  { readonly s3: S3; readonly workDir: string }
> = {
  name: 'seal object',
  async run({ output, ...made }, { s3, workDir }, { signal }) {
    const record = recordPathOf({ output, workDir });
    const etag = made.etag ?? (await readUploadRecord(record))?.etag;
    await seal(parseS3Address(output), {
      ...made,
      ...withoutUndefined({ etag }),
      open: (address) => openStoredObject(s3, address, signal),
    });
    await removeUploadRecord(record);
    return undefined;
  },
};
