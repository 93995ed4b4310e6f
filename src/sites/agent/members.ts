import type { DocumentProblem } from '../../base/errors.ts';
import { explainRequestUri } from '../../base/http/request-uri.ts';
import { explainProxyUrl } from '../../base/http/typed-proxy.ts';
import { findRepeated } from '../../base/lists.ts';
import { type ReportProblem, invalid, unsupported } from '../../shape/report.ts';
import { HIDDEN } from '../rules/credentials.ts';
import { checkPublish } from '../rules/machine-pools.ts';
import type { WrittenAgentInstall } from './documents.ts';
import { findPlatform } from './topology.ts';

/* Owns the rules of single members of install-config.yaml that depend on the platform of the cluster. */

export const checkMembersOfPlatform = (
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] => [
  ...checkClusterName(report, written),
  ...checkModes(report, written),
  ...checkPublish(report, written.publish, findPlatform(written)),
  ...checkFeatures(report, written),
  ...checkGated(report, written),
  ...checkMtu(report, written),
  ...checkBalancer(report, written),
  ...checkHostValues(report, written),
  ...checkBaremetalCapability(report, written),
  ...checkArchitecture(report, written),
];

/** Virtual addresses have names below that of the cluster. */
function checkClusterName(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const name = written.metadata?.name ?? '';
  if (findPlatform(written) !== 'baremetal' || !name.includes('.')) return [];
  return [report('metadata.name', invalid(name, "cluster name must not contain '.'"))];
}

function checkModes(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { credentialsMode = '', cpuPartitioningMode = '' } = written;
  const modes = ['None', 'AllNodes'];
  const why = 'cannot be set when using the "none" platform';
  return [
    ...(credentialsMode === '' || findPlatform(written) !== 'none'
      ? []
      : [report('credentialsMode', invalid(credentialsMode, why))]),
    ...(['', ...modes].includes(cpuPartitioningMode)
      ? []
      : [report('cpuPartitioningMode', unsupported(cpuPartitioningMode, modes))]),
  ];
}

