import type { DocumentProblem } from '../../../base/errors.ts';
import { append, objectOrEmpty } from '../../../base/lists.ts';
import { findDefinition } from '../../../openshift/agent/resource-members.ts';
import { createSelector } from '../../../openshift/agent/resources.ts';
import type { WrittenPlace } from '../../../shape/document.ts';
import type { WrittenAgentHost } from '../../agent/documents.ts';
import { type FoundResource, readDefined, type ReadResource, type ResourceIndex } from '../find.ts';
import { NETWORK_LABEL } from '../../../openshift/agent/cluster-manifests.ts';

/*
 * Owns the resources that describe a cluster for assisted-service, and how they refer to each other
 * (assisted-service: api/hiveextension/v1beta1, api/v1beta1).
 */

type Reference = { readonly name?: string; readonly namespace?: string };
type Hosted = { readonly hyperthreading?: string; readonly name?: string };

export type WrittenProxy = Partial<Record<'httpProxy' | 'httpsProxy' | 'noProxy', string>>;

export type InstallSpec = {
  readonly clusterDeploymentRef: Reference;
  readonly imageSetRef: Reference;
  readonly networking: {
    readonly machineNetwork?: readonly { readonly cidr?: string }[];
    readonly clusterNetwork?: readonly { readonly cidr?: string; readonly hostPrefix?: number }[];
    readonly serviceNetwork?: readonly string[];
    readonly networkType?: string;
    readonly userManagedNetworking?: boolean;
  };
  readonly provisionRequirements: Partial<
    Record<'controlPlaneAgents' | 'arbiterAgents' | 'workerAgents', number>
  >;
  readonly platformType: string;
  readonly external: { readonly platformName?: string; readonly cloudControllerManager?: string };
  readonly apiVIP: string;
  readonly apiVIPs: readonly string[];
  readonly ingressVIP: string;
  readonly ingressVIPs: readonly string[];
  readonly sshPublicKey: string;
  readonly proxy: WrittenProxy;
  readonly ntpSources: readonly string[];
  readonly loadBalancer: { readonly type?: string };
  readonly manifestsConfigMapRef: Reference;
  readonly manifestsConfigMapRefs: readonly Reference[];
  readonly diskEncryption: Partial<Record<'enableOn' | 'mode' | 'tangServers', string>>;
  readonly mastersSchedulable: boolean;
  readonly controlPlane: Hosted;
  readonly arbiter: Hosted;
  readonly compute: readonly Hosted[];
};

type DeploymentSpec = {
  readonly clusterName: string;
  readonly baseDomain: string;
  readonly pullSecretRef: Reference;
  readonly clusterInstallRef: Reference & { readonly kind?: string };
};

export type InfraEnvSpec = {
  readonly clusterRef: Reference;
  readonly pullSecretRef: Reference;
  readonly sshAuthorizedKey: string;
  readonly proxy: WrittenProxy;
  readonly additionalNTPSources: readonly string[];
  readonly ntpSources: readonly string[];
  readonly additionalTrustBundle: string;
  readonly cpuArchitecture: string;
  readonly nmStateConfigLabelSelector: Readonly<Record<string, unknown>>;
};

type NetworkSpec = Pick<WrittenAgentHost, 'interfaces'> & {
  readonly config: WrittenAgentHost['networkConfig'];
};

type HostSpec = Pick<WrittenAgentHost, 'rootDeviceHints'> & { readonly bootMACAddress: string };

export type InstallResource = ReadResource<Partial<InstallSpec>>;
export type InfraEnvResource = ReadResource<Partial<InfraEnvSpec>>;
export type NetworkResource = ReadResource<Partial<NetworkSpec>>;
export type HostResource = ReadResource<Partial<HostSpec>>;

/** The resources of one cluster. */
export type ClusterParts = {
  readonly install: InstallResource;
  readonly deployment: ReadResource<Partial<DeploymentSpec>>;
  /** At least one; several have the same values. */
  readonly infraEnvs: readonly [InfraEnvResource, ...InfraEnvResource[]];
  readonly networks: readonly NetworkResource[];
  readonly hosts: readonly HostResource[];
  readonly index: ResourceIndex;
  readonly problems: DocumentProblem[];
  readonly warnings: DocumentProblem[];
};

export const placeIn = ({ document }: ReadResource<unknown>, path: string): WrittenPlace => ({
  document,
  path,
});

type Gathered = Pick<ClusterParts, 'index' | 'problems' | 'warnings'>;

