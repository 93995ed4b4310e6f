import { renderClusterCatalogs } from '../openshift/node/catalogs.ts';
import { describeCatalogs, describeCluster } from '../openshift/node/cluster.ts';
import type { Manifest } from '../openshift/node/manifests.ts';
import { signaturesOf } from '../openshift/release/signature.ts';
import { planGeneratedManifests, planMirrorManifests } from '../openshift/node/cluster.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../openshift/node/registry.ts';
import type { BuildTools } from './build-tools.ts';
import { selectImages } from './live-iso/live-iso-images.ts';
import { clusterSettingsOf } from './live-iso/live-iso-ignition.ts';
import type { LiveIsoRequest } from './live-iso/live-iso-request.ts';

/**
 * The objects that tell a cluster of the media: what the media themselves carry, and the
 * ClusterCatalogs, which they leave out because not every cluster knows the kind. The password of
 * core is not among them.
 */
export async function listResources(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<readonly Manifest[]> {
  const images = selectImages(request, tools);
  images.reserved.catch(() => undefined); // what does not fit has resources, too
  const made = {
    release: await images.release,
    plan: await images.plan,
    catalogs: await images.catalogs,
    signatures: signaturesOf(await images.release),
    ...(images.workspace && { workspace: await images.workspace }),
  };
  const registry = `${nodeRegistryDomain(request.config.enableInteractiveFlow)}:${NODE_REGISTRY_PORT}`;
  const cluster = describeCluster(made, clusterSettingsOf(request));
  return [
    ...planGeneratedManifests(cluster),
    ...planMirrorManifests(cluster),
    ...renderClusterCatalogs({
      catalogs: describeCatalogs(made.catalogs, made.workspace),
      registry,
    }),
  ];
}
