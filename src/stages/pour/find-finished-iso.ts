import type { Digest } from '../../base/digest.ts';
import type { Stage } from '../../engine/stage.ts';
import { recallFinished, type KnownIso } from '../../outputs/file.ts';
import type { IsoRecords } from '../../outputs/file.ts';

export type FinishedIsoInput = {
  /** Names every byte of what is to be built. */
  readonly layout: Digest;
  /** Absolute path of the ISO. */
  readonly output: string;
  /** Whether the digest of the whole must be known. */
  readonly checksum?: boolean;
};

/**
 * The output where an earlier build has finished it and nothing has touched it since, as its inode says; else
 * undefined. Reads no byte of it.
 */
export const findFinishedIso: Stage<
  FinishedIsoInput,
  KnownIso | undefined,
  { readonly records: IsoRecords }
> = {
  name: 'find finished ISO',
  async run({ layout, output, checksum = false }, { records }) {
    const known = await recallFinished(output, records);
    if (checksum && known?.digest === undefined) return undefined;
    return known?.layout === layout ? known : undefined;
  },
};
