import { join, dirname } from 'node:path';
import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import {
  readFileIfPresent,
  writeFileAtomic,
  digestFile,
  readFreeBytes,
} from '../../base/disk/files.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import { type Stage, type StageContext } from '../../engine/index.ts';
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
import { recallFinished, type IsoRecords } from '../../outputs/file.ts';
import { namesBeside } from '../../outputs/place.ts';
import { parseReference, type RegistryClient } from '../../registry/index.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { DIGEST, mapping, oneOf, optional, record, type TypeOf } from '../../shape/shape.ts';
import { describeUntouched, type MadeIso } from '../5-pour/pour.ts';
import type { BuildTools } from '../tools.ts';
import type { TagDigests } from './tags.ts';
import { type Request, digestWithLock } from './describe-asked.ts';

/* The record of a finished ISO, by which the next build finds that there is no work to do. */

const FINISHED = record(
  {
    format: oneOf(1),
    /** Digest of the request, the files that it names, and the program. */
    asked: DIGEST,
    /** Digests that names had and that may have changed by now. */
    names: mapping(DIGEST),
    /** Digest of the report next to the ISO. */
    report: DIGEST,
    /** Digests of other files that the build wrote next to it, by path. */
    beside: optional(mapping(DIGEST)),
  },
  { others: 'left-out' },
);

/** The inputs of an ISO, as far as they can be asked for again without planning it. */
type FinishedIso = TypeOf<typeof FINISHED>;

const pathOf = (workDir: string, output: string): string =>
  join(workDir, 'finished', `${hexOf(digestOf(output)).slice(0, 32)}.json`);

/** Writes the record last: without it, the ISO is planned again. */
const writeFinishedIso = (workDir: string, output: string, finished: FinishedIso): Promise<void> =>
  writeFileAtomic(pathOf(workDir, output), formatReadableJson({ output, ...finished }));

/** Reads the record; undefined if it is missing or damaged. */
async function readFinishedIso(workDir: string, output: string): Promise<FinishedIso | undefined> {
  const bytes = await readFileIfPresent(pathOf(workDir, output));
  return bytes && ifFaultless(decodeJson(FINISHED, bytes));
}

export type FindUnchangedIsoInput = {
  /** Digest of the request, the files that it names, and the program. */
  readonly asked: Digest;
  /** Absolute path of the ISO. */
  readonly output: string;
  /** True if a lock or a plan decides the digest of each name, regardless of its digest now. */
  readonly isPinned: boolean;
  /** True if the digest of the whole must be known. */
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

/** The report that builds of this program wrote. */
type Report = Readonly<Record<string, Json>> & {
  /** Present for installation ISOs, whose release is not carried. */
  readonly architecture?: RpmArchitecture;
  readonly release?: {
    readonly version: string;
    readonly reference: string;
    readonly architecture: RpmArchitecture;
  };
};

/**
 * Finds the report of the output if an earlier build of this work directory finished it, the
 * request is the same, every name that a person gave still has the same digest, and the file has
 * not been touched since. Otherwise returns undefined, and the ISO is planned, which costs as much
 * as fetching a catalog and some hundred images' manifests. Tags of signatures are not asked for:
 * their images are the same.
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

/** Reads the report of an ISO that was made from the same inputs and has not been touched since. */
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

/** Creates the function that asks for the current digest of a name. */
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

type Asked = { readonly asked: Digest | undefined; readonly request: Request };

/** Finds the report of the output if it needs no build; see `findUnchangedIso`. */
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
    ...describeUntouched(Number(isoSize)),
    hosts: client.statistics(),
    stages: [...engine.times()],
    isUpToDate: true,
  };
}

/** A tag that contains a digest, like the tags of signatures: its image is carried as it is. */
const OF_DIGEST = /:sha256-[0-9a-f]{64}(?:\.\w+)?$/;

type Finished = {
  readonly tags: TagDigests;
  /** Paths of other files that were written next to the ISO. */
  readonly beside: readonly string[];
};

/** Records facts about a finished build for the next one. */
export async function rememberFinished(
  { asked, request, tags, beside }: Asked & Finished,
  { workDir }: BuildTools,
): Promise<void> {
  const report = await readFileIfPresent(namesBeside(request.output).report);
  if (asked === undefined || !report) return;
  const names = Object.entries(tags).filter(([name]) => !OF_DIGEST.test(name));
  await writeFinishedIso(workDir, request.output, {
    format: 1,
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
