import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import type { AgentCluster, AgentHost } from '../../openshift/agent/agent-cluster.ts';
import { mapClusterManifests } from '../../openshift/agent/cluster-manifests.ts';
import { INSTALL_OVERRIDES } from '../../openshift/agent/install-overrides.ts';
import { listOverrides } from './overrides.ts';
import type { Members, SiteExport } from './site-export.ts';

/* Owns the resources of a cluster that assisted-service on a hub installs, but for its hosts. */

/** The resources of the agent-based installer, as far as a hub wants them in another form. */
export function agentResourcesOf(
  { imageSet }: SiteExport,
  cluster: AgentCluster,
  manifests: readonly string[],
): readonly Members[] {
  const ofHub = {
    ...cluster,
    namespace: cluster.name,
    // Agents reach a hub through the proxy, and not the rendezvous host without it.
    rendezvousIp: '',
    // Controllers are those of the hub's BareMetalHosts.
    hosts: cluster.hosts.map(withoutController),
  };
  const mapped = mapClusterManifests(ofHub, { imageSet, infraEnv: {} });
  const { install, deployment, infraEnv, networks } = mapped;
  const all = [mapInstall(install, cluster, manifests), mapDeployment(deployment), infraEnv];
  return [...all, ...networks].map((resource) => ({
    ...resource,
    metadata: { ...objectOrEmpty(resource['metadata']), namespace: cluster.name },
    status: undefined,
  }));
}

const withoutController = ({
  interfaces,
  hostname,
  role,
  rootDeviceHints,
  network,
}: AgentHost): AgentHost => ({
  interfaces,
  ...withoutUndefined({ hostname, role, rootDeviceHints, network }),
});

function mapInstall(
  install: Members,
  cluster: AgentCluster,
  manifests: readonly string[],
): Members {
  const metadata = objectOrEmpty(install['metadata']);
  const own = objectOrEmpty(metadata['annotations'])[INSTALL_OVERRIDES];
  const merged = {
    ...(typeof own === 'string' ? (JSON.parse(own) as Members) : {}),
    ...listOverrides(cluster),
    ...withoutUndefined({ cpuPartitioningMode: cluster.overrides['cpuPartitioningMode'] }),
  };
  const isEmpty = Object.keys(merged).length === 0;
  return {
    ...install,
    metadata: {
      ...metadata,
      annotations: isEmpty ? undefined : { [INSTALL_OVERRIDES]: JSON.stringify(merged) },
    },
    spec: {
      ...objectOrEmpty(install['spec']),
      manifestsConfigMapRefs:
        manifests.length === 0 ? undefined : manifests.map((name) => ({ name })),
    },
  };
}

/** Hive requires a platform; the InfraEnv binds agents to the cluster, so that the selector is empty. */
const mapDeployment = (deployment: Members): Members => ({
  ...deployment,
  spec: {
    ...objectOrEmpty(deployment['spec']),
    controlPlaneConfig: undefined,
    platform: { agentBareMetal: { agentSelector: {} } },
  },
});
