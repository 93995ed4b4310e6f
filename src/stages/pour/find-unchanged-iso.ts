import { recallFinished } from '../../outputs/file.ts';
import type { Digest } from '../../base/digest.ts';
import { digestOf } from '../../base/digest.ts';
import { readFileIfPresent } from '../../base/disk/files.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/proxy.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Json } from '../../base/text/json.ts';
import type { Stage, StageContext } from '../../engine/stage.ts';
import { namesBeside } from '../../outputs/file.ts';
import { readFinishedIso, type FinishedIso } from '../../media/output/finished-iso.ts';
import type { IsoRecords } from '../../outputs/file.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { fetchStreamIso } from '../../openshift/release/base-iso.ts';
import {
  digestOfPath,
  noteOfStream,
  parseNotedName,
  type NotedName,
} from '../../openshift/release/upgrade-path.ts';
import { resolveInGraph } from '../../openshift/release/update-graph.ts';
import { resolveUpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { parseReference } from '../../registry/reference.ts';

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
export const findUnchangedIso: Stage<
  FindUnchangedIsoInput,
  Report | undefined,
  FindUnchangedIsoTools
> = {
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
