/* Owns the places in a ClusterInstance of the values of the files that are made of it. */

/** The path in a resource of a path in a file that is made of it. */
export type ToPath = (path: string) => string;

export type Paths = readonly (readonly [written: RegExp, inResource: string])[];

export const createPaths =
  (paths: Paths): ToPath =>
  (path) => {
    const found = paths.find(([written]) => written.test(path));
    return found ? path.replace(...found) : 'spec';
  };

export const INSTALL_PATHS: Paths = [
  [/^metadata\.name.*/, 'spec.clusterName'],
  [/^baseDomain.*/, 'spec.baseDomain'],
  [/^sshKey.*/, 'spec.sshPublicKey'],
  [/^pullSecret.*/, 'spec.pullSecretRef'],
  [/^additionalTrustBundle.*/, 'spec.caBundleRef'],
  [/^networking\.serviceNetwork(\[\d+\])$/, 'spec.serviceNetwork$1.cidr'],
  [/^networking\./, 'spec.'],
  [/^platform\.\w+\.(apiVIPs|ingressVIPs)/, 'spec.$1'],
  [/^platform.*/, 'spec.platformType'],
  [/^(?:controlPlane|arbiter|compute).*/, 'spec.nodes'],
  [/^(proxy|cpuPartitioningMode)/, 'spec.$1'],
  [/^.+$/, 'spec.installConfigOverrides'],
];

export const AGENT_PATHS: Paths = [
  [/^hosts(\[\d+\])\.hostname.*/, 'spec.nodes$1.hostName'],
  [/^hosts(\[\d+\])\.interfaces/, 'spec.nodes$1.nodeNetwork.interfaces'],
  [/^hosts(\[\d+\])\.networkConfig/, 'spec.nodes$1.nodeNetwork.config'],
  [/^hosts/, 'spec.nodes'],
  [/^rendezvousIP.*/, 'spec.nodes'],
  [/^additionalNTPSources/, 'spec.additionalNTPSources'],
];

export const IMAGE_BASED_PATHS: Paths = [
  [/^hostname.*/, 'spec.nodes[0].hostName'],
  [/^networkConfig/, 'spec.nodes[0].nodeNetwork.config'],
  [/^nodeLabels/, 'spec.nodes[0].nodeLabels'],
  [/^additionalNTPSources/, 'spec.additionalNTPSources'],
];
