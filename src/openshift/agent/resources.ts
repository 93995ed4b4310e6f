import { ConfigError, ConfigProblems, type DocumentProblem } from '../../base/errors.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { readYaml } from '../../shape/document.ts';
import { FREE, type Plain } from '../../shape/shape.ts';
import { splitDocuments, type SplitDocument } from '../node/manifests.ts';
import { type Definitions, findDefinition, readResourceMembers } from './resource-members.ts';
import { formatNetworkConfig, type HostNetwork } from '../../nmstate/index.ts';

type Members = Readonly<Record<string, unknown>>;

/** A custom resource, or an object of Kubernetes, as it is written in a file. */
export type Resource = {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly labels: Members;
  readonly spec: Members;
  readonly value: Members;
  readonly file: string;
  /** `FILE:LINE` of the value at a path. */
  readonly placeOf: (path: string) => string;
};

/**
 * The items of a List count one by one. Unknown members, other types and other words of known kinds are
 * problems.
 *
 * @param ofPayload definitions of the release, which judge in place of ours
 * @throws ConfigError `manifest.malformed`; ConfigProblems with all of them
 */
export function parseResources(
  text: string,
  file: string,
  ofPayload: Definitions = {},
): readonly Resource[] {
  const read = splitDocuments({ name: file, text }).flatMap((document) =>
    readDocument(document, { whole: text, ofPayload }),
  );
  const problems = read.flatMap((each) => each.problems);
  if (problems.length > 0) throw new ConfigProblems(file, problems);
  return read.map(({ resource }) => resource);
}

/** @throws the errors of `parseResources`; ConfigError `customize.resource` for other kinds and numbers */
export function readOnlyResource(text: string, file: string, kind: string): Resource {
  const [resource, ...others] = parseResources(text, file);
  if (resource?.kind === kind && others.length === 0) return resource;
  const found = resource ? [resource, ...others].map((each) => each.kind).join(', ') : 'nothing';
  throw refuseResource(`${file} has ${found} instead of one ${kind}`);
}

type ReadResource = { readonly resource: Resource; readonly problems: readonly DocumentProblem[] };

type Around = { readonly whole: string; readonly ofPayload: Definitions };

function readDocument(document: SplitDocument, around: Around): readonly ReadResource[] {
  const { whole, ofPayload } = around;
  const { file, text } = document;
  const { kind, apiVersion } = textsOf(document.document.toJS());
  const source = { text, file };
  const definition = findDefinition(kind, apiVersion, ofPayload);
  const read = definition
    ? readResourceMembers(source, definition)
    : { document: readYaml({ ...source, publicKeys: new Set() }, FREE), problems: [] };
  const members = objectOrEmpty(read.document.value);
  const placeOf = (path: string): string =>
    `${file}:${read.document.lineOf(path) + countLinesBefore(whole, text)}`;
  if (kind === 'List' && Array.isArray(members['items'])) {
    return readItems(members['items'], file, ofPayload);
  }
  const name = !definition && findDefinition(kind) ? `${kind} of ${apiVersion}` : kind;
  const problems = toLinesOf(whole, text, read.problems);
  return [{ resource: { ...toResource(members, name, file), placeOf }, problems }];
}

/** The lines of problems count in the whole file. */
function toLinesOf(
  whole: string,
  text: string,
  problems: readonly DocumentProblem[],
): readonly DocumentProblem[] {
  if (problems.length === 0) return [];
  const before = countLinesBefore(whole, text);
  return problems.map((problem) => ({ ...problem, line: problem.line + before }));
}

const countLinesBefore = (whole: string, text: string): number =>
  whole.slice(0, Math.max(0, whole.indexOf(text.trimEnd()))).split('\n').length - 1;

/** Problems have the item's number, and no line. */
const readItems = (
  items: readonly unknown[],
  file: string,
  ofPayload: Definitions,
): readonly ReadResource[] =>
  items.flatMap((item, index) => {
    const text = JSON.stringify(item);
    const name = `${file} (item ${index} of a List)`;
    return splitDocuments({ name, text })
      .flatMap((document) => readDocument(document, { whole: text, ofPayload }))
      .map(({ resource, problems }) => ({
        resource: { ...resource, placeOf: () => name },
        problems,
      }));
  });

function textsOf(value: unknown): { readonly kind: string; readonly apiVersion: string } {
  const { kind, apiVersion } = objectOrEmpty(value);
  return { kind: String(kind), apiVersion: typeof apiVersion === 'string' ? apiVersion : '' };
}

function toResource(value: Members, kind: string, file: string): Omit<Resource, 'placeOf'> {
  const metadata = objectOrEmpty(value['metadata']);
  const { name = '', namespace } = metadata;
  return {
    kind,
    name: String(name),
    namespace: typeof namespace === 'string' ? namespace : undefined,
    labels: objectOrEmpty(metadata['labels']),
    spec: objectOrEmpty(value['spec']),
    value,
    file,
  };
}

/** True for a kind that has values for a medium. */
export const isRead = ({ kind }: Resource): boolean =>
  findDefinition(kind) !== undefined && kind !== 'ClusterDeployment';

/** @throws ConfigError `customize.resource` */
export const readHostNetworks = (resources: readonly Resource[]): readonly HostNetwork[] =>
  resources.filter(({ kind }) => kind === 'NMStateConfig').map(readHostNetwork);

function readHostNetwork(resource: Resource): HostNetwork {
  const { config, interfaces } = resource.spec;
  if (typeof config !== 'object' || config === null) throw lacks(resource, 'spec.config');
  if (!Array.isArray(interfaces)) throw lacks(resource, 'spec.interfaces');
  return {
    networkConfig: formatNetworkConfig(config as Plain),
    placeOf: (path) => resource.placeOf(`spec.config.${path}`),
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
 * A LabelSelector of the Kubernetes API; without labels and expressions it selects no resource, as in the
 * controllers of assisted-service.
 */
export function createSelector(
  selector: MembersOfLabelSelector,
  where: string,
): (resource: Pick<Resource, 'labels'>) => boolean {
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
    const known = Object.hasOwn(OPERATORS, String(operator));
    const compare = known ? OPERATORS[String(operator)] : undefined;
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
