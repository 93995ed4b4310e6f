import { withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import { formatNetworkConfig } from '../../nmstate/index.ts';
import { namePullSecret, NETWORK_LABEL } from '../../openshift/agent/cluster-manifests.ts';
import type { ImageBasedSite } from '../site.ts';
import { BUNDLE_NAME, controllerSecretNameOf, metadataOf, secretOf } from './payloads.ts';
import type { ExportHost, Members, SiteExport } from './site-export.ts';

/* Owns the BareMetalHosts of a site (metal3.io/v1alpha1), and what installs a node from a seed on one of them. */

/** The name of a host's resources: that of the host, or of the cluster with the host's number. */
export const nameHost = (
  { cluster }: SiteExport,
  { hostname }: ExportHost,
  index: number,
): string => hostname ?? `${cluster}-${index}`;

/** The host and, if there is one, the Secret with its network. */
export function hostResourcesOf(
  exported: SiteExport,
  host: ExportHost,
  index: number,
): readonly Members[] {
  const name = nameHost(exported, host, index);
  const { controller, network, bootMac, place } = host;
  if (controller === undefined) {
    const problem = `the controller of ${name} is not known: a hub waits for a person to start the host`;
    exported.warn(place, problem, 'name it in the table of --hosts');
  }
  const isOfSeed = exported.site.kind === 'image-based';
  const resource: Members = {
    apiVersion: 'metal3.io/v1alpha1',
    kind: 'BareMetalHost',
    metadata: metadataOf(exported, name, isOfSeed ? {} : describeAgentHost(exported, host)),
    spec: {
      automatedCleaningMode: 'disabled',
      bmc: controller && {
        address: controller.address,
        credentialsName: controllerSecretNameOf(name),
        disableCertificateVerification: controller.disableCertificateVerification,
      },
      bootMACAddress: bootMac,
      online: !isOfSeed,
      externallyProvisioned: isOfSeed ? true : undefined,
      preprovisioningNetworkDataName: isOfSeed && network !== undefined ? name : undefined,
      rootDeviceHints: host.rootDeviceHints,
    },
  };
  if (network === undefined || !isOfSeed) return [resource];
  return [resource, secretOf(exported, name, { texts: { nmstate: formatNetworkConfig(network) } })];
}

/** Members that assisted-service reads; the network is an NMStateConfig of the same MAC addresses. */
const describeAgentHost = ({ cluster }: SiteExport, { hostname, role }: ExportHost): Members => ({
  annotations: withoutUndefined({
    'bmac.agent-install.openshift.io/hostname': hostname,
    'bmac.agent-install.openshift.io/role': role,
  }),
  labels: { [NETWORK_LABEL]: cluster },
});

const INSTALL_API = { group: 'extensions.hive.openshift.io', version: 'v1alpha1' };

/** The resources of the image-based-install-operator, without the host. */
export function imageClusterInstallOf(
  exported: SiteExport,
  { install, imageBased }: ImageBasedSite,
  manifests: readonly string[],
): readonly Members[] {
  const { cluster, baseDomain, imageSet, hosts } = exported;
  const sources = imageBased.additionalNTPSources;
  const [host] = hosts;
  return [
    {
      apiVersion: 'hive.openshift.io/v1',
      kind: 'ClusterDeployment',
      metadata: metadataOf(exported, cluster),
      spec: {
        baseDomain,
        clusterName: cluster,
        clusterInstallRef: { ...INSTALL_API, kind: 'ImageClusterInstall', name: cluster },
        platform: { none: {} },
        pullSecretRef: { name: namePullSecret(cluster) },
      },
    },
    {
      apiVersion: `${INSTALL_API.group}/${INSTALL_API.version}`,
      kind: 'ImageClusterInstall',
      metadata: metadataOf(exported, cluster),
      spec: {
        clusterDeploymentRef: { name: cluster },
        imageSetRef: { name: imageSet },
        hostname: imageBased.hostname,
        sshKey: unlessEmpty(install.sshKey),
        machineNetworks: install.machineNetworks?.map((cidr) => ({ cidr })),
        proxy: install.proxy,
        additionalNTPSources: sources.length === 0 ? undefined : sources,
        caBundleRef:
          install.additionalTrustBundle === undefined ? undefined : { name: BUNDLE_NAME },
        extraManifestsRefs:
          manifests.length === 0 ? undefined : manifests.map((name) => ({ name })),
        imageDigestSources: install.imageDigestSources?.map(
          ({ source, mirrors, sourcePolicy: mirrorSourcePolicy }) =>
            withoutUndefined({ source, mirrors, mirrorSourcePolicy }),
        ),
        bareMetalHostRef: host && {
          name: nameHost(exported, host, 0),
          namespace: cluster,
        },
      },
    },
  ];
}
