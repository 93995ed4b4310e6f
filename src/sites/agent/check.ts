import type { DocumentProblem } from '../../base/errors.ts';
import { type Cidr, formatAddress, parseAddress } from '../../base/ip-address.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { type ReportProblem, invalid, required } from '../../shape/report.ts';
import type { CheckOptions, SiteCheck } from '../check.ts';
import {
  isDocument,
  judgeDocument,
  limitProblems,
  openDocument,
  openInstallConfig,
  warnOfDocument,
} from '../opened.ts';
import { isAddressOrDomain } from '../rules/images.ts';
import { countNodes } from '../rules/machine-pools.ts';
import { checkAnyCluster, reportNtpSource } from '../rules/install-config.ts';
import { formatMade } from '../resources/make.ts';
import { resolveNetworks } from '../rules/networks.ts';
import { type AgentSite, type SiteFile, type SiteInput, AGENT_FILE } from '../site.ts';
import {
  AGENT_CONFIG,
  AGENT_INSTALL_CONFIG,
  AGENT_PUBLIC_KEYS,
  type AgentConfigDocument,
  type AgentInstallDocument,
  type WrittenAgentConfig,
  type WrittenAgentInstall,
} from './documents.ts';
import { listAgentFacts } from './facts.ts';
import { checkFencedHosts, checkFencing } from './fencing.ts';
import { checkHosts } from './hosts.ts';
import { checkAgentManifests, listAgentManifests, warnOfAgentManifests } from './manifests.ts';
import { checkMembersOfPlatform } from './members.ts';
import { checkAgentNetworks } from './networks.ts';
import { listAgentHosts, readAgentCluster, withHosts } from './read-cluster.ts';
import { checkProvisioning } from './provisioning.ts';
import { checkCounts, checkRendezvousIp, warnOfCounts } from './rendezvous.ts';
import { checkTopology, findPlatform } from './topology.ts';
import { checkVips, listVips } from './vips.ts';
import { warnOfAgentSite } from './warnings.ts';

/*
 * Entry of the folder: the files of a site that agents install come in, and a checked site with its facts and
 * problems leaves.
 */

/** True for a site whose hosts boot a live ISO, and not a seed image. */
export const isAgentSite = ({ files }: SiteInput): boolean =>
  files.some(({ path }) => path === AGENT_FILE);

const AS_INSTALL_CONFIG = { shape: AGENT_INSTALL_CONFIG, publicKeys: AGENT_PUBLIC_KEYS };

type AgentDocuments = {
  readonly install: AgentInstallDocument;
  readonly agent: AgentConfigDocument;
};

/** Applies every rule for a cluster that agents install. */
export function checkAgentSite(input: SiteInput, options: CheckOptions): SiteCheck<AgentSite> {
  const { install, references } = openInstallConfig(input, AS_INSTALL_CONFIG, options);
  const agent = openDocument(input, AGENT_FILE, {
    shape: AGENT_CONFIG,
    publicKeys: AGENT_PUBLIC_KEYS,
  });
  const isRead = isDocument(install) && isDocument(agent);
  const both = isRead && !install.isBroken && !agent.isBroken ? { install, agent } : undefined;
  const problems = limitProblems([
    ...judgeInstall(install, both),
    ...judgeAgent(agent, both),
    ...checkAgentManifests(input.files),
  ]);
  return {
    ...(both && { facts: { name: input.name, facts: listAgentFacts(both.install, both.agent) } }),
    ...(both && problems.length === 0 && { site: createAgentSite(input, both) }),
    problems,
    references,
    warnings: limitProblems([
      ...warnOfDocument(install, ({ report, value }) => warnOfAgentSite(report, value, options)),
      ...(both
        ? warnOfDocument(agent, ({ report }) =>
            warnOfCounts(
              report,
              listAgentHosts(both.install.value, both.agent.value),
              countNodes(both.install.value),
            ),
          )
        : []),
      ...warnOfAgentManifests(input.files),
    ]),
  };
}

