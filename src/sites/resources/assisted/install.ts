import { withoutUndefined } from '../../../base/lists.ts';
import { unlessEmpty } from '../../../base/text/words.ts';
import { INSTALL_OVERRIDES } from '../../../openshift/agent/install-overrides.ts';
import type { MadeValue } from '../../../shape/document.ts';
import {
  findPullSecret,
  keepProxy,
  mergeMembers,
  placeOverridden,
  parseOverrides,
} from '../references.ts';
import { toGoName } from '../install-config.ts';
import { createPaths, type Paths } from '../places.ts';
import { type ClusterParts, type InstallSpec, placeIn } from './parts.ts';

/* Owns the install-config.yaml of a cluster that an AgentClusterInstall describes, and the places of its values. */

const OVERRIDES_PATH = `metadata.annotations.${INSTALL_OVERRIDES}`;

export function makeInstallConfig(parts: ClusterParts): MadeValue {
  const { install, problems } = parts;
  const text = install.annotations[INSTALL_OVERRIDES];
  const { members, why } = parseOverrides(typeof text === 'string' ? text : '');
  if (why !== undefined) problems.push(install.document.report(OVERRIDES_PATH, why));
  return {
    value: mergeMembers(mapInstall(parts), members),
    placeOf: placeOverridden(members, placeIn(install, OVERRIDES_PATH), createPlacing(parts)),
  };
}

function mapInstall(parts: ClusterParts): object {
  const { install, deployment, infraEnvs } = parts;
  const { spec } = install;
  const [{ spec: infraEnv }] = infraEnvs;
  const { clusterName, baseDomain, pullSecretRef } = deployment.spec;
  return withoutUndefined({
    apiVersion: 'v1',
    baseDomain,
    metadata: withoutUndefined({ name: clusterName, namespace: install.resource.namespace }),
    sshKey: unlessEmpty(spec.sshPublicKey) ?? unlessEmpty(infraEnv.sshAuthorizedKey),
    pullSecret: findPullSecret(
      parts,
      placeIn(deployment, 'spec.pullSecretRef'),
      pullSecretRef?.name ?? '',
    ),
    proxy: keepProxy(spec.proxy),
    additionalTrustBundle: unlessEmpty(infraEnv.additionalTrustBundle),
    networking: mapNetworking(spec),
    platform: mapPlatform(spec),
    ...mapPools(spec, infraEnv.cpuArchitecture),
  });
}

const mapNetworking = ({ networking = {} }: Partial<InstallSpec>): object => {
  const { networkType, machineNetwork, clusterNetwork, serviceNetwork } = networking;
  return withoutUndefined({ networkType, machineNetwork, clusterNetwork, serviceNetwork });
};

function mapPools(
  { provisionRequirements = {} }: Partial<InstallSpec>,
  cpuArchitecture: string | undefined,
): object {
  const { controlPlaneAgents, arbiterAgents = 0, workerAgents = 0 } = provisionRequirements;
  const pool = withoutUndefined({ architecture: toGoName(cpuArchitecture) });
  return {
    controlPlane: withoutUndefined({ name: 'master', replicas: controlPlaneAgents, ...pool }),
    compute: [{ name: 'worker', replicas: workerAgents, ...pool }],
    ...(arbiterAgents > 0 && { arbiter: { name: 'arbiter', replicas: arbiterAgents, ...pool } }),
  };
}

/** The platform in the spelling of install-config; by default that of assisted-service. */
export function namePlatform(spec: Partial<InstallSpec>): string {
  const { platformType = '', networking = {}, provisionRequirements = {} } = spec;
  if (platformType !== '') return platformType.toLowerCase();
  const isAlone = provisionRequirements.controlPlaneAgents === 1;
  return networking.userManagedNetworking === true || isAlone ? 'none' : 'baremetal';
}

function mapPlatform(spec: Partial<InstallSpec>): object {
  const name = namePlatform(spec);
  if (name === 'none') return { none: {} };
  if (name === 'external') return { external: spec.external ?? {} };
  const type = BALANCERS[spec.loadBalancer?.type ?? ''];
  return {
    [name]: {
      ...withoutUndefined({ loadBalancer: type && { type } }),
      apiVIPs: listVirtual(spec.apiVIPs, spec.apiVIP),
      ingressVIPs: listVirtual(spec.ingressVIPs, spec.ingressVIP),
    },
  };
}

const BALANCERS: Readonly<Record<string, string>> = {
  ClusterManaged: 'OpenShiftManagedDefault',
  UserManaged: 'UserManaged',
};

const listVirtual = (list: readonly string[] = [], single = ''): readonly string[] =>
  list.length > 0 || single === '' ? list : [single];

const OF_DEPLOYMENT: Paths = [
  [/^metadata\.name.*/, 'spec.clusterName'],
  [/^baseDomain.*/, 'spec.baseDomain'],
  [/^pullSecret.*/, 'spec.pullSecretRef'],
];

const OF_INFRA_ENV: Paths = [
  [/^additionalTrustBundle$/, 'spec.additionalTrustBundle'],
  [/^(?:controlPlane|arbiter|compute).*architecture$/, 'spec.cpuArchitecture'],
];

const OF_INSTALL: Paths = [
  [/^metadata\.namespace.*/, 'metadata.namespace'],
  [/^sshKey.*/, 'spec.sshPublicKey'],
  [/^(proxy|networking)/, 'spec.$1'],
  [/^platform\.\w+\.(apiVIPs|ingressVIPs|loadBalancer)/, 'spec.$1'],
  [/^platform\.external\./, 'spec.external.'],
  [/^platform.*/, 'spec.platformType'],
  [/^controlPlane.*/, 'spec.provisionRequirements.controlPlaneAgents'],
  [/^arbiter.*/, 'spec.provisionRequirements.arbiterAgents'],
  [/^compute.*/, 'spec.provisionRequirements.workerAgents'],
  [/^$/, 'spec'],
];

/** Members that no resource has are those of the overrides. */
function createPlacing({ install, deployment, infraEnvs }: ClusterParts): MadeValue['placeOf'] {
  const of = [
    [deployment, OF_DEPLOYMENT],
    [infraEnvs[0], OF_INFRA_ENV],
    [install, OF_INSTALL],
  ] as const;
  return (path) => {
    const known = of.find(([, paths]) => paths.some(([written]) => written.test(path)));
    if (!known) return placeIn(install, OVERRIDES_PATH);
    const [part, paths] = known;
    return placeIn(part, createPaths(paths)(path));
  };
}
