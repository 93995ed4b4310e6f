import type { ConfigProblem } from '../problem.ts';
import { listExtraManifests, warnOfExtraManifests } from './extra-manifests.ts';
import { formatNetworkConfig } from './network/format-network-config.ts';
import { isMapping } from './network/free.ts';
import type { FleetNetworks } from './network/plausibility.ts';
import { checkImageBasedConfig } from './rules/image-based-config.ts';
import { checkInstallConfig, readProxy } from './rules/install-config.ts';
import { listMachineNetworks, resolveNetworks, type NetworkEntry } from './rules/networks.ts';
import { warnOfImageBasedConfig, warnOfInstallConfig } from './rules/warnings.ts';
import { readSiteDocument, type SiteDocument } from './site-document.ts';
import { listFacts, type SiteFacts } from './site-facts.ts';
import type { Site, SiteFile, SiteImageBasedConfig, SiteInput, SiteInstallConfig } from './site.ts';
import {
  IMAGE_BASED_CONFIG,
  INSTALL_CONFIG,
  type WrittenImageBasedConfig,
  type WrittenInstallConfig,
} from './site-shapes.ts';

export type { SiteFacts } from './site-facts.ts';

export type SiteCheck = {
  /** Only of inputs without a problem. */
  readonly site?: Site;
  /** What other sites are compared with; absent where a file is missing or cannot be read. */
  readonly facts?: SiteFacts;
  /** In the order of files and lines. */
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
};

type InstallDocument = SiteDocument<typeof INSTALL_CONFIG>;
type ImageBasedDocument = SiteDocument<typeof IMAGE_BASED_CONFIG>;

/**
 * Reads the inputs of one site and applies every rule of its own, all at once. Rules look at a copy
 * with the installer's defaults; what a site keeps is what the user wrote.
 *
 * @param epoch seconds since 1970: what certificates are measured by
 */
export function checkSite(input: SiteInput, { epoch }: { readonly epoch: number }): SiteCheck {
  const install = findFile(input, 'install-config.yaml');
  const imageBased = findFile(input, 'image-based-config.yaml');
  const manifests = warnOfExtraManifests(input.files);
  const first = 'bytes' in install ? readSiteDocument(install, INSTALL_CONFIG) : undefined;
  const second =
    'bytes' in imageBased ? readSiteDocument(imageBased, IMAGE_BASED_CONFIG) : undefined;
  const problems = [
    ...('bytes' in install ? [] : [install]),
    ...(first ? judgeInstall(first) : []),
    ...('bytes' in imageBased ? [] : [imageBased]),
    ...(second ? judgeImageBased(second, first?.value) : []),
  ];
  const warnings = [
    ...(first && !first.isBroken ? warnOfInstallConfig(first.report, first.value, epoch) : []),
    ...(second && !second.isBroken ? warnOfImageBasedConfig(second.report, second.value) : []),
  ];
  return {
    ...(first && second && { facts: gatherFacts(input, first, second) }),
    ...(first && second && problems.length === 0 && { site: createSite(input, first, second) }),
    problems,
    warnings: [...inOrder(warnings), ...manifests],
  };
}

/** A missing file is a problem that names it. */
function findFile({ name, files }: SiteInput, path: string): SiteFile | ConfigProblem {
  const file = files.find((each) => each.path === path);
  if (file) return file;
  const near = files.find(
    (each) => /\.(?:ya?ml|json)$/.test(each.path) && stem(each.path) === stem(path),
  );
  return {
    ...{
      file: near?.shownAs ?? showPath(name, files, path),
      line: 1,
      column: 1,
      path: '',
      lineText: '',
    },
    problem: `${path} is missing`,
    ...(near && { hint: `rename ${near.path} to ${path}` }),
  };
}

const stem = (path: string): string =>
  path
    .toLowerCase()
    .replace(/\.[a-z]+$/, '')
    .replaceAll('_', '-');

/** As the site's other files are called. */
function showPath(name: string, files: readonly SiteFile[], path: string): string {
  const other = files.find((each) => each.shownAs.endsWith(each.path));
  return other ? other.shownAs.slice(0, -other.path.length) + path : `${name}/${path}`;
}

