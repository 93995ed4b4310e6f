import type { Digest } from '../../base/digest.ts';
import { type FileProblem, isError, UsageError } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import { type MappedStage, mapStage } from '../../engine/index.ts';
import {
  type HostNetwork,
  type NetworkFinding,
  type NetworkTool,
  planHosts,
  planNetwork,
} from '../../nmstate/index.ts';
import { type SiteFacts, checkAcrossSites } from '../../sites/facts.ts';
import { type ReadSite, type SiteReader, createSiteReader } from '../../sites/reader.ts';
import {
  findingOfError,
  isOfOneSite,
  listHostNetworks,
  type Site,
  AGENT_FILE,
  IMAGE_BASED_FILE,
} from '../../sites/site.ts';
import { readFolder } from '../../sites/sources/folder.ts';
import { type SiteList, nameBelow, type SiteProblem } from '../../sites/sources/list.ts';
import { listMembers } from '../../sites/sources/members.ts';
import { listSites } from '../../sites/sources/sites.ts';
import { DROP_IN_NAME, STATE_DIRECTORY } from '../../sites/state/generations.ts';
import type { SitesRequest, SiteTools } from '../request.ts';

/* The sites of a source: they are opened, read, and checked by themselves and against each other. */

/** Facts about a site after it was checked by itself; small, because there may be ten thousand. */
export type CheckedSite = {
  /** Digest of its inputs; absent if they could not be read. */
  readonly inputs?: Digest;
  readonly facts?: SiteFacts;
  readonly findings: readonly FileProblem[];
  /** True if nmstate is not available to check its network configuration. */
  readonly isUnseen?: boolean;
  /** True for a cluster that agents install. */
  readonly isForAgents?: boolean;
};

type SiteItem = { readonly name: string };

type CheckTools = { readonly reader: SiteReader; readonly nmstate?: NetworkTool | undefined };

/** Reads a site and applies every rule that concerns it alone. */
const checkSites: MappedStage<{ name: string }, CheckedSite, CheckTools, SiteItem> = {
  name: 'check sites',
  items: 'sites',
  bind: ({ name }) => ({ name }),
  async run({ name }, { reader, nmstate }, signal) {
    const { site, files, findings, ...seen } = await reader.read(name);
    const found = site && (await checkNetworks(site, files, { tool: nmstate, signal }));
    if (!found) return { ...seen, findings, ...kindOf(site) };
    return { ...seen, ...kindOf(site), findings: [...findings, ...found], isUnseen: !nmstate };
  },
  recover(name, error) {
    if (!isOfOneSite(error)) throw error;
    return { findings: [findingOfError(name, error)] };
  },
};

const kindOf = (site: Site | undefined): Pick<CheckedSite, 'isForAgents'> =>
  site?.kind === 'agent' ? { isForAgents: true } : {};

type Judge = { readonly tool: NetworkTool | undefined; readonly signal: AbortSignal };

/** Findings of nmstate, and of the making of profiles, in a site without problems; undefined without a network. */
function checkNetworks(
  site: Site,
  files: ReadSite['files'],
  judge: Judge,
): Promise<readonly FileProblem[]> | undefined {
  const nameOf = (wanted: string): string =>
    files.find(({ path }) => path === wanted)?.shownAs ?? wanted;
  if (site.kind === 'agent') {
    const hosts = listHostNetworks(site.cluster);
    return hosts.length === 0 ? undefined : checkHosts(hosts, nameOf(AGENT_FILE), judge);
  }
  const { networkConfig } = site.imageBased;
  if (networkConfig === undefined) return undefined;
  return checkNode(networkConfig, nameOf(IMAGE_BASED_FILE), judge);
}

/** A node from a seed applies its document itself. */
async function checkNode(
  networkConfig: string,
  file: string,
  judge: Judge,
): Promise<readonly FileProblem[]> {
  const host = { networkConfig, interfaces: [] };
  const { ofTool } = await planNetwork(host, { ...judge, isApplied: true });
  const place = { file, path: 'networkConfig' };
  return [
    ...ofTool.problems.map((finding) => describe(finding, 'error', place)),
    ...ofTool.warnings.map((finding) => describe(finding, 'warning', place)),
  ];
}

/** Hosts that agents install get profiles, whose making is tried here. */
async function checkHosts(
  hosts: readonly HostNetwork[],
  file: string,
  judge: Judge,
): Promise<readonly FileProblem[]> {
  const told: FileProblem[] = [];
  const about = { code: 'sites.nmstate', file, path: 'hosts' };
  try {
    const warn = (problem: string): number => told.push({ severity: 'warning', ...about, problem });
    await planHosts(hosts, { ...judge, warn });
  } catch (error) {
    if (!isOfOneSite(error)) throw error;
    told.push({ ...findingOfError(file, error), path: 'hosts' });
  }
  return told;
}