const FEATURE_SETS = ['', 'CustomNoUpgrade', 'DevPreviewNoUpgrade', 'OKD', 'TechPreviewNoUpgrade'];
/** Go's strconv.ParseBool. */
const BOOLEAN = /^(?:1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$/;

function checkFeatures(
  report: ReportProblem,
  { featureSet = '', featureGates = [] }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const isFree = featureGates.length === 0 || featureSet === 'CustomNoUpgrade';
  const only = 'featureGates can only be used with the CustomNoUpgrade feature set';
  return [
    ...(FEATURE_SETS.includes(featureSet)
      ? []
      : [report('featureSet', unsupported(featureSet, FEATURE_SETS))]),
    ...(featureSet === 'OKD'
      ? [report('featureSet', 'Forbidden: OKD featureset is not supported on OpenShift clusters')]
      : []),
    ...(isFree ? [] : [report('featureGates', `Forbidden: ${only}`)]),
    ...featureGates.flatMap((gate = '', index) => {
      const [, value, ...others] = gate.split('=');
      const form = 'must match the format <feature-name>=<bool>';
      const why =
        value === undefined || others.length > 0
          ? form
          : BOOLEAN.test(value)
            ? undefined
            : `${form}, could not parse boolean value`;
      return why === undefined ? [] : [report(`featureGates[${index}]`, invalid(gate, why))];
    }),
  ];
}

/** Members that take effect with a feature that clusters do not have by default. */
function checkGated(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { featureSet = '', osImageStream = '', controlPlane, compute = [], platform } = written;
  const streams = ['rhel-9', 'rhel-10'];
  const pools = [controlPlane, ...compute];
  const has = (member: 'diskSetup' | 'management'): boolean =>
    pools.some((pool) => (pool?.[member] ?? undefined) !== undefined);
  const gated: readonly (readonly [path: string, gate: string, isUsed: boolean])[] = [
    ['osImageStream', 'OSStreams', osImageStream !== ''],
    [
      'platform.baremetal.dnsRecordsType',
      'OnPremDNSRecords',
      platform?.baremetal?.dnsRecordsType === 'External',
    ],
    ['controlPlane.diskSetup', 'MultiDiskSetup', has('diskSetup')],
    ['controlPlane.management', 'ClusterAPIControlPlaneInstall', has('management')],
  ];
  const isOpen = featureSet !== '';
  return [
    ...gated
      .filter(([, , isUsed]) => isUsed && !isOpen)
      .map(([path, gate]) =>
        report(
          path,
          `Forbidden: this field is protected by the ${gate} feature gate which must be enabled through ` +
            'either the TechPreviewNoUpgrade or CustomNoUpgrade feature set',
        ),
      ),
    ...(osImageStream === '' || streams.includes(osImageStream)
      ? []
      : [
          report(
            'osImageStream',
            `Forbidden: Unsupported OS Image Stream. Supported values are: ${streams.join(', ')}`,
          ),
        ]),
  ];
}

function checkMtu(
  report: ReportProblem,
  { networking: { clusterNetworkMTU = 0 } = {} }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const why = 'cluster network MTU is allowed only in AWS deployments';
  const problem = `Invalid value: ${clusterNetworkMTU}: ${why}`;
  return clusterNetworkMTU === 0 ? [] : [report('networking.clusterNetworkMTU', problem)];
}

function checkBalancer(
  report: ReportProblem,
  { platform }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { loadBalancer, dnsRecordsType = '' } = platform?.baremetal ?? {};
  const { type = '' } = loadBalancer ?? {};
  const isKnown = !loadBalancer || ['OpenShiftManagedDefault', 'UserManaged'].includes(type);
  const isLost = dnsRecordsType === 'External' && type !== 'UserManaged';
  const why = 'external DNS records can only be configured with user-managed loadbalancers';
  return [
    ...(isKnown
      ? []
      : [
          report(
            'platform.baremetal.loadBalancer.type',
            invalid(type, 'invalid load balancer type'),
          ),
        ]),
    ...(isLost ? [report('platform.baremetal.dnsRecordsType', invalid(dnsRecordsType, why))] : []),
  ];
}

function checkBaremetalCapability(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { baselineCapabilitySet, additionalEnabledCapabilities: more = [] } =
    written.capabilities ?? {};
  const isMissing = baselineCapabilitySet === 'None' && !more.includes('baremetal');
  if (!isMissing || findPlatform(written) !== 'baremetal') return [];
  const why = 'platform baremetal requires the baremetal capability';
  const path = 'capabilities.additionalEnabledCapabilities';
  return [report(path, invalid(more.join(', '), why))];
}

/** The live systems of these start on no other platform. */
const ONLY_NONE = ['ppc64le', 's390x'];

function checkArchitecture(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const architecture = written.controlPlane?.architecture ?? '';
  const platform = findPlatform(written) ?? 'none';
  if (!ONLY_NONE.includes(architecture) || platform === 'none') return [];
  const why = `CPU architecture "${architecture}" only supports platform "none".`;
  return [report('platform', invalid(platform, why))];
}

/** Values that openshift-install takes, and that the service refuses at registration or hosts cannot read. */
function checkHostValues(
  report: ReportProblem,
  { sshKey = '', proxy = {}, baseDomain = '' }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  const addresses = { httpProxy, httpsProxy };
  const line = sshKey.split('\n').findIndex((text) => /^\s*#|^\s+$/.test(text));
  const twice = explainRepeatedNoProxy(noProxy);
  const name = explainBaseDomain(baseDomain);
  return [
    ...(line < 0
      ? []
      : [
          report('sshKey', `${HIDDEN}: ssh: no key found: line ${line + 1} is none`, {
            hideValue: true,
          }),
        ]),
    ...Object.entries(addresses).flatMap(([member, text]) => {
      const isJudged = text === '' || explainRequestUri(text) !== undefined;
      const why = isJudged ? undefined : explainProxyUrl(text);
      return why === undefined ? [] : [report(`proxy.${member}`, invalid(text, why))];
    }),
    ...(twice === undefined
      ? []
      : [report('proxy.noProxy', invalid(noProxy, `duplicate no_proxy entry defined: ${twice}`))]),
    ...(name === undefined ? [] : [report('baseDomain', invalid(baseDomain, name))]),
  ];
}

function explainRepeatedNoProxy(text: string): string | undefined {
  const elements = text.split(',').map((element) => element.trim());
  return findRepeated(elements.filter((element) => element !== ''))[0];
}

/** assisted-service: pkg/validations, ValidateDomainNameFormat. */
function explainBaseDomain(text: string): string | undefined {
  const labels = text.split('.');
  const isDecimal = /(?:\d+\.){3}\d/.test(text);
  const isRight = (labels.at(-1) ?? '').length > 1 && !isDecimal;
  return text === '' || isRight
    ? undefined
    : 'DNS format mismatch: a domain ends with a name of two characters or more, and is not in dotted decimal format';
}
