import { join } from 'node:path';
import { formatReadableJson } from '../../base/text/json.ts';
import { digestOf, hexOf, isDigest, type Digest } from '../../base/digest.ts';
import { readFileIfPresent, writeFileAtomic } from '../../base/disk/files.ts';
import { isObject } from '../../base/lists.ts';

/** What an ISO was made from, as far as it can be asked again without planning it. */
export type FinishedIso = {
  /** Of the request, the files that it names, and the program. */
  readonly asked: Digest;
  /** What names stood for that may stand for something else by now. */
  readonly names: Readonly<Record<string, Digest>>;
  /** Of the report beside the ISO. */
  readonly report: Digest;
  /** By path, of other files that the build wrote beside it. */
  readonly beside?: Readonly<Record<string, Digest>>;
};

const pathOf = (workDir: string, output: string): string =>
  join(workDir, 'finished', `${hexOf(digestOf(output)).slice(0, 32)}.json`);

/** Written last: without it, the ISO is planned again. */
export const writeFinishedIso = (
  workDir: string,
  output: string,
  finished: FinishedIso,
): Promise<void> =>
  writeFileAtomic(pathOf(workDir, output), formatReadableJson({ format: 1, output, ...finished }));

/** undefined where there is none that can be read. */
export async function readFinishedIso(
  workDir: string,
  output: string,
): Promise<FinishedIso | undefined> {
  const bytes = await readFileIfPresent(pathOf(workDir, output));
  try {
    const value: unknown = JSON.parse(bytes?.toString('utf8') ?? '');
    return isFinishedIso(value) ? value : undefined;
  } catch {
    return undefined; // none, or damaged: the ISO is planned again
  }
}

const isFinishedIso = (value: unknown): value is FinishedIso =>
  isObject(value) &&
  value['format'] === 1 &&
  [value['asked'], value['report']].every(isDigestText) &&
  areDigests(value['names']) &&
  areDigests(value['beside'] ?? {});

const areDigests = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every(isDigestText);

const isDigestText = (value: unknown): boolean => typeof value === 'string' && isDigest(value);
