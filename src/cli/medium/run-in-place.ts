import { rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { UsageError } from '../../base/errors.ts';
import { findDevice } from '../../base/disk/block-device.ts';
import { makeDirectory } from '../../base/disk/files.ts';
import { explainReadError } from '../../base/disk/disk-errors.ts';
import { withLock } from '../../base/disk/lease.ts';
import { formatSize } from '../../base/text/words.ts';
import { applyInPlace, type InPlaceReport } from '../../media/delta/in-place/apply.ts';
import { isPart, joinParts, type JoinOptions } from '../../media/delta/join.ts';
import { standInFor } from '../../outputs/device.ts';
import type { CliHost } from '../host.ts';
import { writeFormatted, type OutputFormat } from '../terminal/output.ts';
import type { LogFormat } from '../terminal/progress.ts';
import { runWithProgress } from '../terminal/run-with-progress.ts';

export type InPlaceChoice = {
  readonly output?: string;
  readonly inPlace: boolean;
  readonly workDir: string;
};

type Options = InPlaceChoice & {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** @throws UsageError `usage.in-place` unless there is one place for the new ISO */
export function requireOnePlace({ output, inPlace }: InPlaceChoice): void {
  if (inPlace === (output === undefined)) return;
  throw new UsageError('usage.in-place', 'the new ISO has no place, or two', {
    expected: '--output or --in-place',
    found: inPlace ? 'both' : 'neither',
  });
}

/** `sealift apply OLD FILE --in-place`: the old ISO becomes the new one. */
export async function runInPlace(
  path: string,
  deltas: readonly string[],
  { host, ...options }: Options & { readonly host: CliHost },
): Promise<void> {
  const { logFormat, workDir } = options;
  const place = await placeInPlace(path, resolve(host.cwd, workDir));
  const report = await runWithProgress({ stage: 'apply delta', logFormat, host }, (watched) =>
    useDelta(deltas, { ...watched, joined: `${place.aside}.joined` }, (delta) =>
      applyInPlace({ from: path, delta }, { ...watched, ...place }),
    ),
  );
  await writeFormatted({ host, ...options }, { output: path, ...report }, () =>
    format(path, report),
  );
}

/** Works with a delta, which is made of its parts for that where there are several. */
export async function useDelta<T>(
  paths: readonly string[],
  { joined, ...options }: JoinOptions & { readonly joined: string },
  work: (path: string) => Promise<T>,
): Promise<T> {
  const [first] = paths;
  if (first !== undefined && paths.length === 1 && !(await isPart(first))) return work(first);
  return withLock(`${joined}.lock`, async () => {
    try {
      await joinParts(paths, joined, options);
      return await work(joined);
    } finally {
      await rm(joined, { force: true });
    }
  });
}

/**
 * What is beside a file that is changed in place; for a device, it is in the work directory.
 *
 * @throws ConfigError `iso.unreadable`
 */
export async function placeInPlace(
  path: string,
  workDir: string,
): Promise<{ readonly aside: string; readonly lock: string }> {
  await stat(path).catch((error: unknown) => {
    throw explainReadError(error, path);
  });
  const device = findDevice(path);
  if (!device) return { aside: `${path}.apply`, lock: `${path}.lock` };
  const place = standInFor(device, workDir); // whatever name it has today
  await makeDirectory(dirname(place));
  return { aside: `${place}.apply`, lock: `${place}.lock` };
}

const format = (path: string, { size, digest, carried, written, saved }: InPlaceReport): string =>
  [
    `${path} is complete: ${formatSize(size)}`,
    ...(digest === undefined ? [] : [`  sha256    ${hexOf(digest)}`]),
    `  bytes     ${formatSize(carried)} in the delta, ${formatSize(written)} written, ` +
      `${formatSize(saved)} saved aside meanwhile`,
    '',
  ].join('\n');
