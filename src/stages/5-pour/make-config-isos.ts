import { basename, join } from 'node:path';
import { digestOf, type Digest } from '../../base/digest.ts';
import { syncDirectory } from '../../base/disk/files.ts';
import type { Lease } from '../../base/disk/succession.ts';
import { ConfigError, type FileProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { readProgramDigest } from '../../base/program.ts';
import { type MappedStage, mapStage } from '../../engine/index.ts';
import { type LiveMedium, readLiveMedium } from '../../media/config-image.ts';
import { useMedium } from '../../media/open.ts';
import { type NetworkTool, planHosts } from '../../nmstate/index.ts';
import type { AgentImageParts } from '../../sites/compose/agent-image.ts';
import {
  composeSite,
  hasOutputs,
  type ComposedIso,
  type SiteOutputs,
} from '../../sites/compose/compose.ts';
import type { StateSite, RetainedIdentity } from '../../sites/identity/identity.ts';
import type { Keys } from '../../sites/identity/keys.ts';
import type { SiteReader } from '../../sites/reader.ts';
import {
  type AgentSite,
  type Site,
  findingOfError,
  listHostNetworks,
  isOfOneSite,
  nameCluster,
  warnOfFile,
} from '../../sites/site.ts';
import { claimFiles, type ListedIds } from '../../sites/state/claim.ts';
import {
  STATE_DIRECTORY,
  type SitePlaces,
  beginRotation,
  endRotation,
  type Rotation,
  placesFor,
  stateDirectoryOf,
} from '../../sites/state/generations.ts';
import {
  provideIdentity,
  type SiteState,
  openStates,
  takesPart,
} from '../../sites/state/provide.ts';
import { type FindRetained, openRetained } from '../../sites/state/retained.ts';
import { type SiteWriter, createSiteWriter, SITES_AT_ONCE } from '../../sites/state/writer.ts';
import { listInputs, type ConfigIsosRequest, type ConfigIsosTools } from '../request.ts';

/* The making of configuration ISOs: it decides which sites are made, and with which identities. */

export type SiteOutcome =
  | {
      readonly kind: 'made' | 'reused';
      readonly made: ComposedIso;
      readonly outputs: SiteOutputs;
      /** The rotation that its keys were made in, if any. */
      readonly rotation?: string;
      readonly findings: readonly FileProblem[];
    }
  | { readonly kind: 'failed'; readonly finding: FileProblem };

/** Entries of sites in the list of an earlier run, by site name. */
export type ListedSites = ReadonlyMap<string, ListedIds>;

export type SitesToMake = {
  readonly names: readonly string[];
  /** Sites without objections, with the digest of their inputs. */
  readonly good: readonly { readonly name: string; readonly inputs: Digest }[];
  readonly reader: SiteReader;
};

export type ListedRequest = ConfigIsosRequest & { readonly listed: ListedSites };

/** Inputs that an ISO is made from; the identity that is also on it is state. */
type SiteInputs = {
  readonly name: string;
  /** Digest of the inputs of the site, which `reader` has. */
  readonly digest: Digest;
  readonly retained?: RetainedIdentity;
  /** Digest of what is taken from the medium. */
  readonly medium?: Digest;
};

type MakeTools = {
  readonly reader: SiteReader;
  readonly keys: Keys;
  readonly writer: SiteWriter;
  readonly nmstate?: NetworkTool | undefined;
  /** The medium of the sites that agents install, and the digest of what is taken from it. */
  readonly live?: LiveMedium | undefined;
  readonly medium?: Digest | undefined;
  readonly stateOf: (name: string) => SiteState;
  readonly findRetained: FindRetained;
};

/** Sites in progress: files of half of them are synced together while the other half are composed. */
const AT_ONCE = 2 * SITES_AT_ONCE;

/** Makes the ISOs of all sites without objections, except the ISOs that already exist. */
export async function makeSites(
  { names, good, reader }: SitesToMake,
  request: ListedRequest,
  tools: ConfigIsosTools & { readonly lease: Lease },
): Promise<ReadonlyMap<string, SiteOutcome>> {
  const findRetained = await openRetainedOf(names, request, tools);
  const rotation = await decideRotation(request, tools);
  const live =
    request.medium === undefined ? undefined : await useMedium(request.medium, readLiveMedium);
  return mapStage(
    makeIsos,
    good.map(({ name, inputs: digest }) => ({
      name,
      digest,
      record: placesFor(request, name).record,
    })),
    {
      ...tools,
      tools: {
        reader,
        findRetained,
        keys: tools.keys,
        nmstate: tools.nmstate,
        live,
        medium: live && digestMedium(live),
        writer: createSiteWriter(tools.lease),
        stateOf: openStates({ ...request, rotation, inputs: listInputs(request) }),
      },
      atOnce: request.jobs + AT_ONCE,
      program: tools.program ?? (await readProgramDigest()),
    },
  );
}

/**
 * Ends the rotation of a run if every site of it has its new keys. Nothing may be left to do then: after a
 * kill the same command begins another rotation.
 */
export async function concludeRotation(
  { names }: Pick<SitesToMake, 'names'>,
  outcomes: ReadonlyMap<string, SiteOutcome>,
  request: ConfigIsosRequest,
): Promise<void> {
  const { rotate, newIdentities, out } = request;
  const isDone = (name: string): boolean => (outcomes.get(name)?.kind ?? 'failed') !== 'failed';
  const rotated = names.filter((name) => takesPart(request, name));
  if ((!rotate && newIdentities === undefined) || !rotated.every(isDone)) return;
  await endRotation(out);
  await syncDirectory(stateDirectoryOf(out));
}

async function openRetainedOf(
  names: readonly string[],
  request: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<FindRetained> {
  const { find, strangers } = await openRetained(request, names);
  if (strangers.length > 0) {
    const message = `${request.retainFrom ?? ''} has retained files for ${JSON.stringify(strangers)}, which are not sites in these inputs`;
    emit({ type: 'warning', message });
  }
  return find;
}

/** A run that must not rotate ends the rotation that an earlier one began. */
async function decideRotation(
  { rotate, newIdentities, out }: ConfigIsosRequest,
  { emit }: ConfigIsosTools,
): Promise<Rotation | undefined> {
  if (!rotate && newIdentities === undefined) {
    await endRotation(out);
    return undefined;
  }
  const rotation = await beginRotation(out);
  if (rotation.isContinued) {
    const message =
      'an earlier rotation did not reach all sites: it continues with the remaining sites';
    emit({ type: 'warning', message });
  }
  return rotation;
}

/** Makes the ISO of a site and the files next to it. A problem with one site is the outcome of that site. */
const makeIsos: MappedStage<
  SiteInputs,
  SiteOutcome,
  MakeTools,
  Omit<SiteInputs, 'retained' | 'medium'>
> = {
  name: 'make ISOs',
  items: 'sites',
  bind: async ({ name, digest }, { findRetained, medium }) => ({
    name,
    digest,
    ...withoutUndefined({ retained: await findRetained(name), medium }),
  }),
  async run({ name, digest, retained }, { reader, keys, writer, stateOf, ...media }, signal) {
    const site = await reader.recall(name, digest);
    const state = stateOf(name);
    const { places, rotation } = state;
    const wish = { ...state, name, site: stateSiteOf(site), retained, keys, signal };
    const provided = await provideIdentity(wish);
    const image = site.kind === 'agent' ? await planParts(site, media, signal) : undefined;
    const composed = composeSite(site, { places, provided, retained, image });
    const { isThere, made, outputs } = composed;
    const isForAgents = site.kind === 'agent';
    const remains = isThere ? [] : await claimFiles({ ...state, provided, isForAgents });
    await writer.write(composed);
    const isHashOnly = retained !== undefined && provided.state.identity.password.text === '';
    const findings = [
      ...provided.findings,
      ...composed.cautions.map((caution) => warnOfFile(basename(places.iso), caution)),
      ...tellRemains(places, remains),
      ...(isHashOnly ? [tellNoPassword(places)] : []),
    ];
    const kind = isThere ? 'reused' : 'made';
    return { kind, made, outputs, findings, ...withoutUndefined({ rotation }) };
  },
  reuse(earlier, { name }, { stateOf }) {
    const { places, numbers, use, rotation } = stateOf(name);
    const inUse = numbers.at(-1);
    if (earlier.kind === 'failed' || inUse === undefined || (use ?? inUse) !== inUse) {
      return undefined;
    }
    if (rotation !== undefined && earlier.rotation !== rotation) return undefined;
    if (!hasOutputs(places, earlier.outputs, inUse)) return undefined;
    const made = { ...earlier.made, generation: inUse };
    return { ...earlier, kind: 'reused', made, findings: [] };
  },
  recover(name, error) {
    if (!isOfOneSite(error)) throw error;
    return { kind: 'failed', finding: findingOfError(name, error) };
  },
};

function stateSiteOf(site: Site): StateSite {
  const names = nameCluster(site);
  if (site.kind === 'agent') return { ...names, isForAgents: true };
  const { clusterId, infraId } = site.imageBased;
  return { ...names, ...withoutUndefined({ clusterId, infraId }) };
}

async function planParts(
  { name, cluster }: AgentSite,
  { live, nmstate: tool }: Pick<MakeTools, 'live' | 'nmstate'>,
  signal: AbortSignal,
): Promise<AgentImageParts> {
  if (live === undefined) {
    throw new ConfigError(
      'config-iso.no-medium',
      `${name} is installed by agents, and no medium is named`,
      {
        hint: 'name the live ISO that its hosts boot with --medium',
      },
    );
  }
  const networks = await planHosts(listHostNetworks(cluster), {
    tool,
    signal,
    warn: () => undefined,
  });
  return { live, networks };
}

function digestMedium({ system, ...others }: LiveMedium): Digest {
  const { loader, clusterImageSet, texts, paths } = system;
  const set = clusterImageSet && Buffer.from(clusterImageSet).toString('utf8');
  return digestOf(JSON.stringify([others, loader, set, [...texts], [...paths].sort()]));
}

function tellRemains({ iso }: SitePlaces, names: readonly string[]): readonly FileProblem[] {
  if (names.length === 0) return [];
  const moved = names.map((name) => join(STATE_DIRECTORY, name)).join(', ');
  const problem = `belonged to an identity that ${STATE_DIRECTORY} does not have: its remaining files are now ${moved}`;
  return [warnOfFile(basename(iso), problem)];
}

const tellNoPassword = ({ iso, password }: SitePlaces): FileProblem =>
  warnOfFile(
    basename(iso),
    `has a password that is known only as a hash: ${basename(password)} is empty`,
  );