/** Undefined if a resource is missing or cannot be read, which is among the problems. */
export function gatherParts(root: FoundResource, gathered: Gathered): ClusterParts | undefined {
  const { index, problems } = gathered;
  const install: InstallResource = read(root);
  take(install, problems);
  const { name: wanted = '' } = install.spec.clusterDeploymentRef ?? {};
  const found = index.find('ClusterDeployment', wanted);
  if (!found) {
    const why = `ClusterDeployment "${wanted}" is not among the files of the site`;
    problems.push(install.document.report('spec.clusterDeploymentRef', why));
    return undefined;
  }
  const deployment: ClusterParts['deployment'] = read(found);
  take(deployment, problems);
  const all = index.list('InfraEnv').map((each): InfraEnvResource => read(each));
  const [infraEnv, ...others] = all.filter(({ spec }) => isOf(spec, deployment.resource));
  if (!infraEnv) {
    const why = `no InfraEnv among the files of the site has the clusterRef "${wanted}"`;
    problems.push(install.document.report('spec.clusterDeploymentRef', why));
    return undefined;
  }
  const infraEnvs = [infraEnv, ...others] as const;
  for (const each of infraEnvs) take(each, problems);
  const networks = selectNetworks({ infraEnvs, all }, gathered);
  const hosts = selectHosts({ infraEnvs, networks }, gathered);
  const parts = { ...gathered, install, deployment, infraEnvs, networks, hosts };
  return [install, deployment, ...infraEnvs].some(({ document }) => document.isBroken)
    ? undefined
    : parts;
}

/** @param resource of a kind that is defined */
function read<Spec>(resource: FoundResource): ReadResource<Partial<Spec>> {
  const definition = findDefinition(resource.kind);
  if (!definition) throw new Error(`${resource.kind} is not defined`);
  return readDefined<Spec>(resource, definition);
}

function take({ resource, document }: ReadResource<unknown>, problems: DocumentProblem[]): void {
  append(problems, document.problems);
  const { group = '' } = findDefinition(resource.kind) ?? {};
  if (document.isBroken || resource.apiVersion.replace(/\/.*/, '') === group) return;
  const why = `a resource of the kind ${resource.kind} has the group ${group}, not "${resource.apiVersion}"`;
  problems.push(document.report('apiVersion', why));
}

/** An InfraEnv without a reference is bound to a cluster by a person, host by host. */
const isOf = ({ clusterRef }: Partial<InfraEnvSpec>, deployment: FoundResource): boolean =>
  clusterRef?.name === deployment.name &&
  [undefined, '', deployment.namespace].includes(clusterRef.namespace);

type Selecting = {
  readonly infraEnvs: ClusterParts['infraEnvs'];
  /** Also those of other clusters. */
  readonly all: readonly InfraEnvResource[];
};

function selectNetworks(
  { infraEnvs, all }: Selecting,
  { index, problems }: Gathered,
): readonly NetworkResource[] {
  const networks = index.list('NMStateConfig').map((each): NetworkResource => read(each));
  const selects = (some: readonly InfraEnvResource[]) => {
    const selectors = some.map(({ resource, spec }) =>
      createSelector(
        spec.nmStateConfigLabelSelector ?? {},
        `InfraEnv "${resource.name}" of ${resource.file.shownAs}`,
      ),
    );
    return (network: NetworkResource) => selectors.some((matches) => matches(network));
  };
  const isOwn = selects(infraEnvs);
  const isOfAny = selects(all);
  for (const each of networks.filter((network) => !isOfAny(network))) {
    problems.push(each.document.report('metadata.labels', explainLabels(each, infraEnvs)));
  }
  const own = networks.filter(isOwn);
  for (const each of own) take(each, problems);
  return own.filter(({ document }) => !document.isBroken);
}

/** In the words of openshift-install. */
function explainLabels(
  { resource, labels }: NetworkResource,
  [{ spec }]: ClusterParts['infraEnvs'],
): string {
  if (Object.keys(labels).length === 0)
    return `Required value: ${resource.name} does not have any label set`;
  const expected = objectOrEmpty(spec.nmStateConfigLabelSelector?.['matchLabels']);
  return (
    `Required value: infraEnv and ${resource.name} NMState Config labels do not match. ` +
    `Expected: ${formatLabels(expected)} Found: ${formatLabels(labels)}`
  );
}

const formatLabels = (labels: Readonly<Record<string, unknown>>): string =>
  `map[${Object.entries(labels)
    .map(([name, value]) => `${name}:${String(value)}`)
    .toSorted()
    .join(' ')}]`;

/** Hosts with the label of an InfraEnv, and those without a label whose address a network has. */
function selectHosts(
  { infraEnvs, networks }: Pick<ClusterParts, 'infraEnvs' | 'networks'>,
  { index, problems, warnings }: Gathered,
): readonly HostResource[] {
  const names = infraEnvs.map(({ resource }) => resource.name);
  const addresses = new Set(networks.flatMap(({ spec }) => listNamedAddresses(spec)));
  const hosts = index.list('BareMetalHost').map((each): HostResource => read(each));
  const own = hosts.filter(({ resource, document, labels, spec }) => {
    const label = labels[NETWORK_LABEL];
    if (typeof label === 'string') return names.includes(label);
    const isKnown = addresses.has(spec.bootMACAddress?.toLowerCase() ?? '');
    const why = `BareMetalHost "${resource.name}" has neither the label ${NETWORK_LABEL} nor the address of a host, and is ignored`;
    if (!isKnown) warnings.push(document.report('metadata.labels', why));
    return isKnown;
  });
  for (const each of own) take(each, problems);
  return own.filter(({ document }) => !document.isBroken);
}

/** In lower case. */
export const listNamedAddresses = ({
  interfaces = [],
}: Partial<WrittenAgentHost>): readonly string[] =>
  interfaces.flatMap(({ macAddress = '' } = {}) =>
    macAddress === '' ? [] : [macAddress.toLowerCase()],
  );
