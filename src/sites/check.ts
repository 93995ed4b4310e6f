import type { DocumentProblem } from '../base/errors.ts';
import { isObject, withoutUndefined } from '../base/lists.ts';
import type { Redaction } from '../base/text/redact.ts';
import { formatNetworkConfig } from '../nmstate/index.ts';
import type { DigestSource } from '../openshift/installation/mirrors.ts';
import type { SeedCluster } from '../openshift/installation/seed.ts';
import {
  type SiteDocument,
  IMAGE_BASED_CONFIG,
  INSTALL_CONFIG,
  type WrittenImageBasedConfig,
  type WrittenInstallConfig,
  type References,
} from './documents.ts';
import { listFacts, type SiteFacts } from './facts.ts';
import { checkExtraManifests, listExtraManifests, warnOfExtraManifests } from './manifests.ts';
import { checkImageBasedConfig, checkInstallConfig, readProxy } from './rules/install-config.ts';
import {
  keepMachineNetworks,
  listMachineNetworks,
  resolveNetworks,
  type NetworkEntry,
} from './rules/networks.ts';
import type { ClusterNetworks } from './rules/plausibility.ts';
import { checkSeed } from './rules/seed.ts';
import { warnOfImageBasedConfig, warnOfInstallConfig } from './rules/warnings.ts';
import {
  isDocument,
  judgeDocument,
  limitProblems,
  openDocument,
  openInstallConfig,
  warnOfDocument,
} from './opened.ts';
import type { SiteFlow } from './resources/shape.ts';
import {
  type ImageBasedSite,
  type Site,
  type SiteInput,
  type SiteImageBasedConfig,
  type SiteInstallConfig,
  IMAGE_BASED_FILE,
} from './site.ts';

/*
 * Entry of the room: the files of one site come in, and a checked site with its facts and problems leaves. It
 * joins the documents, their references, the rules and the manifests of a site, so that all problems are
 * reported at once. The room must not know commands, the content of seeds or how a build is scheduled.
 */

export type SiteCheck<S extends Site = Site> = {
  /** Present only if the inputs have no problem. */
  readonly site?: S;
  /** Facts to compare with other sites; absent if a file is missing or cannot be read. */
  readonly facts?: SiteFacts;
  /** Values of `file:` and `env:` references, by key; secrets are among them. */
  readonly references: References;
  /** Problems in the order of files and lines. */
  readonly problems: readonly DocumentProblem[];
  readonly warnings: readonly DocumentProblem[];
};

export type CheckOptions = {
  /** Time against which certificates are checked, in seconds since 1970. */
  readonly epoch: number;
  /** Makes unknown keys of install-config.yaml warnings, as with OPENSHIFT_INSTALL_INVOKER. */
  readonly isLenient?: boolean;
  /** Version of the seed that the sites are installed from, if it is known: `X.Y` or `X.Y.Z`. */
  readonly seedVersion?: string;
  /** The cluster that the seed was made from, if it is known. */
  readonly seed?: SeedCluster | undefined;
  /** Flow of SiteConfigs, and of ClusterInstances whose templates are a team's own. */
  readonly flow?: SiteFlow;
  /** Environment in which `env:NAME` is looked up. */
  readonly env?: NodeJS.ProcessEnv;
  /** Masks pull secrets. */
  readonly redaction: Redaction;
};

type InstallDocument = SiteDocument<typeof INSTALL_CONFIG>;
type ImageBasedDocument = SiteDocument<typeof IMAGE_BASED_CONFIG>;

type Both = { readonly install: InstallDocument; readonly imageBased: ImageBasedDocument };

/**
 * Applies every rule for a single node from a seed. Rules look at a copy with the installer's defaults; the site keeps
 * the values that the user wrote.
 */
export function checkSite(input: SiteInput, options: CheckOptions): SiteCheck<ImageBasedSite> {
  const { install, references } = openInstallConfig(input, { shape: INSTALL_CONFIG }, options);
  const imageBased = openDocument(input, IMAGE_BASED_FILE, { shape: IMAGE_BASED_CONFIG });
  const both = isDocument(install) && isDocument(imageBased) ? { install, imageBased } : undefined;
  const problems = limitProblems([
    ...judgeInstall(install, options),
    ...judgeImageBased(imageBased, install),
    ...checkExtraManifests(input.files),
  ]);
  return {
    ...(both && { facts: gatherFacts(input, both) }),
    ...(both && problems.length === 0 && { site: createSite(input, both, options) }),
    problems,
    references,
    warnings: limitProblems([
      ...warnOfDocument(install, ({ report, value }) =>
        warnOfInstallConfig(report, value, options),
      ),
      ...warnOfDocument(imageBased, ({ report, value }) =>
        warnOfImageBasedConfig(report, value, listNetworks(install)),
      ),
      ...warnOfExtraManifests(input.files),
    ]),
  };
}

