import { parseS3Address } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import type { Stage } from '../../engine/stage.ts';
import { claimObject as claim } from '../../outputs/object.ts';
import { openStoredObject } from '../../outputs/object/stored.ts';

export type ClaimObjectInput = { readonly output: string; readonly force: boolean };

/** Refuses an object that no build sent, before anything is fetched. */
export const claimObject: Stage<ClaimObjectInput, undefined, { readonly s3: S3 }> = {
  name: 'claim object',
  async run({ output, force }, { s3 }, { signal }) {
    const open = (address: Parameters<typeof openStoredObject>[1]) =>
      openStoredObject(s3, address, signal);
    await claim(parseS3Address(output), { open, force });
    return undefined;
  },
};
