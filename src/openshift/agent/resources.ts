import { parseMacAddress } from '../../base/mac-address.ts';
import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { formatManifest, splitDocuments } from '../node/manifests.ts';
import type { HostNetwork } from '../../nmstate/values.ts';

type Members = Readonly<Record<string, unknown>>;

/** A custom resource, or an object of Kubernetes, as it is written in a file. */
export type Resource = {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly labels: Members;
  readonly spec: Members;
  readonly value: Members;
  /** Name for messages. */
  readonly file: string;
};

/**
 * The documents of a file.
 *
 * @throws ConfigError `manifest.malformed`
 */
export const parseResources = (text: string, file: string): readonly Resource[] =>
  splitDocuments({ name: file, text }).map(({ document }) => {
    const value = objectOrEmpty(document.toJS());
    const metadata = objectOrEmpty(value['metadata']);
    const { name = '', namespace } = metadata;
    return {
      kind: nameKind(value),
      name: String(name),
      namespace: typeof namespace === 'string' ? namespace : undefined,
      labels: objectOrEmpty(metadata['labels']),
      spec: objectOrEmpty(value['spec']),
      value,
      file,
    };
  });

/** The API group of each kind that is read; an object of another group is another kind. */
const GROUPS: Readonly<Record<string, string>> = {
  InfraEnv: 'agent-install.openshift.io/',
  NMStateConfig: 'agent-install.openshift.io/',
  AgentClusterInstall: 'extensions.hive.openshift.io/',
  ClusterImageSet: 'hive.openshift.io/',
  Secret: 'v1',
  ConfigMap: 'v1',
};

/** Kinds that are read; all others are named in a warning. */
export const isRead = ({ kind }: Resource): boolean => Object.hasOwn(GROUPS, kind);

function nameKind({ kind, apiVersion }: Members): string {
  const name = String(kind);
  const version = typeof apiVersion === 'string' ? apiVersion : '';
  const group = Object.hasOwn(GROUPS, name) ? GROUPS[name] : undefined;
  const isOther = group !== undefined && version !== '' && !version.startsWith(group);
  return isOther ? `${name} of ${version}` : name;
}

/**
 * The networks of the NMStateConfigs among resources.
 *
 * @throws ConfigError `customize.resource`
 */
export const readHostNetworks = (resources: readonly Resource[]): readonly HostNetwork[] =>
  resources.filter(({ kind }) => kind === 'NMStateConfig').map(readHostNetwork);

function readHostNetwork(resource: Resource): HostNetwork {
  const { config, interfaces } = resource.spec;
  if (typeof config !== 'object' || config === null) throw lacks(resource, 'spec.config');
  if (!Array.isArray(interfaces)) throw lacks(resource, 'spec.interfaces');
  return {
    networkConfig: formatManifest(config),
    interfaces: interfaces.map((each) => {
      const { name, macAddress } = objectOrEmpty(each);
      if (typeof name === 'string' && typeof macAddress === 'string')
        return { name, macAddress: parseMacAddress(macAddress) ?? macAddress };
      throw lacks(resource, 'name or macAddress in spec.interfaces');
    }),
  };
}

export const lacks = (resource: Resource, what: string): ConfigError =>
  refuseResource(`${nameOf(resource)} lacks ${what}`);

export const refuseResource = (problem: string, hint = 'correct the resource'): ConfigError =>
  new ConfigError('customize.resource', problem, { hint });

/** Name for messages. */
export const nameOf = ({ kind, name, file }: Resource): string => `${kind} "${name}" of ${file}`;

/** @param where the resource that names it */
export const missingReference = (
  { kind, name }: { readonly kind: string; readonly name: unknown },
  where: string,
  hint = 'add it to the files',
): ConfigError =>
  refuseResource(
    `${kind} ${JSON.stringify(name)}, which ${where} names, is not among the resources`,
    hint,
  );

/** True if another resource names this one: in its own namespace, if both state a namespace. */
export const isNamedBy =
  ({ namespace }: Resource, kind: string, name: unknown) =>
  (other: Resource): boolean =>
    other.kind === kind &&
    other.name === name &&
    (namespace === undefined || other.namespace === undefined || other.namespace === namespace);

type MembersOfLabelSelector = Readonly<Record<string, unknown>>;

/** How the Kubernetes API compares a label with an expression. */
const OPERATORS: Readonly<Record<string, (label: unknown, values: readonly unknown[]) => boolean>> =
  {
    In: (label, values) => label !== undefined && values.includes(label),
    NotIn: (label, values) => label === undefined || !values.includes(label),
    Exists: (label) => label !== undefined,
    DoesNotExist: (label) => label === undefined,
  };

/**
 * True if a LabelSelector of the Kubernetes API selects a resource: all of `matchLabels`, and all
 * of `matchExpressions`. A selector without either selects no resource here, like the controllers
 * of assisted-service.
 *
 * @throws ConfigError `customize.resource` for a selector that the API would refuse
 */
export function createSelector(
  selector: MembersOfLabelSelector,
  where: string,
): (resource: Resource) => boolean {
  const matchLabels = Object.entries(objectOrEmpty(selector['matchLabels']));
  const expressions = readExpressions(selector['matchExpressions'], where);
  if (matchLabels.length + expressions.length === 0) return () => false;
  return ({ labels }) =>
    matchLabels.every(([label, value]) => labels[label] === value) &&
    expressions.every((matches) => matches(labels));
}

function readExpressions(
  given: unknown = [],
  where: string,
): readonly ((labels: MembersOfLabelSelector) => boolean)[] {
  if (!Array.isArray(given)) throw refuseResource(`matchExpressions of ${where} is not a list`);
  return given.map((each) => {
    const { key, operator, values = [] } = objectOrEmpty(each);
    const compare = OPERATORS[String(operator)];
    const isSet = operator === 'In' || operator === 'NotIn';
    if (!compare || typeof key !== 'string') {
      throw refuseResource(
        `matchExpressions of ${where} has the operator ${JSON.stringify(operator)} for the label ` +
          `${JSON.stringify(key)}, but only ${Object.keys(OPERATORS).join(', ')} are known`,
      );
    }
    if (!Array.isArray(values) || values.length > 0 !== isSet) {
      throw refuseResource(
        `matchExpressions of ${where} has ${isSet ? 'no values' : 'values'} for ${String(operator)}`,
      );
    }
    return (labels) => compare(labels[key], values as readonly unknown[]);
  });
}
