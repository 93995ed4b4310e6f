import { metadataOf, secretOf } from './payloads.ts';
import type { Members, SiteExport } from './site-export.ts';

/* Owns what Advanced Cluster Management imports an installed cluster by. */

/** The klusterlet finds both out. */
const LABELS = { cloud: 'auto-detect', vendor: 'auto-detect' };

export const managedClusterOf = ({ cluster }: SiteExport): Members => ({
  apiVersion: 'cluster.open-cluster-management.io/v1',
  kind: 'ManagedCluster',
  metadata: { name: cluster, labels: { ...LABELS, name: cluster } },
  spec: { hubAcceptsClient: true },
});

/** With the add-ons that siteconfig switches on for a cluster in the field. */
export const addonsOf = (exported: SiteExport): Members => {
  const { cluster } = exported;
  return {
    apiVersion: 'agent.open-cluster-management.io/v1',
    kind: 'KlusterletAddonConfig',
    metadata: metadataOf(exported, cluster),
    spec: {
      clusterName: cluster,
      clusterNamespace: cluster,
      clusterLabels: LABELS,
      applicationManager: { enabled: true },
      certPolicyController: { enabled: true },
      policyController: { enabled: true },
      searchCollector: { enabled: false },
    },
  };
};

const RETRIES = '5';

/** The controller of imports uses it once and removes it. */
export const importSecretOf = (exported: SiteExport, kubeconfig: string): Members =>
  secretOf(exported, 'auto-import-secret', {
    type: 'Opaque',
    texts: { autoImportRetry: RETRIES, kubeconfig },
  });
