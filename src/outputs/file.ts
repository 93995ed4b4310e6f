import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hexOf, type Digest, digestOf } from '../base/digest.ts';
import { sweepAside } from '../base/disk/aside.ts';
import { explainWriteError } from '../base/disk/disk-errors.ts';
import { isSameStamp, parseStamp, readStamp, type FileDigests } from '../base/disk/file-digests.ts';
import { syncDirectory, writeFileAtomic, readFileIfPresent, hasFile } from '../base/disk/files.ts';
import { prepareFile, type PreparedFile } from '../base/disk/publish.ts';
import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { formatReadableJson, type Json } from '../base/text/json.ts';
import { pourIso, publishPour } from '../pour/index.ts';
import { decodeJson, ifFaultless } from '../shape/decode.ts';
import { DIGEST, FREE, LEFT_OUT, record } from '../shape/shape.ts';
import { claimDevice } from './device.ts';
import { claimFile, readReport } from './file/claim.ts';
import {
  namesBeside,
  type IsoPlace,
  type MediaReader,
  type Output,
  type PutReport,
  type PutWork,
} from './place.ts';

/*
 * An ISO as a file or on a device: it is poured into a partial file or onto the device, the file
 * gets its name with checksum and report, and a later build recognizes it as finished.
 */

export type FileOutputTools = Pick<MediaReader, 'recognize'> & {
  readonly digests: FileDigests;
  readonly records: IsoRecords;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
};

/** The names of a device's files begin with `output`. */
export function createFileOutput(place: IsoPlace, tools: FileOutputTools): Output {
  const { output, device } = place;
  const { recognize, records, digests } = tools;
  return {
    claim: () => (device ? claimDevice(device, place) : claimFile(place, recognize)),
    async look({ layout, checksum }) {
      const known = await recallFinished(output, records);
      if (known?.layout !== layout || (checksum && known.digest === undefined)) return undefined;
      return { isSealed: true, ...withoutUndefined({ digest: known.digest }) };
    },
    put: (work) => pourInto(place, work, tools),
    async seal({ layout, digest, report }) {
      const published = { report, ...withoutUndefined({ digest }) };
      // The pour may have taken hours. A device is written by now, and a desktop may have mounted it.
      if (device) return publishIso(output, { ...published, isDevice: true });
      await claimFile(place, recognize);
      await publishIso(output, published);
      await records.remember(output, layout);
      if (digest !== undefined) await digests.remember(output, digest);
    },
  };
}

async function pourInto(
  { output, device }: IsoPlace,
  { layout, mode, lanes, checksum, openExtent, onProgress, ...work }: PutWork,
  { signal, warn }: FileOutputTools,
): Promise<PutReport> {
  const { size } = layout;
  const earlier = device ? undefined : work.earlier;
  const { digest, readBack, fetched, copied, reused, written } = await pourIso({
    layout,
    output,
    mode,
    lanes,
    checksum,
    openExtent,
    signal,
    warn,
    ...withoutUndefined({ device, earlier }),
    onProgress: (bytes, fetched) => {
      onProgress(bytes, device ? 2 * size : size, fetched);
    },
  });
  if (earlier) await requireSame(earlier);
  return {
    ...(digest === undefined ? { noChecksum: CLONED } : { digest }),
    bytes: { fetched, copied, reused, written, readBack },
  };
}

const CLONED = 'most of it was cloned and not read; --checksum reads it';

/** Checks that an ISO whose bytes were taken by their record is still the same file. */
async function requireSame({
  path,
  stamp,
  isRecorded,
}: NonNullable<PutWork['earlier']>): Promise<void> {
  if (!isRecorded) return;
  const now = await readStamp(path);
  if (now && isSameStamp(now, stamp)) return;
  throw new IntegrityError('seed.changed', `"${path}" changed while its bytes were reused`, {
    hint: 'run the same command again with --rehash',
  });
}

export type PublishedIso = {
  /** True if the ISO is on a block device, which has only a report next to it. */
  readonly isDevice?: boolean;
  /** Digest of the whole ISO; absent: no checksum is written next to it. */
  readonly digest?: Digest;
  /** Absent: no report is written. */
  readonly report?: Readonly<Record<string, Json | undefined>>;
};

