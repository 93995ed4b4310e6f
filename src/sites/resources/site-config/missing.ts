import type { DocumentProblem } from '../../../base/errors.ts';
import type { ClusterPlace, SiteConfigSpec } from './shape.ts';

/* Owns the members of a SiteConfig that a ClusterInstance does not have: siteconfig-converter warns of them, too. */

const OF_ALL = ['crTemplates', 'biosConfigRef'];
const OF_SITES = [...OF_ALL, 'crAnnotations', 'sshPrivateKeySecretRef'];
const OF_CLUSTERS = [...OF_ALL, 'mergeDefaultMachineConfigs', 'extraManifestOnly', 'siteConfigMap'];
const OF_NODES = [...OF_ALL, 'diskPartition', 'userData', 'cpuset'];

export function listMissing(
  spec: SiteConfigSpec,
  { document, cluster, path: own }: ClusterPlace,
): readonly DocumentProblem[] {
  const tell = (path: string, value: object, members: readonly string[]) =>
    members
      .filter((member) => isGiven((value as Record<string, unknown>)[member]))
      .map((member) =>
        document.report(`${path}.${member}`, `${member} has no counterpart in a ClusterInstance`),
      );
  const judgeFirst = (name: string, one = '', [first = one]: readonly string[] = []) =>
    one === '' || one === first
      ? []
      : [
          document.report(
            `${own}.${name}`,
            `${name} must be the first of ${name}s, which is ${first}`,
          ),
        ];
  return [
    ...tell('spec', spec, OF_SITES),
    ...tell(own, cluster, OF_CLUSTERS),
    ...judgeFirst('apiVIP', cluster.apiVIP, cluster.apiVIPs),
    ...judgeFirst('ingressVIP', cluster.ingressVIP, cluster.ingressVIPs),
    ...(cluster.nodes ?? []).flatMap((node, at) => tell(`${own}.nodes[${at}]`, node, OF_NODES)),
  ];
}

/** The converter does not tell an empty value from an absent one. */
const isGiven = (value: unknown): boolean =>
  typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== null && value !== '' && value !== false;
