import type { DocumentProblem } from '../../base/errors.ts';
import { UUID } from '../../base/uuid.ts';
import { readTrustBundle, warnOfBundle } from '../../keys/index.ts';
import type { ReportProblem } from '../../shape/report.ts';
import type { WrittenImageBasedConfig, WrittenInstallConfig } from '../documents.ts';
import { explainAuths, listPullSecretHosts } from './credentials.ts';
import { warnOfMirrors } from './images.ts';
import { warnOfMachinePools, warnOfStream } from './machine-pools.ts';
import { warnOfNetworkConfig } from './network-config.ts';
import { warnOfMachineNetwork } from './networks.ts';
import { type ClusterNetworks, warnOfPrefixes } from './plausibility.ts';

/* Owns the warnings about values that are allowed but rarely intended. */

export function warnOfInstallConfig(
  report: ReportProblem,
  written: WrittenInstallConfig,
  options: {
    /** Seconds since 1970. */
    readonly epoch: number;
    readonly seedVersion?: string;
  },
): readonly DocumentProblem[] {
  const { pullSecret = '', imageDigestSources } = written;
  return [
    ...warnOfMachineNetwork(report, written, options),
    ...warnOfDomain(report, written.baseDomain),
    ...warnOfPolicy(report, written.additionalTrustBundlePolicy),
    ...warnOfMachinePools(report, written),
    ...warnOfStream(report, 'osImageStream', written.osImageStream),
    ...warnOfMirrors(report, imageDigestSources, listPullSecretHosts(pullSecret)),
    ...explainAuths(pullSecret).map((why) => report('pullSecret', `${why}: no node can read it`)),
    ...warnOfCertificates(report, written.additionalTrustBundle, options.epoch * 1000),
    ...warnOfIgnored(report, written),
  ];
}

/** Warns of values in image-based-config.yaml that are allowed but rarely intended. */
export function warnOfImageBasedConfig(
  report: ReportProblem,
  written: WrittenImageBasedConfig,
  networks: ClusterNetworks,
): readonly DocumentProblem[] {
  const { hostname = '', additionalNTPSources = [], cluster_id: id = '' } = written;
  return [
    ...warnOfHostname(report, hostname),
    ...(additionalNTPSources.length > 0
      ? []
      : [
          report(
            'additionalNTPSources',
            'no NTP source is given, so the node asks only the public pool',
            {
              hint: 'certificates are not valid yet on a node whose clock is behind',
            },
          ),
        ]),
    ...(id === '' || UUID.test(id) ? [] : [report('cluster_id', 'not a valid UUID')]),
    ...warnOfLabels(report, written.nodeLabels),
    ...warnOfNetworkConfig(report, written.networkConfig),
    ...warnOfPrefixes(report, written.networkConfig, networks),
  ];
}

export function warnOfDomain(report: ReportProblem, domain = ''): readonly DocumentProblem[] {
  if (!domain.endsWith('.')) return [];
  const problem = `"${domain}" ends in a dot, and so will the names that the node makes from it`;
  return [report('baseDomain', problem, { hint: `write "${domain.slice(0, -1)}"` })];
}

function warnOfPolicy(report: ReportProblem, policy = ''): readonly DocumentProblem[] {
  if (policy === '' || policy === 'Proxyonly') return [];
  const problem = `${policy} is called ignored by openshift-install, but the cluster will trust the bundle everywhere`;
  return [
    report('additionalTrustBundlePolicy', problem, { shownPath: 'AdditionalTrustBundlePolicy' }),
  ];
}

export const warnOfCertificates = (
  report: ReportProblem,
  text = '',
  now: number,
): readonly DocumentProblem[] =>
  warnOfBundle(readTrustBundle(text), now).map((why) => report('additionalTrustBundle', why));

/** Warns of keys whose values a seed has already decided. */
function warnOfIgnored(
  report: ReportProblem,
  {
    fips,
    cpuPartitioningMode = 'None',
    imageContentSources = [],
    capabilities,
  }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  const seed = 'is ignored: the seed image has decided it';
  return [
    ...(fips === true ? [report('fips', seed)] : []),
    ...(cpuPartitioningMode === 'None' ? [] : [report('cpuPartitioningMode', seed)]),
    ...(capabilities ? [report('capabilities', seed)] : []),
    ...(imageContentSources.length === 0
      ? []
      : [
          report('imageContentSources', 'does not reach the node', {
            hint: 'write imageDigestSources instead',
          }),
        ]),
  ];
}

function warnOfHostname(report: ReportProblem, hostname: string): readonly DocumentProblem[] {
  if (hostname === '') return [report('hostname', 'no hostname is given: the node keeps its own')];
  if (/^localhost(?:\.|$)/i.test(hostname)) {
    const problem = `"${hostname}" does not count as a hostname: the node keeps its own, and newer nodes stop`;
    return [report('hostname', problem)];
  }
  return hostname === hostname.toLowerCase()
    ? []
    : [report('hostname', `the node will be called "${hostname.toLowerCase()}"`)];
}

const LABEL_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const LABEL_PREFIX = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

function warnOfLabels(
  report: ReportProblem,
  labels: Readonly<Record<string, string>> = {},
): readonly DocumentProblem[] {
  return Object.entries(labels).flatMap(([key, value]) => {
    const slash = key.indexOf('/');
    const prefix = key.slice(0, Math.max(slash, 0));
    const isKey = LABEL_NAME.test(key.slice(slash + 1)) && (slash < 0 || LABEL_PREFIX.test(prefix));
    const isValue = value === '' || LABEL_NAME.test(value);
    if (isKey && isValue) return [];
    const what = isKey ? `value ${JSON.stringify(value)}` : `key ${JSON.stringify(key)}`;
    return [report('nodeLabels', `Kubernetes will refuse the label with ${what}`)];
  });
}
