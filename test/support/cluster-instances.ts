import { stringify } from 'yaml';
import { agentHost, agentInstallConfig } from './agent-sites.ts';
import type { Tree } from './site-archives.ts';

type Members = Readonly<Record<string, unknown>>;

const NAMESPACE = 'fleet';

const pullSecretOf = (name: string, text: string): Members => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: NAMESPACE },
  data: { '.dockerconfigjson': Buffer.from(text).toString('base64') },
});

const clusterInstance = (name: string, spec: Members): Members => ({
  apiVersion: 'siteconfig.open-cluster-management.io/v1alpha1',
  kind: 'ClusterInstance',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    clusterName: name,
    baseDomain: 'example.com',
    clusterImageSetNameRef: 'openshift-4.21.3',
    pullSecretRef: { name: 'pull' },
    ...spec,
  },
});

/** A folder of a repository, as sites have it: the instance, its Secret and others, and a list of them. */
export const instanceTree = (
  name: string,
  resources: readonly Members[],
  pullSecret = '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
): Tree => ({
  [`${name}/clusterinstance.yaml`]: resources.map((each) => stringify(each)).join('---\n'),
  [`${name}/secrets.yaml`]: stringify(pullSecretOf('pull', pullSecret)),
  [`${name}/kustomization.yaml`]: 'resources: [clusterinstance.yaml, secrets.yaml]\n',
});

export const INSTANCE_NETWORKS = {
  machineNetwork: [{ cidr: '192.0.2.0/24' }],
  clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
  serviceNetwork: [{ cidr: '172.30.0.0/16' }],
};

/** A node in the words of a ClusterInstance. */
export function instanceNode(index: number, more: Members = {}): Members {
  const { hostname, role, interfaces, networkConfig } = agentHost(index, 'master');
  return {
    hostName: hostname,
    role,
    bmcAddress: `redfish-virtualmedia+https://192.0.2.${200 + index}/redfish/v1/Systems/1`,
    bmcCredentialsName: { name: `bmc-${index}` },
    bootMACAddress: `52:54:00:00:00:0${index + 1}`,
    templateRefs: [{ name: 'ai-node-templates-v1', namespace: 'open-cluster-management' }],
    nodeNetwork: { interfaces, config: networkConfig },
    ...more,
  };
}

export const agentInstance = (more: Members = {}, name = 'site1'): Members =>
  clusterInstance(name, {
    templateRefs: [{ name: 'ai-cluster-templates-v1', namespace: 'open-cluster-management' }],
    nodes: [instanceNode(0), instanceNode(1), instanceNode(2)],
    apiVIPs: ['192.0.2.5'],
    ingressVIPs: ['192.0.2.6'],
    cpuArchitecture: 'x86_64',
    sshPublicKey: agentInstallConfig()['sshKey'],
    ...INSTANCE_NETWORKS,
    ...more,
  });

export const OF_SEED = { templateRefs: [{ name: 'ibi-node-templates-v1' }] };

export const imageBasedInstance = (more: Members = {}): Members =>
  clusterInstance('site1', {
    templateRefs: [{ name: 'ibi-cluster-templates-v1', namespace: 'open-cluster-management' }],
    nodes: [instanceNode(0, OF_SEED)],
    machineNetwork: INSTANCE_NETWORKS.machineNetwork,
    additionalNTPSources: ['192.0.2.1'],
    ...more,
  });
