import type { DocumentProblem } from '../../base/errors.ts';
import type { Cidr } from '../../base/ip-address.ts';
import type { Report } from '../../shape/report.ts';
import { invalid, required, unsupported } from '../../shape/report.ts';
import type { InstallationProxy } from '../../openshift/installation/mirrors.ts';
import type { WrittenInstallConfig } from '../document/site-shapes.ts';
import { checkCapabilities } from './capabilities.ts';
import { explainPullSecret, HIDDEN } from './credential-rules.ts';
import { checkImageSources, explainBoth } from './image-sources.ts';
import { checkMachineNetwork } from '../network/machine-network.ts';
import { checkMachinePools } from './machine-pools.ts';
import { explainDomain, explainSubdomain } from './resource-names.ts';
import { checkNetworking } from './networking.ts';
import type { NetworkEntry, SiteNetworks } from '../network/networks.ts';
import { checkPlatform } from './platform.ts';
import { checkProxy } from './proxy-rules.ts';
import { explainSshKeys } from './ssh-key.ts';
import { readTrustBundle } from './trust-bundle-rules.ts';

const VERSIONS = ['v1', 'v1beta3', 'v1beta4'];
const LONGEST_NAME = 54;

/** The rules of install-config.yaml for a single node without a platform. */
export function checkInstallConfig(
  report: Report,
  written: WrittenInstallConfig,
  { networks, ...seed }: { readonly networks: SiteNetworks; readonly seedVersion?: string },
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
    ...checkMachineNetwork(report, written, seed),
    ...checkPlatform(report, written),
    ...checkMachinePools(report, written),
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

const cidrs = (entries: readonly NetworkEntry[]): readonly Cidr[] =>
  entries.flatMap(({ cidr }) => (cidr ? [cidr] : []));

/** As written; absent when the key is. */
export const readProxy = (proxy: WrittenInstallConfig['proxy']): InstallationProxy | undefined =>
  proxy && {
    ...(proxy.httpProxy && { httpProxy: proxy.httpProxy }),
    ...(proxy.httpsProxy && { httpsProxy: proxy.httpsProxy }),
    ...(proxy.noProxy && { noProxy: proxy.noProxy }),
  };

function checkVersion(report: Report, version = ''): readonly DocumentProblem[] {
  if (VERSIONS.includes(version)) return [];
  const problem =
    version === ''
      ? required('no version was provided')
      : invalid(version, `cannot upconvert from version ${version}`);
  return [report('apiVersion', problem)];
}

function checkSshKey(
  report: Report,
  { sshKey = '', fips = false }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  const why = sshKey === '' ? undefined : explainSshKeys(sshKey, fips);
  // A private key may stand there.
  return why === undefined ? [] : [report('sshKey', `${HIDDEN}: ${why}`, { hideValue: true })];
}

function checkTrust(
  report: Report,
  { additionalTrustBundle = '', additionalTrustBundlePolicy: policy = '' }: WrittenInstallConfig,
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
  report: Report,
  { metadata, baseDomain = '' }: WrittenInstallConfig,
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

const explainClusterName = (name: string): string | undefined =>
  name.length > LONGEST_NAME
    ? `must be no more than ${LONGEST_NAME} characters`
    : explainSubdomain(name);
