import { stringify } from 'yaml';
import type { Tree } from './site-archives.ts';

type Members = Readonly<Record<string, unknown>>;

const NAMESPACE = 'fleet';

const pullSecretOf = (name: string, text: string): Members => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: NAMESPACE },
  data: { '.dockerconfigjson': Buffer.from(text).toString('base64') },
});

export const clusterInstance = (name: string, spec: Members): Members => ({
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
