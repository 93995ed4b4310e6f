import { agentHost, agentInstallConfig } from './agent-sites.ts';

type Members = Readonly<Record<string, unknown>>;

/** The resources of a cluster of three nodes with static addresses, as a hub has them, by kind and number. */
export type AssistedResources = Readonly<Record<string, Members>>;

const LABELS = { site: 'site1' };

export function assistedResources(name = 'site1'): AssistedResources {
  const metadata = { name, namespace: 'fleet' };
  const networks = [0, 1, 2].map((index) => {
    const { interfaces, networkConfig } = agentHost(index);
    return {
      apiVersion: 'agent-install.openshift.io/v1beta1',
      kind: 'NMStateConfig',
      metadata: { ...metadata, name: `${name}-n${index}`, labels: LABELS },
      spec: { interfaces, config: networkConfig },
    };
  });
  const hosts = [0, 1, 2].map((index) => ({
    apiVersion: 'metal3.io/v1alpha1',
    kind: 'BareMetalHost',
    metadata: {
      ...metadata,
      name: `m${index}.example.com`,
      labels: { 'infraenvs.agent-install.openshift.io': name },
      annotations: { 'bmac.agent-install.openshift.io/role': 'master' },
    },
    spec: {
      bootMACAddress: `52:54:00:00:00:0${index + 1}`,
      rootDeviceHints: { deviceName: '/dev/sda' },
    },
  }));
  return {
    install: {
      apiVersion: 'extensions.hive.openshift.io/v1beta1',
      kind: 'AgentClusterInstall',
      metadata,
      spec: {
        clusterDeploymentRef: { name },
        imageSetRef: { name: 'img' },
        platformType: 'BareMetal',
        apiVIPs: ['192.0.2.5'],
        ingressVIPs: ['192.0.2.6'],
        networking: {
          clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
          machineNetwork: [{ cidr: '192.0.2.0/24' }],
          networkType: 'OVNKubernetes',
          serviceNetwork: ['172.30.0.0/16'],
        },
        provisionRequirements: { controlPlaneAgents: 3 },
        sshPublicKey: agentInstallConfig()['sshKey'],
      },
    },
    deployment: {
      apiVersion: 'hive.openshift.io/v1',
      kind: 'ClusterDeployment',
      metadata,
      spec: {
        baseDomain: 'example.com',
        clusterName: name,
        clusterInstallRef: { kind: 'AgentClusterInstall', name },
        pullSecretRef: { name: 'pull' },
      },
    },
    infraEnv: {
      apiVersion: 'agent-install.openshift.io/v1beta1',
      kind: 'InfraEnv',
      metadata,
      spec: {
        clusterRef: { name, namespace: 'fleet' },
        cpuArchitecture: 'x86_64',
        pullSecretRef: { name: 'pull' },
        nmStateConfigLabelSelector: { matchLabels: LABELS },
        sshAuthorizedKey: agentInstallConfig()['sshKey'],
      },
    },
    pull: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...metadata, name: 'pull' },
      stringData: { '.dockerconfigjson': '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}' },
    },
    ...Object.fromEntries(networks.map((each, index) => [`network${index}`, each])),
    ...Object.fromEntries(hosts.map((each, index) => [`host${index}`, each])),
  };
}