/** A broken document holds nothing that rules could judge. */
function judgeInstall({
  value,
  report,
  problems,
  isBroken,
}: InstallDocument): readonly ConfigProblem[] {
  if (isBroken) return problems;
  const networks = resolveNetworks(value.networking);
  return inOrder([...problems, ...checkInstallConfig(report, value, networks)]);
}

function judgeImageBased(
  { value, report, problems, isBroken }: ImageBasedDocument,
  install: WrittenInstallConfig = {},
): readonly ConfigProblem[] {
  if (isBroken) return problems;
  const networks = resolveNetworks(install.networking);
  const fleet: FleetNetworks = {
    machine: cidrsOf(listMachineNetworks(install.networking)),
    service: cidrsOf(networks.service),
    cluster: cidrsOf(networks.cluster),
  };
  return inOrder([...problems, ...checkImageBasedConfig(report, value, fleet)]);
}

const cidrsOf = (entries: readonly NetworkEntry[]): FleetNetworks['machine'] =>
  entries.flatMap(({ cidr }) => (cidr ? [cidr] : []));

/** One text may be told by two rules. */
function inOrder(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const seen = new Set<string>();
  return problems
    .filter(({ line, column, path, problem }) => {
      const key = JSON.stringify([line, column, path, problem]);
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    })
    .toSorted((a, b) => a.line - b.line || a.column - b.column);
}

const gatherFacts = (
  { name }: SiteInput,
  install: InstallDocument,
  imageBased: ImageBasedDocument,
): SiteFacts => ({
  name,
  facts: listFacts(install, imageBased, cidrsOf(listMachineNetworks(install.value.networking))),
});

const createSite = (
  { name, files }: SiteInput,
  install: InstallDocument,
  imageBased: ImageBasedDocument,
): Site => ({
  name,
  install: keepInstall(install.value),
  imageBased: keepImageBased(imageBased.value),
  extraManifests: listExtraManifests(files),
});

function keepInstall(written: WrittenInstallConfig): SiteInstallConfig {
  const { additionalTrustBundle: bundle, additionalTrustBundlePolicy: policy } = written;
  const proxy = readProxy(written.proxy);
  const machine = listMachineNetworks(written.networking).map(({ text }) => text);
  const sources = written.imageDigestSources;
  return {
    clusterName: written.metadata?.name ?? '',
    baseDomain: written.baseDomain ?? '',
    sshKey: written.sshKey ?? '',
    pullSecret: written.pullSecret ?? '',
    ...(proxy && { proxy }),
    ...(bundle && { additionalTrustBundle: bundle }),
    ...(policy && { additionalTrustBundlePolicy: policy }),
    ...(machine.length > 0 && { machineNetworks: machine }),
    ...(sources && { imageDigestSources: sources.map(keepSource) }),
  };
}

type WrittenSource = NonNullable<WrittenInstallConfig['imageDigestSources']>[number];

const keepSource = ({
  source = '',
  mirrors = [],
  sourcePolicy,
}: NonNullable<WrittenSource> = {}): NonNullable<
  SiteInstallConfig['imageDigestSources']
>[number] => ({
  source,
  mirrors: mirrors.map((mirror = '') => mirror),
  ...(sourcePolicy && { sourcePolicy }),
});

function keepImageBased(written: WrittenImageBasedConfig): SiteImageBasedConfig {
  const { networkConfig: network, releaseRegistry } = written;
  const { cluster_id: clusterId, infra_id: infraId } = written;
  const isGiven = isMapping(network) && Object.keys(network).length > 0;
  return {
    additionalNTPSources: (written.additionalNTPSources ?? []).map((source = '') => source),
    hostname: written.hostname ?? '',
    ...(isGiven && { networkConfig: formatNetworkConfig(network) }),
    ...(releaseRegistry && { releaseRegistry }),
    ...(clusterId && { clusterId }),
    ...(infraId && { infraId }),
    nodeLabels: written.nodeLabels ?? {},
  };
}
