import type { DocumentProblem } from '../../base/errors.ts';
import type { Conversion, SiteFlow } from './shape.ts';

/* Owns the members of a ClusterInstance that no file of a site can carry. */

/** Members without a counterpart, by flow; others are those of a hub alone. */
const LOST: Readonly<
  Record<SiteFlow, { readonly spec: readonly string[]; readonly node: readonly string[] }>
> = {
  'agent': {
    spec: ['ignitionConfigOverride', 'diskEncryption'],
    node: ['installerArgs', 'ignitionConfigOverride', 'nodeLabels'],
  },
  'image-based': {
    spec: [
      'clusterNetwork',
      'serviceNetwork',
      'networkType',
      'apiVIPs',
      'ingressVIPs',
      'platformType',
      'installConfigOverrides',
      'ignitionConfigOverride',
      'diskEncryption',
      'cpuPartitioningMode',
    ],
    node: ['rootDeviceHints', 'installerArgs', 'ignitionConfigOverride'],
  },
};

export function listLost({ spec, nodes, flow, document }: Conversion): readonly DocumentProblem[] {
  const place =
    flow === 'agent' ? 'on a configuration image' : "on a configuration ISO: it is the seed's";
  const tell = (path: string, member: string): DocumentProblem =>
    document.report(`${path}.${member}`, `${member} has no place ${place}`);
  const given = (value: object, members: readonly string[]): readonly string[] =>
    members.filter((member) => (value as Record<string, unknown>)[member] !== undefined);
  return [
    ...given(spec, LOST[flow].spec).map((member) => tell('spec', member)),
    ...nodes.flatMap((node, index) =>
      given(node, LOST[flow].node).map((member) => tell(`spec.nodes[${index}]`, member)),
    ),
  ];
}
