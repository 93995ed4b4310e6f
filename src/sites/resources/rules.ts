import type { DocumentProblem } from '../../base/errors.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { type Conversion, type InstanceNode, type Spec, INSTANCE_API } from './shape.ts';

/*
 * Owns what the API of ClusterInstances and siteconfig's own checks refuse, in their words
 * (config/crd/bases, api/v1alpha1/clusterinstance_validation.go).
 */

const CLUSTER_TYPES: readonly string[] = [
  'SNO',
  'HighlyAvailable',
  'HighlyAvailableArbiter',
  'HostedControlPlane',
];

const ROLES: readonly string[] = ['master', 'worker', 'arbiter'];

type Rule = (conversion: Conversion) => readonly DocumentProblem[];

const checkVersion: Rule = ({ document: { value, report } }) =>
  value.apiVersion === INSTANCE_API
    ? []
    : [report('apiVersion', `a ClusterInstance has the version ${INSTANCE_API}`)];

/** Members that the API requires, and that no rule of install-config asks for (config/crd/bases). */
const checkRequired: Rule = ({ spec, nodes, document: { report } }) => {
  const lacks = (path: string): DocumentProblem => report(path, 'Required value');
  return [
    ...((spec.clusterImageSetNameRef ?? '') === '' ? [lacks('spec.clusterImageSetNameRef')] : []),
    ...nodes.flatMap(({ bmcAddress = '', bmcCredentialsName, bootMACAddress = '' }, index) => {
      const path = `spec.nodes[${index}]`;
      return [
        ...(bmcAddress === '' ? [lacks(`${path}.bmcAddress`)] : []),
        ...((bmcCredentialsName?.name ?? '') === '' ? [lacks(`${path}.bmcCredentialsName`)] : []),
        ...(bootMACAddress === '' ? [lacks(`${path}.bootMACAddress`)] : []),
      ];
    }),
  ];
};

const ARCHITECTURES: readonly string[] = ['x86_64', 'aarch64', 'multi'];

/** A medium has one architecture. */
const checkArchitectures: Rule = ({ spec, nodes, document: { report } }) => {
  const judge = (path: string, name: string | undefined, known = ARCHITECTURES) => {
    if (name === 'multi' && known === ARCHITECTURES) {
      const hint = 'write x86_64 or aarch64, as the medium has it';
      return [report(path, 'multi: a medium has one architecture', { hint })];
    }
    if (name === undefined || known.includes(name)) return [];
    return [report(path, `Unsupported value: "${name}": supported values: ${quoted(known)}`)];
  };
  const cluster = spec.cpuArchitecture ?? 'x86_64';
  return [
    ...judge('spec.cpuArchitecture', spec.cpuArchitecture),
    ...nodes.flatMap(({ cpuArchitecture: name }, index) => {
      const path = `spec.nodes[${index}].cpuArchitecture`;
      const unknown = judge(path, name, ARCHITECTURES.slice(0, 2));
      if (unknown.length > 0 || name === undefined || ['multi', name].includes(cluster))
        return unknown;
      return [
        report(path, `${name}: the cluster is for ${cluster}, and a medium has one architecture`),
      ];
    }),
  ];
};

const checkTemplates: Rule = ({ nodes, document: { report } }) =>
  nodes.flatMap(({ hostName = '', templateRefs = [] }, index) =>
    templateRefs.length > 0
      ? []
      : [
          report(
            `spec.nodes[${index}].templateRefs`,
            `missing node-level template reference for node "${hostName}"`,
          ),
        ],
  );

const checkTexts: Rule = ({ spec, nodes, document: { report } }) => {
  const judge = (path: string, what: string, text = ''): readonly DocumentProblem[] =>
    text === '' || readJsonText(text, TYPED_JSON).why === undefined
      ? []
      : [report(path, `invalid JSON field(s): ${what} is not a valid JSON-formatted string`)];
  const judgeNode = (node: InstanceNode, index: number): readonly DocumentProblem[] => {
    const path = `spec.nodes[${index}]`;
    const where = `[Node: Hostname=${node.hostName ?? ''}]`;
    return [
      ...judge(`${path}.installerArgs`, `installerArgs ${where}`, node.installerArgs),
      ...judge(
        `${path}.ignitionConfigOverride`,
        `node-level ignitionConfigOverride ${where}`,
        node.ignitionConfigOverride,
      ),
    ];
  };
  return [
    ...judge('spec.installConfigOverrides', 'installConfigOverrides', spec.installConfigOverrides),
    ...judge(
      'spec.ignitionConfigOverride',
      'cluster-level ignitionConfigOverride',
      spec.ignitionConfigOverride,
    ),
    ...nodes.flatMap(judgeNode),
  ];
};

const checkRoles: Rule = ({ nodes, flow, document: { report } }) =>
  nodes.flatMap(({ role = 'master' }, index) => {
    const path = `spec.nodes[${index}].role`;
    if (!ROLES.includes(role))
      return [report(path, `Unsupported value: "${role}": supported values: ${quoted(ROLES)}`)];
    return flow === 'image-based' && role !== 'master'
      ? [report(path, `the node of a site from a seed is a master, not a ${role}`)]
      : [];
  });

const quoted = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(', ');

/** Absent: any topology. */
const checkType: Rule = ({ spec, nodes, flow, document: { report } }) => {
  const { clusterType } = spec;
  if (clusterType === undefined) return [];
  const path = 'spec.clusterType';
  if (!CLUSTER_TYPES.includes(clusterType)) {
    const why = `Unsupported value: "${clusterType}": supported values: ${quoted(CLUSTER_TYPES)}`;
    return [report(path, why)];
  }
  if (clusterType === 'HostedControlPlane')
    return [report(path, 'a hosted control plane has no nodes that a medium could install')];
  if (flow === 'image-based')
    return clusterType === 'SNO' ? [] : [report(path, 'a site from a seed is of the type SNO')];
  const why = findMiscount(clusterType, nodes);
  return why === undefined ? [] : [report(path, `control-plane agent validation failed: ${why}`)];
};

function findMiscount(
  clusterType: NonNullable<Spec['clusterType']>,
  nodes: readonly InstanceNode[],
): string | undefined {
  const count = (wanted: string): number =>
    nodes.filter(({ role = 'master' }) => role === wanted).length;
  const masters = count('master');
  const arbiters = count('arbiter');
  if (masters < 1) return 'at least 1 control-plane agent is required';
  if (clusterType === 'SNO' && masters !== 1)
    return 'single node OpenShift cluster-type must have exactly 1 control-plane agent';
  if (clusterType !== 'HighlyAvailableArbiter')
    return arbiters > 0
      ? 'arbiter agents can only be used with HighlyAvailableArbiter cluster-type'
      : undefined;
  return arbiters < 1 || masters < 2
    ? 'highly available arbiter cluster-type must have at least 1 arbiter agent and 2 control-plane agents'
    : undefined;
}

const RULES: readonly Rule[] = [
  checkVersion,
  checkRequired,
  checkTemplates,
  checkTexts,
  checkRoles,
  checkType,
  checkArchitectures,
];

export const judgeInstance: Rule = (conversion) => RULES.flatMap((rule) => rule(conversion));
