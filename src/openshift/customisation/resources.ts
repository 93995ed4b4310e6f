import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { formatManifest, splitDocuments } from '../node/manifests/extra-manifests.ts';
import type { HostNetwork } from './custom-values.ts';

type Members = Readonly<Record<string, unknown>>;

/** A custom resource, or an object of Kubernetes, as it is written in a file. */
export type Resource = {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly labels: Members;
  readonly spec: Members;
  readonly value: Members;
  /** For messages. */
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
      if (typeof name === 'string' && typeof macAddress === 'string') return { name, macAddress };
      throw lacks(resource, 'name or macAddress in spec.interfaces');
    }),
  };
}

export const lacks = (resource: Resource, what: string): ConfigError =>
  refuseResource(`${nameOf(resource)} lacks ${what}`);

export const refuseResource = (problem: string, hint = 'correct the resource'): ConfigError =>
  new ConfigError('customize.resource', problem, { hint });

/** For messages. */
export const nameOf = ({ kind, name, file }: Resource): string => `${kind} "${name}" of ${file}`;

/** @param where who names it */
export const missingReference = (
  { kind, name }: { readonly kind: string; readonly name: unknown },
  where: string,
  hint = 'add it to the files',
): ConfigError =>
  refuseResource(
    `${kind} ${JSON.stringify(name)}, which ${where} names, is not among the resources`,
    hint,
  );

/** Whether a resource is that which another one names: of its own namespace, where both say theirs. */
export const isNamedBy =
  ({ namespace }: Resource, kind: string, name: unknown) =>
  (other: Resource): boolean =>
    other.kind === kind &&
    other.name === name &&
    (namespace === undefined || other.namespace === undefined || other.namespace === namespace);
