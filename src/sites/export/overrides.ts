import { withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import type { AgentCluster } from '../../openshift/agent/agent-cluster.ts';
import type { Members } from './site-export.ts';

/* Owns the members of install-config for which resources have no place of their own. */

/** In the form of install-config.yaml; a hub merges them over what it makes of the resources. */
export function listOverrides(cluster: AgentCluster): Members {
  const { overrides, platform, trustBundle, mirrors, fencing } = cluster;
  return withoutUndefined({
    ...overrides,
    cpuPartitioningMode: undefined,
    platform: platform.kind === 'external' ? { external: mapExternal(platform) } : undefined,
    additionalTrustBundle: unlessEmpty(trustBundle),
    imageDigestSources: mirrors.length === 0 ? undefined : mirrors,
    controlPlane: fencing.length === 0 ? undefined : { fencing: { credentials: fencing } },
  });
}

const mapExternal = ({
  platformName,
  cloudControllerManager,
}: Extract<AgentCluster['platform'], { readonly kind: 'external' }>): Members =>
  withoutUndefined({
    platformName: unlessEmpty(platformName),
    cloudControllerManager: unlessEmpty(cloudControllerManager),
  });
