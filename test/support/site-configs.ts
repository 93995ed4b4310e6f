import { stringify } from 'yaml';
import { agentInstallConfig } from './agent-sites.ts';
import { instanceNode } from './cluster-instances.ts';
import type { Tree } from './site-archives.ts';

type Members = Readonly<Record<string, unknown>>;

/** A node in the words of a SiteConfig, which has no references to templates. */
export function oldNode(index: number, more: Members = {}): Members {
  const node = Object.entries(instanceNode(index)).filter(([key]) => key !== 'templateRefs');
  return { ...Object.fromEntries(node), ...more };
}

export const oldCluster = (name: string, more: Members = {}): Members => ({
  clusterName: name,
  machineNetwork: [{ cidr: '192.0.2.0/24' }],
  clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
  serviceNetwork: ['172.30.0.0/16'],
  apiVIP: '192.0.2.5',
  ingressVIP: '192.0.2.6',
  cpuArchitecture: 'x86_64',
  nodes: [oldNode(0), oldNode(1), oldNode(2)],
  ...more,
});

export const siteConfig = (clusters: readonly Members[], more: Members = {}): Members => ({
  apiVersion: 'ran.openshift.io/v1',
  kind: 'SiteConfig',
  metadata: { name: 'fleet', namespace: 'fleet' },
  spec: {
    baseDomain: 'example.com',
    pullSecretRef: { name: 'pull' },
    clusterImageSetNameRef: 'openshift-4.21.3',
    sshPublicKey: agentInstallConfig()['sshKey'],
    clusters,
    ...more,
  },
});

const pullSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'pull' },
  stringData: { '.dockerconfigjson': '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}' },
};

/** A folder with a SiteConfig and the Secret that all of its clusters use. */
export const siteConfigTree = (folder: string, ...resources: readonly Members[]): Tree => ({
  [`${folder}/site-config.yaml`]: resources.map((each) => stringify(each)).join('---\n'),
  [`${folder}/pull.yaml`]: stringify(pullSecret),
});