const judgeInstall = (
  install: AgentInstallDocument | DocumentProblem,
  both: AgentDocuments | undefined,
): readonly DocumentProblem[] =>
  judgeDocument(install, ({ value, report }) => [
    ...checkAnyCluster(report, value, resolveNetworks(value.networking)),
    ...checkTopology(report, value),
    ...checkFencing(report, value),
    ...(both ? checkFencedHosts(report, value, listAgentHosts(value, both.agent.value)) : []),
    ...checkProvisioning(report, value),
    ...checkVips(report, value),
    ...checkMembersOfPlatform(report, value),
    ...checkAgentNetworks(report, value),
  ]);

const judgeAgent = (
  agent: AgentConfigDocument | DocumentProblem,
  both: AgentDocuments | undefined,
): readonly DocumentProblem[] =>
  judgeDocument(agent, ({ value, report }) => [
    ...checkMembers(report, value),
    ...(both ? checkBoth(report, both.install.value, value) : []),
  ]);

const VERSIONS = ['v1beta1', 'v1alpha1'];

function checkMembers(
  report: ReportProblem,
  written: WrittenAgentConfig,
): readonly DocumentProblem[] {
  const { apiVersion = '', additionalNTPSources = [], bootArtifactsBaseURL: base = '' } = written;
  const version =
    apiVersion === ''
      ? required('no version was provided')
      : invalid(apiVersion, `cannot upconvert from version ${apiVersion}`);
  return [
    ...(VERSIONS.includes(apiVersion) ? [] : [report('apiVersion', version)]),
    ...additionalNTPSources.flatMap((source = '', index) =>
      isAddressOrDomain(source) ? [] : [reportNtpSource(report, source, index)],
    ),
    ...(base === '' || /^[a-z][a-z0-9+.-]*:/i.test(base)
      ? []
      : [
          report(
            'bootArtifactsBaseURL',
            invalid(base, `invalid URI ${JSON.stringify(base)} (no scheme)`),
          ),
        ]),
  ];
}

/** Checks that the hosts fit the cluster. Hosts of install-config.yaml are judged where agent-config.yaml could have them. */
function checkBoth(
  report: ReportProblem,
  install: WrittenAgentInstall,
  agent: WrittenAgentConfig,
): readonly DocumentProblem[] {
  const hosts = listAgentHosts(install, agent);
  const machine = listMachine(install);
  const vips = listVirtual(install);
  const platform = findPlatform(install);
  const isUserManaged = platform !== 'baremetal' && countNodes(install).master > 1;
  const isOwnBalancer = install.platform?.baremetal?.loadBalancer?.type === 'UserManaged';
  return [
    ...checkHosts(report, hosts, {
      machine,
      vips,
      isUserManaged,
      needsAllNetworks: !isOwnBalancer,
    }),
    ...checkCounts(report, hosts, countNodes(install)),
    ...checkRendezvousIp(report, withHosts(install, agent), { machine, vips }),
  ];
}

const listMachine = ({ networking }: WrittenAgentInstall): readonly Cidr[] =>
  resolveNetworks(networking).machine.flatMap(({ cidr }) => (cidr ? [cidr] : []));

function listVirtual({ platform }: WrittenAgentInstall): readonly string[] {
  const { api, ingress } = listVips(platform?.baremetal ?? {});
  return [...api, ...ingress].flatMap((text) => {
    const address = parseAddress(text);
    return address ? [formatAddress(address)] : [];
  });
}

const createAgentSite = (
  { name, files, installMembers, release }: SiteInput,
  { install, agent }: AgentDocuments,
): AgentSite => {
  const file = files.find(({ path }) => path === AGENT_FILE);
  const manifests = listAgentManifests(files);
  const agentConfig = file && readLater(file);
  const rest = { manifests, ...withoutUndefined({ agentConfig, installMembers, release }) };
  return { kind: 'agent', name, cluster: readAgentCluster(install.value, agent.value, rest) };
};

/** A site is remembered, and so holds the value of a made file without the documents that it was made of. */
function readLater(file: SiteFile): () => Uint8Array {
  if (file.made) {
    const { value } = file.made;
    return () => formatMade(value);
  }
  const { bytes } = file;
  return () => bytes;
}
