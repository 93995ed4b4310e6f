import type { Digest } from '../../base/digest.ts';
import { hasFile } from '../../base/disk/files.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { namesBeside, readReport } from './claim-iso.ts';
import type { IsoRecords } from './iso-records.ts';

/** An ISO that an earlier build finished; its digest where that build computed it. */
export type KnownIso = { readonly layout: Digest; readonly digest?: Digest };

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
