import type { Digest } from '../../base/digest.ts';
import { hasFile } from '../../base/disk/files.ts';
import type { Stage } from '../../engine/stage.ts';
import { namesBeside, readReport } from '../../media/output/claim-iso.ts';
import type { FileDigests } from '../../openshift/files/file-digests.ts';

export type FinishedIsoInput = {
  /** Names every byte of what is to be built. */
  readonly layout: Digest;
  /** Absolute path of the ISO. */
  readonly output: string;
};

/**
 * The digest of the output where an earlier build has finished it and nothing has touched it since, as its
 * inode says; else undefined. Reads no byte of it.
 */
export const findFinishedIso: Stage<
  FinishedIsoInput,
  Digest | undefined,
  { readonly digests: FileDigests }
> = {
  name: 'find finished ISO',
  async run({ layout, output }, { digests }) {
    const report = await recallFinished(output, digests);
    return report?.layout === layout ? report.digest : undefined;
  },
};

/** What the report beside an ISO says, where it is of the file that an earlier build gave this name. */
export async function recallFinished(
  output: string,
  digests: FileDigests,
): Promise<{ readonly layout?: unknown; readonly digest: Digest } | undefined> {
  const names = namesBeside(output);
  if (!(await hasFile(names.checksum))) return undefined;
  const report = await readReport(names.report);
  const digest = (await digests.recall(output))?.digest;
  return digest !== undefined && report?.digest === digest ? { ...report, digest } : undefined;
}
