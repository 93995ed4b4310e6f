import { rename, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { formatReadableJson, type Json } from '../../base/text/canonical-json.ts';
import { hexOf, type Digest } from '../../base/digest.ts';
import { syncDirectory, writeFileAtomic } from '../../base/disk/files.ts';

type SealNames = { readonly checksum: string; readonly report: string };

/** The files that tell of an ISO, and what they are called until the ISO has its name. */
export const namesBeside = (output: string): SealNames & { readonly aside: SealNames } => ({
  checksum: `${output}.sha256`,
  report: `${output}.report.json`,
  aside: { checksum: `${output}.partial.sha256`, report: `${output}.partial.report.json` },
});

/**
 * Writes the side files of an ISO that is complete but does not have its name yet: a checksum as
 * `sha256sum -c` reads it, and the report. The report has no secret, but it names hosts and times,
 * which the ISO itself never does. Call it only while the output is locked.
 */
export async function sealIso(output: string, digest: Digest, report: Json): Promise<void> {
  const { aside } = namesBeside(output);
  for (const path of Object.values(aside)) await sweepAside(path);
  await writeFileAtomic(aside.checksum, `${hexOf(digest)}  ${basename(output)}\n`, 0o644);
  await writeFileAtomic(aside.report, formatReadableJson(report), 0o644);
}

/** Gives checksum and report their names. Call it when the ISO has its own. */
export async function publishSeal(output: string): Promise<void> {
  const { aside, ...names } = namesBeside(output);
  await rename(aside.report, names.report);
  await rename(aside.checksum, names.checksum);
  await syncDirectory(dirname(output));
}

/** Removes the side files of an ISO that did not get its name. */
export async function discardSeal(output: string): Promise<void> {
  for (const path of Object.values(namesBeside(output).aside)) await rm(path, { force: true });
}
