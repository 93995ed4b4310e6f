import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/members.ts';
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
      kind: String(value['kind']),
      name: String(name),
      namespace: typeof namespace === 'string' ? namespace : undefined,
      labels: objectOrEmpty(metadata['labels']),
      spec: objectOrEmpty(value['spec']),
      value,
      file,
    };
  });

/**
 * The networks of the NMStateConfigs among resources.
 *
 * @param matchLabels what their labels must have; absent: all are taken
 * @throws ConfigError `customize.resource`
 */
export const readHostNetworks = (
  resources: readonly Resource[],
  matchLabels?: Members,
): readonly HostNetwork[] =>
  resources
    .filter(({ kind }) => kind === 'NMStateConfig')
    .filter(({ labels }) =>
      Object.entries(matchLabels ?? {}).every(([label, value]) => labels[label] === value),
    )
    .map(readHostNetwork);

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

const lacks = ({ kind, name, file }: Resource, what: string): ConfigError =>
  refuseResource(`${kind} "${name}" of ${file} lacks ${what}`);

export const refuseResource = (problem: string): ConfigError =>
  new ConfigError('customize.resource', problem, { hint: 'correct the resource' });