/** A finding of nmstatectl, which knows no lines. */
function describe(
  { owner, problem }: NetworkFinding,
  severity: FileProblem['severity'],
  place: { readonly file: string; readonly path: string },
): FileProblem {
  const about = { severity, code: 'sites.nmstate', ...place };
  return { ...about, problem: owner === undefined ? problem : `interface "${owner}": ${problem}` };
}

/** Facts about a site after it was looked at; small, because there may be ten thousand. */
export type SurveyedSite = {
  readonly name: string;
  /** Digest of its inputs; absent if they could not be read. */
  readonly inputs?: Digest;
  readonly findings: readonly FileProblem[];
};

export type Survey = {
  /** Sites in the order of the source; those that could not be listed come last. */
  readonly sites: readonly SurveyedSite[];
  /** Findings that belong to no site. */
  readonly findings: readonly FileProblem[];
  readonly reader: SiteReader;
  /** True if nmstatectl was missing to check a network configuration. */
  readonly isUnseen: boolean;
};

/** Number of sites whose files are read ahead; checking them is what takes long. */
const AT_ONCE = 4;

const UNSEEN = 'nmstatectl is not installed: network configurations were checked without nmstate';

/**
 * Reads and checks every site of a list, each by itself and then against each other. Sites that
 * collide are refused together: this program cannot decide which of them is right.
 */
export async function surveySites(
  list: SiteList,
  { shared, ...options }: SitesRequest,
  tools: SiteTools,
): Promise<Survey> {
  const reader = createSiteReader(list, options);
  const items = list.names.map((name) => ({ name }));
  const { nmstate } = tools;
  const checked = await mapStage(checkSites, items, {
    ...tools,
    tools: { reader, nmstate },
    atOnce: AT_ONCE,
  });
  const all = [...checked.values()];
  const isUnseen = all.some((site) => site.isUnseen === true);
  if (isUnseen) tools.emit({ type: 'warning', message: UNSEEN });
  const facts = all.flatMap((site) => site.facts ?? []);
  const found = new Map<string, FileProblem[]>(list.names.map((name) => [name, []]));
  const add = (name: string, findings: Iterable<FileProblem>): void => {
    const known = found.get(name) ?? [];
    append(known, findings);
    found.set(name, known);
  };
  for (const { name, ...problem } of list.problems) add(name, [problem]);
  for (const [name, { findings }] of checked) add(name, list.trace?.(name, findings) ?? findings);
  for (const { name, ...finding } of checkAcrossSites(facts, shared)) add(name, [finding]);
  const ofNone = found.get(OF_NONE) ?? [];
  found.delete(OF_NONE);
  const sites = [...found].map(([name, findings]) => {
    const { inputs } = checked.get(name) ?? {};
    return { name, findings, ...withoutUndefined({ inputs }) };
  });
  return { sites, findings: ofNone, reader, isUnseen };
}

/** The name for findings that belong to no site. */
const OF_NONE = '';

export const isGood = (site: SurveyedSite): site is SurveyedSite & { readonly inputs: Digest } =>
  site.inputs !== undefined && !site.findings.some(isError);

/** Files that are next to the inputs after a build. */
const MADE = ['auth', 'imagebasedconfig.iso', 'agentconfig.noarch.iso'];
/** Folders that an earlier producer left; they are also read if the request has `retainFrom`. */
const RETAINED = ['cluster-configuration', 'tls'];

/** Opens the sites of a source; must be closed. */
export async function openSites(request: SitesRequest, signal: AbortSignal): Promise<SiteList> {
  const { sites, template, dropIn, cwd } = request;
  if (dropIn) return nameBelow(await openDropIn(request, signal), cwd);
  const options = { signal, ...withoutUndefined({ template }) };
  return nameBelow(await listSites(sites, options), cwd);
}

async function openDropIn(
  { sites, retainFrom }: SitesRequest,
  signal: AbortSignal,
): Promise<SiteList> {
  const source = await readFolder(sites, signal);
  const members = source.members.filter(({ path }) => path.split('/')[0] !== STATE_DIRECTORY);
  const list = listMembers({ ...source, members, rootName: DROP_IN_NAME });
  const known = [...MADE, ...(retainFrom === undefined ? [] : RETAINED)];
  const strangers = [...list.names, ...list.problems.map(({ name }) => name)].filter(
    (name) => ![DROP_IN_NAME, '', ...MADE, ...RETAINED].includes(name),
  );
  if (strangers.length > 0) {
    throw new UsageError('usage.drop-in', `${sites} is not the directory of one site`, {
      expected: 'install-config.yaml and image-based-config.yaml or agent-config.yaml in it',
      hint: 'leave out --drop-in for a folder of sites',
    });
  }
  const isWanted = (problem: SiteProblem): boolean =>
    isError(problem) || !known.includes(problem.file.slice(problem.file.lastIndexOf('/') + 1));
  return { ...list, problems: list.problems.filter(isWanted) };
}
