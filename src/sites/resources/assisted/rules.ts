import { isDeepStrictEqual } from 'node:util';
import type { DocumentProblem } from '../../../base/errors.ts';
import { isObject } from '../../../base/lists.ts';
import { WITHOUT_EFFECT } from '../../../openshift/agent/agent-manifests.ts';
import { INSTALL_OVERRIDES } from '../../../openshift/agent/install-overrides.ts';
import type { ReadResource } from '../find.ts';
import { namePlatform } from './install.ts';
import type { ClusterParts, InfraEnvSpec, InstallResource, InstallSpec } from './parts.ts';

/*
 * Owns what an AgentClusterInstall and its companions say twice or wrongly, and what no file of a site can carry
 * (assisted-service: api/hiveextension/v1beta1; installer: pkg/asset/agent/manifests).
 */

type Rule = (parts: ClusterParts) => readonly DocumentProblem[];

const checkRequired: Rule = ({ install, deployment }) => {
  const { networking, provisionRequirements } = install.spec;
  const { clusterName = '', pullSecretRef } = deployment.spec;
  const lacks = (part: ReadResource<unknown>, path: string): DocumentProblem =>
    part.document.report(path, 'Required value');
  return [
    ...(networking ? [] : [lacks(install, 'spec.networking')]),
    ...(provisionRequirements?.controlPlaneAgents === undefined
      ? [lacks(install, 'spec.provisionRequirements.controlPlaneAgents')]
      : []),
    ...(clusterName === '' ? [lacks(deployment, 'spec.clusterName')] : []),
    ...(pullSecretRef ? [] : [lacks(deployment, 'spec.pullSecretRef')]),
  ];
};

const checkReference: Rule = ({ install, deployment }) => {
  const { kind = 'AgentClusterInstall', name } = deployment.spec.clusterInstallRef ?? {};
  if (kind === 'AgentClusterInstall' && (name === undefined || name === install.resource.name))
    return [];
  const why = `is not the AgentClusterInstall "${install.resource.name}", which names this ClusterDeployment`;
  return [deployment.document.report('spec.clusterInstallRef', why)];
};

/** Platforms whose nodes have no virtual addresses of the cluster. */
const isUserManaged = (spec: InstallResource['spec']): boolean =>
  ['none', 'external'].includes(namePlatform(spec));

const VIRTUAL = [
  { what: 'API', single: 'apiVIP', list: 'apiVIPs' },
  { what: 'Ingress', single: 'ingressVIP', list: 'ingressVIPs' },
] as const;

const checkVirtual: Rule = ({ install: { spec, document } }) =>
  VIRTUAL.flatMap(({ what, single, list }) => {
    const { [list]: all = [], [single]: one = '' } = spec;
    if (one === '' && all.length === 0) return [];
    if (isUserManaged(spec)) {
      const why = `${what} VIPs cannot be set with User Managed Networking`;
      return [document.report(`spec.${all.length > 0 ? list : single}`, why)];
    }
    const isOther = one !== '' && all.length > 0 && all[0] !== one;
    const why = `${single} must be the same as the first element of ${list}`;
    return isOther ? [document.report(`spec.${single}`, why)] : [];
  });

/** In the words of openshift-install. */
const checkUserManaged: Rule = ({ install: { spec, document } }) => {
  const { userManagedNetworking: found } = spec.networking ?? {};
  const { platformType: written = '' } = spec;
  const wanted = isUserManaged(spec);
  if (found === undefined || found === wanted) return [];
  const why = wanted
    ? `Forbidden: ${written === '' ? 'None' : written} platform requires user-managed networking`
    : `Forbidden: ${written} platform has no user-managed networking`;
  return [document.report('spec.networking.userManagedNetworking', why)];
};

/** The install-config has one value for the cluster and for the hosts that install it. */
const checkSame: Rule = ({ install, deployment, infraEnvs }) =>
  infraEnvs.flatMap(({ spec, document, resource }) => {
    const { proxy = {}, pullSecretRef } = spec;
    const tell = (path: string, whose: string): DocumentProblem =>
      document.report(path, `differs from that of ${whose}: an image has one for both`);
    const { name: own } = deployment.spec.pullSecretRef ?? {};
    const isOther = pullSecretRef?.name !== undefined && pullSecretRef.name !== own;
    const [first] = infraEnvs;
    const different = first.resource === resource ? [] : listDifferent(first.spec, spec);
    return [
      ...(isDeepStrictEqual(proxy, install.spec.proxy ?? {})
        ? []
        : [tell('spec.proxy', 'the AgentClusterInstall')]),
      ...(isOther ? [tell('spec.pullSecretRef', 'the ClusterDeployment')] : []),
      ...different.map((member) => tell(`spec.${member}`, `InfraEnv "${first.resource.name}"`)),
    ];
  });

/** Members of which an image has one, although a cluster may have an InfraEnv for each host. */
const ONCE = [
  'sshAuthorizedKey',
  'additionalNTPSources',
  'additionalTrustBundle',
  'cpuArchitecture',
] as const satisfies readonly (keyof InfraEnvSpec)[];

const listDifferent = (
  first: Partial<InfraEnvSpec>,
  other: Partial<InfraEnvSpec>,
): readonly string[] => ONCE.filter((member) => !isDeepStrictEqual(first[member], other[member]));

