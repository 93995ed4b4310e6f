import type { Digest } from '../../base/digest.ts';
import { hasFile } from '../../base/disk/files.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { Stage } from '../../engine/stage.ts';
import { namesBeside, readReport } from '../../media/output/claim-iso.ts';
import type { IsoRecords } from '../../media/output/iso-records.ts';

export type FinishedIsoInput = {
  /** Names every byte of what is to be built. */
  readonly layout: Digest;
  /** Absolute path of the ISO. */
  readonly output: string;
  /** Whether the digest of the whole must be known. */
  readonly checksum?: boolean;
};

/** An ISO that an earlier build finished; its digest where that build computed it. */
export type KnownIso = { readonly layout: Digest; readonly digest?: Digest };

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

/** What the report beside an ISO says, where it is of the file that an earlier build gave this name. */
export async function recallFinished(
  output: string,
  records: IsoRecords,
): Promise<KnownIso | undefined> {
  const names = namesBeside(output);
  const layout = await records.recall(output);
  const report = await readReport(names.report);
  if (layout === undefined || report?.layout !== layout) return undefined;
  const digest = report.digest as Digest | undefined; // of a layout that we finished
  if (digest !== undefined && !(await hasFile(names.checksum))) return undefined;
  return { layout, ...withoutUndefined({ digest }) };
}