const judgeInstall = (
  install: InstallDocument | DocumentProblem,
  { seedVersion, seed }: CheckOptions,
): readonly DocumentProblem[] =>
  judgeDocument(install, ({ value, report }) => {
    const networks = resolveNetworks(value.networking);
    const options = { networks, ...withoutUndefined({ seedVersion }) };
    return [...checkInstallConfig(report, value, options), ...checkSeed(report, value, seed)];
  });

const NO_NETWORKS: ClusterNetworks = { machine: [], service: [], cluster: [] };

const judgeImageBased = (
  imageBased: ImageBasedDocument | DocumentProblem,
  install: InstallDocument | DocumentProblem,
): readonly DocumentProblem[] =>
  judgeDocument(imageBased, ({ value, report }) =>
    checkImageBasedConfig(report, value, listNetworks(install)),
  );

/** Machine networks exactly as written, since these are the ones the node will get. */
function listNetworks(install: InstallDocument | DocumentProblem): ClusterNetworks {
  if (!isDocument(install) || install.isBroken) return NO_NETWORKS;
  const { networking } = install.value;
  const { service, cluster } = resolveNetworks(networking);
  const machine = listMachineNetworks(networking);
  return { machine: cidrsOf(machine), service: cidrsOf(service), cluster: cidrsOf(cluster) };
}

const cidrsOf = (entries: readonly NetworkEntry[]): ClusterNetworks['machine'] =>
  entries.flatMap(({ cidr }) => (cidr ? [cidr] : []));

const gatherFacts = ({ name }: SiteInput, { install, imageBased }: Both): SiteFacts => ({
  name,
  facts: listFacts(install, imageBased, listNetworks(install).machine),
});

const createSite = (
  { name, files }: SiteInput,
  { install, imageBased }: Both,
  options: CheckOptions,
): ImageBasedSite => ({
  kind: 'image-based',
  name,
  install: keepInstallConfig(install.value, options),
  imageBased: keepImageBasedConfig(imageBased.value),
  extraManifests: listExtraManifests(files),
});

/** The parts of install-config.yaml that go to the node, without any default. */
function keepInstallConfig(written: WrittenInstallConfig, seed: CheckOptions): SiteInstallConfig {
  const { metadata = {}, baseDomain = '', sshKey = '', pullSecret = '' } = written;
  const proxy = readProxy(written.proxy);
  return {
    clusterName: metadata.name ?? '',
    baseDomain,
    sshKey,
    pullSecret,
    ...(proxy && { proxy }),
    ...keepTrust(written),
    ...keepMachineNetworks(written.networking, seed),
    ...(written.imageDigestSources && {
      imageDigestSources: written.imageDigestSources.map(keepSource),
    }),
  };
}

const keepTrust = ({
  additionalTrustBundle,
  additionalTrustBundlePolicy,
}: WrittenInstallConfig): Pick<
  SiteInstallConfig,
  'additionalTrustBundle' | 'additionalTrustBundlePolicy'
> => ({
  ...(additionalTrustBundle && { additionalTrustBundle }),
  ...(additionalTrustBundlePolicy && { additionalTrustBundlePolicy }),
});

type WrittenSource = NonNullable<WrittenInstallConfig['imageDigestSources']>[number];

const keepSource = (written: WrittenSource): DigestSource => {
  const { source = '', mirrors = [], sourcePolicy } = written ?? {};
  return {
    source,
    mirrors: mirrors.map((mirror = '') => mirror),
    ...(sourcePolicy && { sourcePolicy }),
  };
};

/** image-based-config.yaml, with its network configuration in the normal form. */
function keepImageBasedConfig(written: WrittenImageBasedConfig): SiteImageBasedConfig {
  const { additionalNTPSources = [], hostname = '', nodeLabels = {} } = written;
  const { networkConfig: network, releaseRegistry } = written;
  const { cluster_id: clusterId, infra_id: infraId } = written;
  return {
    additionalNTPSources: additionalNTPSources.map((source = '') => source),
    hostname,
    ...(isObject(network) && { networkConfig: formatNetworkConfig(network) }),
    ...(releaseRegistry && { releaseRegistry }),
    ...(clusterId && { clusterId }),
    ...(infraId && { infraId }),
    nodeLabels,
  };
}