/**
 * Gives a poured ISO its name, with checksum (for `sha256sum -c`) and report. Both are written before and
 * named right after it: they never describe an ISO that does not exist. The output is locked meanwhile.
 */
export async function publishIso(
  output: string,
  { report, isDevice = false, digest }: PublishedIso,
): Promise<void> {
  const { aside, ...names } = namesBeside(output);
  const made: PreparedFile[] = [];
  const prepare = async (path: string, text?: string): Promise<PreparedFile | undefined> => {
    if (text === undefined) return undefined;
    const file = await prepareBeside(path, text);
    made.push(file);
    return file;
  };
  try {
    for (const path of Object.values(aside)) await sweepAside(path);
    const sum = isDevice ? undefined : digest && formatChecksum(output, digest);
    const checksum = await prepare(aside.checksum, sum);
    const told = await prepare(aside.report, report && formatReadableJson(report));
    if (!checksum) await rm(names.checksum, { force: true });
    await publishPour(output, isDevice);
    await told?.publish(names.report);
    await checksum?.publish(names.checksum);
    await syncDirectory(dirname(output));
  } finally {
    for (const file of made) await file.close();
  }
}

const prepareBeside = (path: string, text: string): Promise<PreparedFile> =>
  prepareFile(path, text, 0o644).catch((error: unknown) => {
    throw explainWriteError(error, path);
  });

export async function publishChecksum(path: string, digest: Digest): Promise<void> {
  const { checksum } = namesBeside(path);
  await sweepAside(checksum); // of a run that was killed
  await writeFileAtomic(checksum, formatChecksum(path, digest), 0o644);
}

const formatChecksum = (path: string, digest: Digest): string =>
  `${hexOf(digest)}  ${basename(path)}\n`;

/**
 * The ISOs that this work directory finished, each with the state of its inode then. While that is unchanged,
 * every byte is assumed to match the layout, without reading it.
 */
export type IsoRecords = {
  /** The digest of its layout; undefined if it is not known, or its inode has changed. */
  readonly recall: (path: string) => Promise<Digest | undefined>;
  /** Records an ISO that was just verified, synced and named. */
  readonly remember: (path: string, layout: Digest) => Promise<void>;
};

/** @param isTrusted true if earlier records count; new records count for later runs in any case */
export function createIsoRecords(workDir: string, isTrusted = true): IsoRecords {
  const entryOf = (path: string): string =>
    join(workDir, 'finished', `${hexOf(digestOf(path)).slice(0, 32)}.stamp.json`);
  return {
    async recall(path) {
      const stamp = isTrusted ? await readStamp(path) : undefined;
      const bytes = stamp && (await readFileIfPresent(entryOf(path)));
      // Damaged or missing: the ISO is read.
      const known = bytes && ifFaultless(decodeJson(ISO_RECORD, bytes));
      const noted = parseStamp(known?.stamp);
      return noted && stamp && isSameStamp(noted, stamp) ? known?.layout : undefined;
    },
    async remember(path, layout) {
      const stamp = await readStamp(path);
      await writeFileAtomic(entryOf(path), formatReadableJson({ path, layout, stamp }));
    },
  };
}

const ISO_RECORD = record({ layout: DIGEST, stamp: FREE }, LEFT_OUT);

/** An ISO that an earlier build finished; its digest if that build computed it. */
export type KnownIso = { readonly layout: Digest; readonly digest?: Digest };

/** The report next to an ISO, if it describes the file that an earlier build gave this name. */
export async function recallFinished(
  output: string,
  records: IsoRecords,
): Promise<KnownIso | undefined> {
  const names = namesBeside(output);
  const layout = await records.recall(output);
  const report = await readReport(names.report);
  if (layout === undefined || report?.layout !== layout) return undefined;
  const { digest } = report;
  if (digest !== undefined && !(await hasFile(names.checksum))) return undefined;
  return { layout, ...withoutUndefined({ digest }) };
}
