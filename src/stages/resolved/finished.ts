import { readdir, readFile, stat } from 'node:fs/promises';
import { join, dirname } from 'node:path';
import { digestOf, hexOf, isDigest, type Digest } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readStamp } from '../../base/disk/file-digests.ts';
import {
  readFileIfPresent,
  writeFileAtomic,
  digestFile,
  readFreeBytes,
} from '../../base/disk/files.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/proxy.ts';
import { isObject, withoutUndefined } from '../../base/lists.ts';
import { formatReadableJson, type Json, formatCanonicalJson } from '../../base/text/json.ts';
import {
  fingerprintOf,
  type Stage,
  type StageContext,
  type StageValue,
} from '../../engine/index.ts';
import { fetchStreamIso } from '../../openshift/release/base-iso.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { resolveInGraph } from '../../openshift/release/update-graph.ts';
import {
  digestOfPath,
  noteOfStream,
  parseNotedName,
  type NotedName,
  resolveUpgradePath,
} from '../../openshift/release/upgrade-path.ts';
import { recallFinished, namesBeside, type IsoRecords, type IsoPlace } from '../../outputs/file.ts';
import { parseReference, type RegistryClient } from '../../registry/index.ts';
import { describeUntouched, type MadeIso } from '../5-pour/pour.ts';
import type { BuildTools } from '../tools.ts';
import { secretsPathOf } from './record.ts';
import type { TagDigests } from './tags.ts';
import type { LockUse } from './use.ts';

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
const writeFinishedIso = (workDir: string, output: string, finished: FinishedIso): Promise<void> =>
  writeFileAtomic(pathOf(workDir, output), formatReadableJson({ format: 1, output, ...finished }));

/** undefined where there is none that can be read. */
async function readFinishedIso(workDir: string, output: string): Promise<FinishedIso | undefined> {
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

export type FindUnchangedIsoInput = {
  /** Of the request, the files that it names, and the program. */
  readonly asked: Digest;
  /** Absolute path of the ISO. */
  readonly output: string;
  /** Whether names stand for what a lock or a plan says, whatever they stand for now. */
  readonly isPinned: boolean;
  /** Whether the digest of the whole must be known. */
  readonly checksum: boolean;
  /** UPDATE_URL_OVERRIDE. */
  readonly graphUrl?: string;
  /** Address of the CoreOS stream that names the live ISO. */
  readonly streamUrl?: string;
};

export type FindUnchangedIsoTools = {
  readonly client: RegistryClient;
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly records: IsoRecords;
  readonly workDir: string;
};

/** What builds of this program wrote. */
type Report = Readonly<Record<string, Json>> & {
  /** Of installation ISOs, whose release is not carried. */
  readonly architecture?: RpmArchitecture;
  readonly release?: {
    readonly version: string;
    readonly reference: string;
    readonly architecture: RpmArchitecture;
  };
};

/**
 * The report of the output where an earlier build of this work directory finished it, the same was asked for, every
 * name that a person gave stands for what it stood for then, and nothing has touched the file since. Else
 * undefined, and the ISO is planned, which costs what a catalog and some hundred images cost. Tags of
 * signatures are not asked: their images are the same.
 */
const findUnchangedIso: Stage<FindUnchangedIsoInput, Report | undefined, FindUnchangedIsoTools> = {
  name: 'find unchanged ISO',
  async run({ isPinned, graphUrl, streamUrl, ...wanted }, tools, context) {
    const known = await readFinishedIso(tools.workDir, wanted.output);
    const report = known && (await readReport(known, wanted, tools));
    if (!report || isPinned) return report;
    const given = { report, ...withoutUndefined({ graphUrl, streamUrl }) };
    const ask = createAsk(given, { ...tools, ...context });
    const names = Object.entries(known.names);
    const same = await Promise.all(
      names.map(async ([name, digest]) => (await ask(name)) === digest),
    );
    return same.every(Boolean) ? report : undefined;
  },
};

/** The report of an ISO that was made of the same and that nothing has touched since. */
async function readReport(
  known: FinishedIso,
  { asked, output, checksum }: Pick<FindUnchangedIsoInput, 'asked' | 'output' | 'checksum'>,
  { records }: FindUnchangedIsoTools,
): Promise<Report | undefined> {
  if (known.asked !== asked) return undefined;
  const finished = await recallFinished(output, records);
  if (!finished || (checksum && finished.digest === undefined)) return undefined;
  const text = await readFileIfPresent(namesBeside(output).report);
  if (!text || digestOf(text) !== known.report) return undefined;
  return (await areUntouched(known.beside ?? {}))
    ? (JSON.parse(text.toString('utf8')) as Report)
    : undefined;
}

async function areUntouched(files: Readonly<Record<string, Digest>>): Promise<boolean> {
  for (const [path, digest] of Object.entries(files)) {
    const bytes = await readFileIfPresent(path);
    if (!bytes || digestOf(bytes) !== digest) return false;
  }
  return true;
}

type Given = Pick<FindUnchangedIsoInput, 'graphUrl' | 'streamUrl'> & { readonly report: Report };

type Asking = FindUnchangedIsoTools & StageContext;

/** Asks what a name stands for now. */
const createAsk =
  (given: Given, tools: Asking) =>
  async (name: string): Promise<Digest | undefined> => {
    const { client, signal } = tools;
    const noted = parseNotedName(name);
    if (noted) return askNoted(name, noted, { ...given, ...tools });
    return (await client.resolveTag(parseReference(name), { signal }))?.digest;
  };

async function askNoted(
  name: string,
  noted: NotedName,
  { report, graphUrl: url, streamUrl, ...tools }: Given & Asking,
): Promise<Digest | undefined> {
  const { http, tls, signal } = tools;
  const { release } = report;
  const arch = release?.architecture ?? report.architecture;
  if (!arch) return undefined;
  const access = { http, tls, arch, signal, ...withoutUndefined({ url }) };
  if (noted.kind === 'release')
    return (await resolveInGraph({ ...noted, ...access })).payload.digest;
  if (noted.kind === 'path') {
    if (release?.version !== noted.to) return undefined;
    const target = { version: noted.to, reference: parseReference(release.reference) };
    return digestOfPath(await resolveUpgradePath({ ...noted, release: target }, access));
  }
  if (streamUrl === undefined || noteOfStream(streamUrl) !== name) return undefined;
  return (await fetchStreamIso(streamUrl, arch, access)).sha256;
}

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
