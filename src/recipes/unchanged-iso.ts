import { isUnreadable } from '../base/disk/disk-errors.ts';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { digestOf, type Digest } from '../base/digest.ts';
import { readStamp } from '../base/disk/file-digests.ts';
import { digestFile, readFileIfPresent, readFreeBytes } from '../base/disk/files.ts';
import { withoutUndefined } from '../base/lists.ts';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import { fingerprintOf } from '../engine/stage.ts';
import type { StageValue } from '../engine/stage.ts';
import type { IsoPlace } from '../outputs/file.ts';
import { writeFinishedIso } from '../media/output/finished-iso.ts';
import { namesBeside } from '../outputs/file.ts';
import type { TagDigests } from '../registry/tag-ledger.ts';
import { findUnchangedIso } from '../stages/pour/find-unchanged-iso.ts';
import type { BuildTools } from './build-tools.ts';
import { secretsPathOf } from './lock/lock-secrets.ts';
import type { LockUse } from './lock/use-lock.ts';
import { describeUntouched, type MadeIso } from './made-iso.ts';

type Request = IsoPlace & {
  readonly lock?: LockUse;
  readonly saved?: unknown;
  readonly graphUrl?: string;
  /** Address of the CoreOS stream that names the live ISO. */
  readonly streamUrl?: string;
  readonly elsewhere?: readonly string[];
};

/**
 * A digest of what an ISO is asked for with: the request, the files that it names, and the program. Taken before
 * anything is read, so that a file that changes during the build makes the next one look again. Undefined
 * where an input can be read only once.
 */
export async function describeAsked(
  request: Request,
  { program, sealKey, registriesConf }: BuildTools,
): Promise<Digest | undefined> {
  const { inputs, reuses, lock, elsewhere = [] } = request;
  const values = Object.fromEntries(
    Object.entries(request).filter(([name]) => !LEFT_OUT.has(name)),
  ) as Record<string, StageValue>;
  const unread = new Set([...(reuses?.seeds ?? []), ...elsewhere]);
  const paths = inputs.filter((path) => !unread.has(path));
  const files = await Promise.all(paths.map(describeFile));
  if (files.includes(undefined)) return undefined;
  const keepsPlaces = reuses?.keepsPlaces ?? false;
  const lockKey = lock?.key;
  const described = { paths, files: files as Json[], keepsPlaces, registriesConf };
  const all = { values, ...described, ...withoutUndefined({ lockKey }) };
  return fingerprintOf({ stage: 'find unchanged ISO', inputs: all, program, sealKey });
}

/** They are described by their files, or do not matter. */
const LEFT_OUT: ReadonlySet<string> = new Set(['inputs', 'force', 'checksum', 'lock', 'reuses']);

/** Bytes up to which a file counts by its bytes: a checkout of a repository gives all files new times. */
const SMALL = 1 << 20;

async function describeFile(path: string): Promise<Json | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return await describeFolder(path);
    if (!found.isFile()) return undefined;
    return found.size <= SMALL ? digestOf(await readFile(path)) : await describeStamp(path);
  } catch (error) {
    // What cannot be read is refused, or not needed.
    if (isUnreadable(error)) return 'absent';
    throw error;
  }
}

/**
 * A mirror has tens of thousands of files: they count by what their inodes say. Undefined where a link leads to
 * another folder, which may change unseen.
 */
async function describeFolder(folder: string): Promise<Json | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory());
  const described = await Promise.all(
    paths.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      if (entry.isSymbolicLink() && (await leadsToFolder(path))) return undefined;
      return [path.slice(folder.length), await describeStamp(path)] as const;
    }),
  );
  const known = described.filter((each) => each !== undefined);
  return known.length === described.length ? Object.fromEntries(known) : undefined;
}

async function leadsToFolder(link: string): Promise<boolean> {
  try {
    return (await stat(link)).isDirectory();
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}

const describeStamp = async (path: string): Promise<Json> => (await readStamp(path)) ?? 'absent';

/** The lock counts as it stands after a build, which writes it. */
async function digestWithLock(asked: Digest, { lock }: Request): Promise<Digest> {
  const paths = lock ? [lock.path, secretsPathOf(lock.path)] : [];
  const files = await Promise.all(paths.map(readFileIfPresent));
  return digestOf(
    formatCanonicalJson([asked, ...files.map((bytes) => (bytes ? digestOf(bytes) : null))]),
  );
}

type Asked = { readonly asked: Digest | undefined; readonly request: Request };

/** The report of the output where it needs no build; see `findUnchangedIso`. */
export async function findUnchanged<Report extends MadeIso>(
  { asked, request }: Asked,
  { engine, client }: BuildTools,
): Promise<Report | undefined> {
  if (asked === undefined) return undefined;
  const { output, graphUrl, streamUrl, saved } = request;
  const known = await engine.run(findUnchangedIso, {
    asked: await digestWithLock(asked, request),
    output,
    isPinned: saved !== undefined,
    checksum: request.checksum ?? false,
    ...withoutUndefined({ graphUrl, streamUrl }),
  });
  if (!known) return undefined;
  const report = known as unknown as Report; // written by a build of this product
  const { isoSize, payloadSize } = known;
  const space = {
    bytesToFetch: 0,
    bytesReused: payloadSize,
    neededBytes: 0,
    freeBytes: await readFreeBytes(dirname(output)),
  };
  return {
    ...report,
    ...('bytesToFetch' in known ? space : {}),
    ...describeUntouched(Number(isoSize), { client }),
    stages: [...engine.times()],
    isUpToDate: true,
  };
}

/** A tag that stands for a digest, as those of signatures do: its image is carried as it is. */
const OF_DIGEST = /:sha256-[0-9a-f]{64}(?:\.\w+)?$/;

type Finished = {
  readonly tags: TagDigests;
  /** Paths of other files that were written beside the ISO. */
  readonly beside: readonly string[];
};

/** What a build that ends now lets the next one know. */
export async function rememberFinished(
  { asked, request, tags, beside }: Asked & Finished,
  { workDir }: BuildTools,
): Promise<void> {
  const report = await readFileIfPresent(namesBeside(request.output).report);
  if (asked === undefined || !report) return;
  const names = Object.entries(tags).filter(([name]) => !OF_DIGEST.test(name));
  await writeFinishedIso(workDir, request.output, {
    asked: await digestWithLock(asked, request),
    names: Object.fromEntries(names),
    report: digestOf(report),
    beside: await digestFiles(beside),
  });
}

async function digestFiles(paths: readonly string[]): Promise<Readonly<Record<string, Digest>>> {
  const digest = async (path: string) => [path, await digestFile(path)] as const;
  return Object.fromEntries(await Promise.all(paths.map(digest)));
}