const checkServers: Rule = ({ install, infraEnvs }) =>
  [install, ...infraEnvs].flatMap(({ spec, document }) =>
    (spec.ntpSources ?? []).length === 0
      ? []
      : [
          document.report(
            'spec.ntpSources',
            'exclusive time servers have no place on a configuration image',
            { hint: 'write additionalNTPSources into the InfraEnv' },
          ),
        ],
  );

const checkEncryption: Rule = ({ install: { spec, document } }) => {
  const { enableOn = 'none', mode, tangServers = '' } = spec.diskEncryption ?? {};
  return enableOn !== 'none' && mode === 'tang' && tangServers === ''
    ? [document.report('spec.diskEncryption', "Setting Tang mode but tang_servers isn't set")]
    : [];
};

const RULES: readonly Rule[] = [
  checkRequired,
  checkReference,
  checkVirtual,
  checkUserManaged,
  checkSame,
  checkServers,
  checkEncryption,
];

export const judgeParts: Rule = (parts) => RULES.flatMap((rule) => rule(parts));

/** Members that assisted-service registers with a cluster (cmd/agentbasedinstaller/register.go). */
const CARRIED = [
  'diskEncryption',
  'mastersSchedulable',
  'loadBalancer',
  'controlPlane',
  'compute',
  'arbiter',
] as const satisfies readonly (keyof InstallSpec)[];

/** Members without a counterpart in install-config, which go on an image as they are. */
export const listInstallMembers = ({ spec }: InstallResource): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    CARRIED.filter((member) => isFilledMember(spec[member])).map((member) => [
      member,
      spec[member],
    ]),
  );

/** Members of an AgentClusterInstall that only a hub reads. */
const OF_HUB = ['holdInstallation', 'ignitionEndpoint', 'mirrorRegistryRef', 'clusterMetadata'];

/** Members of a ClusterDeployment that are read, or that everyone has. */
const OF_DEPLOYMENT = [
  'clusterName',
  'baseDomain',
  'pullSecretRef',
  'clusterInstallRef',
  'platform',
  'installed',
];

const OF_LIVE_SYSTEM = ['ignitionConfigOverride', 'kernelArguments', 'mirrorRegistryRef'];

/** The members by name that have no place on an image. */
export const listLostParts: Rule = ({ install, deployment, infraEnvs, hosts }) => [
  ...warnOf(install, OF_HUB, 'has no place on a configuration image: only a hub reads it'),
  ...warnOf(
    deployment,
    Object.keys(deployment.spec).filter((member) => !OF_DEPLOYMENT.includes(member)),
    'has no place on a configuration image: only a hub reads it',
  ),
  ...infraEnvs.flatMap((each) => [
    ...warnOf(
      each,
      OF_LIVE_SYSTEM,
      'has no effect: the live system has booted before it reads this',
    ),
    ...warnOf(
      each,
      WITHOUT_EFFECT.filter((member) => member !== 'clusterRef'),
      'has no place on a configuration image: only a hub reads it',
    ),
  ]),
  ...warnOfKey(install, infraEnvs),
  ...[install, ...hosts].flatMap(warnOfAnnotations),
  ...hosts.flatMap((each) => [
    ...warnOf(each, ['bmc'], 'has no place on a configuration image: the hub switches hosts on'),
  ]),
];

function warnOf(
  { spec, document }: ReadResource<object>,
  members: readonly string[],
  why: string,
): readonly DocumentProblem[] {
  const given = spec as Readonly<Record<string, unknown>>;
  return members
    .filter((member) => isFilledMember(given[member]))
    .map((member) => document.report(`spec.${member}`, `${member} ${why}`));
}

/** Go writes the empty values of its structs. */
function isFilledMember(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return Object.values(value).some(isFilledMember);
  return ![undefined, null, '', false, 0].includes(value as null);
}

function warnOfKey(
  { spec }: InstallResource,
  [{ spec: infraEnv, document }]: ClusterParts['infraEnvs'],
): readonly DocumentProblem[] {
  const own = infraEnv.sshAuthorizedKey?.trim() ?? '';
  const key = spec.sshPublicKey?.trim() ?? '';
  if (own === key || own === '') return [];
  const why =
    key === ''
      ? 'is also the key of the installed cluster: the AgentClusterInstall has no sshPublicKey'
      : 'has no place on a configuration image: sshPublicKey of the AgentClusterInstall is another key';
  return [document.report('spec.sshAuthorizedKey', `sshAuthorizedKey ${why}`)];
}

const READ_ANNOTATIONS = [
  INSTALL_OVERRIDES,
  'bmac.agent-install.openshift.io/hostname',
  'bmac.agent-install.openshift.io/role',
];

/** Annotations of assisted-service that are not read here. */
const warnOfAnnotations = ({
  annotations,
  document,
}: ReadResource<unknown>): readonly DocumentProblem[] =>
  Object.keys(annotations)
    .filter((name) => /^(?:bmac\.)?agent-install\.openshift\.io[./]/.test(name))
    .filter((name) => !READ_ANNOTATIONS.includes(name))
    .map((name) =>
      document.report(
        `metadata.annotations.${name}`,
        `annotation ${name} has no place on a configuration image`,
      ),
    );
