import type { Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { StageContext } from '../../engine/index.ts';
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
import { parseReference, type RegistryClient } from '../../registry/index.ts';
import type { TagDigests } from './tags.ts';

/* Owns the question that saves a run: do all names of an earlier one still have their digests? */

export type NameContext = {
  /** Its report: the release whose names are asked for. */
  readonly report: {
    /** Present for installation ISOs, whose release is not carried. */
    readonly architecture?: RpmArchitecture;
    readonly release?: {
      readonly version: string;
      readonly reference: string;
      readonly architecture: RpmArchitecture;
    };
  };
  /** UPDATE_URL_OVERRIDE. */
  readonly graphUrl?: string;
  /** Address of the CoreOS stream that names the live ISO. */
  readonly streamUrl?: string;
};

export type NameTools = {
  readonly client: RegistryClient;
  readonly http: Http;
  readonly tls: TlsOptions;
};

type Asking = NameTools & StageContext;

/** Asks for all names at once. A name that means nothing any more is not the same. */
export async function areSame(
  names: TagDigests,
  given: NameContext,
  tools: Asking,
): Promise<boolean> {
  const ask = createAsk(given, tools);
  try {
    const same = await Promise.all(
      Object.entries(names).map(async ([name, digest]) => (await ask(name)) === digest),
    );
    return same.every(Boolean);
  } catch (error) {
    if (error instanceof ConfigError) return false;
    throw error;
  }
}

/** A tag that contains a digest, like the tags of signatures: its image is carried as it is. */
const OF_DIGEST = /:sha256-[0-9a-f]{64}(?:\.\w+)?$/;

export const listNames = (tags: TagDigests): TagDigests =>
  Object.fromEntries(Object.entries(tags).filter(([name]) => !OF_DIGEST.test(name)));

const createAsk =
  (given: NameContext, tools: Asking) =>
  async (name: string): Promise<Digest | undefined> => {
    const { client, signal } = tools;
    const noted = parseNotedName(name);
    if (noted) return askNoted(name, noted, { ...given, ...tools });
    return (await client.resolveTag(parseReference(name), { signal }))?.digest;
  };

async function askNoted(
  name: string,
  noted: NotedName,
  { report, graphUrl: url, streamUrl, ...tools }: NameContext & Asking,
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
