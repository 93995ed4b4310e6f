import { recallFinished } from '../../media/output/recall-finished.ts';
import type { Digest } from '../../base/digest.ts';
import { digestOf } from '../../base/digest.ts';
import { readFileIfPresent } from '../../base/disk/files.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { Json } from '../../base/text/canonical-json.ts';
import type { Stage, StageContext } from '../../engine/stage.ts';
import { namesBeside } from '../../media/output/claim-iso.ts';
import { readFinishedIso } from '../../media/output/finished-iso.ts';
import type { IsoRecords } from '../../media/output/iso-records.ts';
import type { RpmArchitecture } from '../../openshift/release/release-bundle.ts';
import { resolveInGraph } from '../../openshift/release/update-graph.ts';
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
};

export type FindUnchangedIsoTools = {
  readonly client: RegistryClient;
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly records: IsoRecords;
  readonly workDir: string;
};

type Report = Readonly<Record<string, Json>>;

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
  async run({ asked, output, isPinned, checksum, graphUrl }, tools, context) {
    const known = await readFinishedIso(tools.workDir, output);
    if (known?.asked !== asked) return undefined;
    const finished = await recallFinished(output, tools.records);
    if (!finished || (checksum && finished.digest === undefined)) return undefined;
    const text = await readFileIfPresent(namesBeside(output).report);
    if (!text || digestOf(text) !== known.report) return undefined;
    const report = JSON.parse(text.toString('utf8')) as Report;
    const { architecture: arch } = report['release'] as { architecture: RpmArchitecture };
    if (isPinned) return report;
    const ask = createAsk({ arch, ...withoutUndefined({ graphUrl }) }, { ...tools, ...context });
    const names = Object.entries(known.names);
    const same = await Promise.all(
      names.map(async ([name, digest]) => (await ask(name)) === digest),
    );
    return same.every(Boolean) ? report : undefined;
  },
};

/** As `settleTags` notes what an update graph was asked. */
const IN_GRAPH = /^release (\S+) of (\S+)$/;

/** Asks what a name stands for now. */
const createAsk =
  (
    graph: { readonly arch: RpmArchitecture; readonly graphUrl?: string },
    { client, http, tls, signal }: FindUnchangedIsoTools & StageContext,
  ) =>
  async (name: string): Promise<Digest | undefined> => {
    const [, version, channel] = IN_GRAPH.exec(name) ?? [];
    if (version === undefined || channel === undefined) {
      return (await client.resolveTag(parseReference(name), { signal }))?.digest;
    }
    const { arch, graphUrl: url } = graph;
    const access = { http, tls, arch, signal, ...withoutUndefined({ url }) };
    return (await resolveInGraph({ version, channel, ...access })).payload.digest;
  };
