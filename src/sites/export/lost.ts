import type { AgentCluster } from '../../openshift/agent/agent-cluster.ts';
import { type ImageBasedSite, INSTALL_FILE, AGENT_FILE, IMAGE_BASED_FILE } from '../site.ts';
import type { SiteExport } from './site-export.ts';

/* Owns the values of a site that its resources cannot carry. */

/** Warns of values that neither a member of a resource nor an override has room for. */
export function tellLost(exported: SiteExport): void {
  const { site } = exported;
  if (site.kind === 'agent') tellLostOfAgent(site.cluster, exported);
  else tellLostOfSeed(site, exported);
  const { sshKey } = site.kind === 'agent' ? site.cluster : site.install;
  if (sshKey.trim().includes('\n')) {
    const problem = 'has several lines, which the templates of siteconfig join into one';
    exported.warn({ file: INSTALL_FILE, path: 'sshKey' }, problem);
  }
}

type Lost = readonly (readonly [file: string, path: string, value: unknown])[];

/** Members of image-based sites by which of them has no place in which form. */
function tellLostOfSeed({ install, imageBased }: ImageBasedSite, exported: SiteExport): void {
  const { form, warn } = exported;
  const resource = form === 'clusterinstance' ? 'a ClusterInstance' : 'an ImageClusterInstall';
  const lost: Lost = [
    ...(form === 'clusterinstance'
      ? ([[INSTALL_FILE, 'imageDigestSources', install.imageDigestSources]] as const)
      : ([[IMAGE_BASED_FILE, 'nodeLabels', Object.keys(imageBased.nodeLabels)[0]]] as const)),
    [INSTALL_FILE, 'additionalTrustBundlePolicy', install.additionalTrustBundlePolicy],
    [IMAGE_BASED_FILE, 'releaseRegistry', imageBased.releaseRegistry],
    [IMAGE_BASED_FILE, 'cluster_id', imageBased.clusterId],
    [IMAGE_BASED_FILE, 'infra_id', imageBased.infraId],
  ];
  for (const [file, path, value] of lost) {
    if (value !== undefined) warn({ file, path }, `${path} has no place in ${resource}`);
  }
}

function tellLostOfAgent(cluster: AgentCluster, { warn, hosts }: SiteExport): void {
  cluster.hosts.forEach(({ bmc }, index) => {
    const place = { file: AGENT_FILE, path: `hosts[${index}]` };
    const problem =
      'the controller of the host is known to the hub, and not to the cluster that it installs';
    if (bmc !== undefined) warn(place, problem);
  });
  for (const { isRoleChosen, role, place } of hosts) {
    if (isRoleChosen) warn(place, `the host has no role: it is written as ${role}`);
  }
  if (cluster.fencing.length > 0) {
    const problem = 'the credentials of fencing are written into the overrides of install-config';
    const hint = 'treat the resource as a secret';
    warn({ file: INSTALL_FILE, path: 'controlPlane.fencing' }, problem, hint);
  }
}
