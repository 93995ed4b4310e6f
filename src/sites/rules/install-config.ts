import { LONGEST_HOST_NAME } from '../../base/host-name.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import type { Cidr } from '../../base/ip-address.ts';
import { readTrustBundle } from '../../keys/index.ts';
import type { InstallationProxy } from '../../openshift/installation/mirrors.ts';
import { type ReportProblem, invalid, unsupported, required } from '../../shape/report.ts';
import type { WrittenInstallConfig, WrittenImageBasedConfig } from '../documents.ts';
import { explainPullSecret, HIDDEN, checkProxy, explainSshKeys } from './credentials.ts';
import {
  checkImageSources,
  checkReleaseRegistry,
  explainBoth,
  explainDomain,
  explainSubdomain,
  isAddressOrDomain,
} from './images.ts';
import { checkMachinePools, checkPlatform } from './machine-pools.ts';
import { checkNetworkConfig } from './network-config.ts';
import { checkNetworking, checkSingleNodeNetworks } from './networking.ts';
import { checkMachineNetwork, type NetworkEntry, type SiteNetworks } from './networks.ts';
import { checkPlausibility, type ClusterNetworks } from './plausibility.ts';

/*
 * Main file of the rules: the written documents come in, and their problems leave. It owns the rules of
 * single keys and calls the other files for networks, images, credentials and machine pools.
 */

/** The rules of install-config.yaml for a single node without a platform. */
export const checkInstallConfig = (
  report: ReportProblem,
  written: WrittenInstallConfig,
  { networks, ...seed }: { readonly networks: SiteNetworks; readonly seedVersion?: string },
): readonly DocumentProblem[] => [
  ...checkAnyCluster(report, written, networks),
  ...checkSingleNodeNetworks(report, networks),
  ...checkMachineNetwork(report, written, seed),
  ...checkPlatform(report, written),
  ...checkMachinePools(report, written),
];

/** The rules of install-config.yaml for clusters of every size and kind. */
export function checkAnyCluster(
  report: ReportProblem,
  written: Omit<WrittenInstallConfig, 'controlPlane' | 'platform'>,
  networks: SiteNetworks,
): readonly DocumentProblem[] {
  const { imageDigestSources, imageContentSources } = written;
  const inner = {
    clusterNetworks: cidrs(networks.cluster),
    serviceNetworks: cidrs(networks.service),
  };
  return [
    ...checkVersion(report, written.apiVersion),
    ...checkSshKey(report, written),
    ...checkTrust(report, written),
    ...checkNames(report, written),
    ...checkNetworking(report, networks),
    ...explainPullSecret(written.pullSecret ?? '').map((why) => report('pullSecret', why)),
    ...checkProxy(report, readProxy(written.proxy), inner),
    ...checkImageSources(report, 'imageContentSources', imageContentSources),
    ...checkImageSources(report, 'imageDigestSources', imageDigestSources),
    ...(imageContentSources?.length && imageDigestSources?.length
      ? [report('imageContentSources', explainBoth(imageContentSources.length))]
      : []),
    ...checkCapabilities(report, written),
  ];
}

/** The rules of image-based-config.yaml, and of how its network fits its cluster. */
export function checkImageBasedConfig(
  report: ReportProblem,
  written: WrittenImageBasedConfig,
  networks: ClusterNetworks,
): readonly DocumentProblem[] {
  const { additionalNTPSources = [], networkConfig } = written;
  const form = checkNetworkConfig(report, networkConfig);
  return [
    ...additionalNTPSources.flatMap((source = '', index) =>
      isAddressOrDomain(source) ? [] : [reportNtpSource(report, source, index)],
    ),
    ...checkHostname(report, written.hostname),
    ...checkReleaseRegistry(report, written.releaseRegistry),
    ...form,
    // Invalid addresses cannot be checked.
    ...(form.length === 0 ? checkPlausibility(report, networkConfig, networks) : []),
  ];
}

/** The proxy as written; absent when the key is absent. */
export const readProxy = (proxy: WrittenInstallConfig['proxy']): InstallationProxy | undefined =>
  proxy && {
    ...(proxy.httpProxy && { httpProxy: proxy.httpProxy }),
    ...(proxy.httpsProxy && { httpsProxy: proxy.httpsProxy }),
    ...(proxy.noProxy && { noProxy: proxy.noProxy }),
  };

/** The sets of config.openshift.io/v1; releases since 4.18 have added no set. */
const SETS = ['None', ...Array.from({ length: 8 }, (_, index) => `v4.${index + 11}`), 'vCurrent'];

/** The capabilities of config.openshift.io/v1, from every release so far. */
const CAPABILITIES = [
  'Build',
  'CSISnapshot',
  'CloudControllerManager',
  'CloudCredential',
  'ClusterAPI',
  'CompatibilityRequirements',
  'Console',
  'DeploymentConfig',
  'ImageRegistry',
  'Ingress',
  'Insights',
  'MachineAPI',
  'NodeTuning',
  'OperatorLifecycleManager',
  'OperatorLifecycleManagerV1',
  'Storage',
  'baremetal',
  'marketplace',
  'openshift-samples',
];

