import { basename } from 'node:path';
import { sweepAside } from '../../base/aside.ts';
import { formatReadableJson, type Json } from '../../base/canonical-json.ts';
import { hexOf, type Digest } from '../../base/digest.ts';
import { writeFileAtomic } from '../../base/files.ts';

/**
 * Writes what tells of a finished ISO: `X.sha256`, as sha256sum -c reads it, and `X.report.json`. The
 * report holds no secret, but it names hosts and times, which the ISO itself never does. Call it only
 * while the output is locked.
 */
export async function sealIso(
  output: string,
  digest: Digest,
  report: Json,
): Promise<{ readonly checksum: string; readonly report: string }> {
  const paths = { checksum: `${output}.sha256`, report: `${output}.report.json` };
  for (const path of Object.values(paths)) await sweepAside(path);
  await writeFileAtomic(paths.checksum, `${hexOf(digest)}  ${basename(output)}\n`, 0o644);
  await writeFileAtomic(paths.report, formatReadableJson(report), 0o644);
  return paths;
}