/** Refuses words that no release knows, and sets of capabilities that no cluster can have. */
function checkCapabilities(
  report: ReportProblem,
  { capabilities }: Pick<WrittenInstallConfig, 'capabilities'>,
): readonly DocumentProblem[] {
  if (!capabilities) return [];
  const { baselineCapabilitySet: set = '', additionalEnabledCapabilities: written = [] } =
    capabilities;
  const baseline = set === '' ? 'vCurrent' : set;
  const more = written.map((name = '') => name);
  const path = 'capabilities.additionalEnabledCapabilities';
  return [
    ...(SETS.includes(baseline)
      ? explainLacking(baseline, more).map((why) => report(path, invalid(more.join(', '), why)))
      : [report('capabilities.baselineCapabilitySet', unsupported(baseline, SETS))]),
    ...more.flatMap((name, index) =>
      CAPABILITIES.includes(name)
        ? []
        : [report(`${path}[${index}]`, unsupported(name, CAPABILITIES))],
    ),
  ];
}

/** The first set that has the capability Ingress, which every cluster needs. */
const FIRST_WITH_INGRESS = 'v4.16';

function explainLacking(baseline: string, more: readonly string[]): readonly string[] {
  const isAlone = baseline === 'None' && more.includes('marketplace');
  const hasIngress = SETS.indexOf(baseline) >= SETS.indexOf(FIRST_WITH_INGRESS);
  return [
    ...(isAlone && !more.includes('OperatorLifecycleManager')
      ? ['the marketplace capability requires the OperatorLifecycleManager capability']
      : []),
    ...(hasIngress || more.includes('Ingress') ? [] : ['the Ingress capability is required']),
  ];
}

const cidrs = (entries: readonly NetworkEntry[]): readonly Cidr[] =>
  entries.flatMap(({ cidr }) => (cidr ? [cidr] : []));

const VERSIONS = ['v1', 'v1beta3', 'v1beta4'];

function checkVersion(report: ReportProblem, version = ''): readonly DocumentProblem[] {
  if (VERSIONS.includes(version)) return [];
  const problem =
    version === ''
      ? required('no version was provided')
      : invalid(version, `cannot upconvert from version ${version}`);
  return [report('apiVersion', problem)];
}

function checkSshKey(
  report: ReportProblem,
  { sshKey = '', fips = false }: Pick<WrittenInstallConfig, 'sshKey' | 'fips'>,
): readonly DocumentProblem[] {
  const why = sshKey === '' ? undefined : explainSshKeys(sshKey, fips);
  // The value may be a private key.
  return why === undefined ? [] : [report('sshKey', `${HIDDEN}: ${why}`, { hideValue: true })];
}

function checkTrust(
  report: ReportProblem,
  {
    additionalTrustBundle = '',
    additionalTrustBundlePolicy: policy = '',
  }: Pick<WrittenInstallConfig, 'additionalTrustBundle' | 'additionalTrustBundlePolicy'>,
): readonly DocumentProblem[] {
  const policies = ['Proxyonly', 'Always'];
  const { problem } = readTrustBundle(additionalTrustBundle);
  return [
    ...(problem === undefined ? [] : [report('additionalTrustBundle', `${HIDDEN}: ${problem}`)]),
    ...(policy === '' || policies.includes(policy)
      ? []
      : [report('additionalTrustBundlePolicy', unsupported(policy, policies))]),
  ];
}

function checkNames(
  report: ReportProblem,
  { metadata, baseDomain = '' }: Pick<WrittenInstallConfig, 'metadata' | 'baseDomain'>,
): readonly DocumentProblem[] {
  const name = metadata?.name ?? '';
  const nameProblem = explainClusterName(name);
  const domainProblem = explainDomain(baseDomain);
  const problems = [
    ...(nameProblem === undefined ? [] : [report('metadata.name', invalid(name, nameProblem))]),
    ...(domainProblem === undefined
      ? []
      : [report('baseDomain', invalid(baseDomain, domainProblem))]),
  ];
  if (problems.length > 0) return problems;
  const whole = `${name}.${baseDomain}`;
  const why = explainDomain(whole);
  return why === undefined ? [] : [report('baseDomain', invalid(whole, why))];
}

const LONGEST_NAME = 54;

const explainClusterName = (name: string): string | undefined =>
  name.length > LONGEST_NAME
    ? `must be no more than ${LONGEST_NAME} characters`
    : explainSubdomain(name);

export function reportNtpSource(
  report: ReportProblem,
  source: string,
  index: number,
): DocumentProblem {
  const why = 'NTP server is not a valid IP or domain name';
  const shownPath = 'AdditionalNTPSources';
  return report(`additionalNTPSources[${index}]`, invalid(source, why), { shownPath });
}

function checkHostname(report: ReportProblem, hostname = ''): readonly DocumentProblem[] {
  if (hostname === '') return [];
  if (/^localhost\.localdomain$/i.test(hostname)) {
    const why = 'the node waits forever for another hostname';
    return [report('hostname', invalid(hostname, why), { hint: 'give the node a name' })];
  }
  const why =
    hostname.length > LONGEST_HOST_NAME
      ? `must be no more than ${LONGEST_HOST_NAME} characters, ` +
        'because Kubernetes writes it into a label'
      : explainSubdomain(hostname.toLowerCase());
  return why === undefined ? [] : [report('hostname', invalid(hostname, why))];
}
