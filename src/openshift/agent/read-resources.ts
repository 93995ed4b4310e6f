import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { planExtraManifests } from '../node/manifests.ts';
import {
  isNamedBy,
  lacks,
  missingReference,
  nameOf,
  refuseResource,
  type Resource,
  createSelector,
  isRead,
  readHostNetworks,
} from './resources.ts';
import type { CustomValues } from './values.ts';

type Members = Readonly<Record<string, unknown>>;

/**
 * The values that custom resources represent, and the parts of them that have no place on a
 * medium.
 */
export type ValuesOfResources = {
  readonly values: CustomValues;
  readonly warnings: readonly string[];
};

/**
 * The values of a site in an InfraEnv and the resources that it refers to: its NMStateConfigs by
 * their labels, the Secret with its pull secret, the ClusterImageSet, and the ConfigMaps with
 * manifests for the cluster.
 *
 * @param options.hasPullSecret true if a pull secret is given otherwise, so that the Secret may be
 * missing
 * @throws ConfigError `customize.resource`, `manifest.malformed`, `manifest.duplicate`
 */
export function readResourceValues(
  resources: readonly Resource[],
  options: { readonly hasPullSecret: boolean },
): ValuesOfResources {
  const infraEnv = findOnly(resources, 'InfraEnv');
  const install = findOnly(resources, 'AgentClusterInstall');
  const networks = selectNetworks(resources, infraEnv);
  const manifests = readManifests(resources, { infraEnv, install });
  const hosts = readHostNetworks(networks.selected);
  const releaseImage = findReleaseImage(resources, install);
  return {
    values: {
      ...(infraEnv && readInfraEnv(infraEnv, resources, options)),
      ...(hosts.length > 0 && { hosts }),
      ...(manifests.length > 0 && { manifests }),
      ...withoutUndefined({ releaseImage }),
    },
    warnings: [
      ...resources
        .filter((resource) => !isRead(resource))
        .map((resource) => `${nameOf(resource)} has no place on the medium and is ignored`),
      ...networks.warnings,
      ...(infraEnv?.spec['mirrorRegistryRef'] === undefined
        ? []
        : ['spec.mirrorRegistryRef of the InfraEnv is ignored: the medium has its own mirrors']),
    ],
  };
}

function findOnly(resources: readonly Resource[], kind: string): Resource | undefined {
  const found = resources.filter((resource) => resource.kind === kind);
  if (found.length < 2) return found[0];
  throw refuseResource(
    `there are ${found.length} resources of kind ${kind}, but only one can be used: ${found.map(nameOf).join(', ')}`,
    'leave out all but one',
  );
}

type SelectedNetworks = {
  readonly selected: readonly Resource[];
  readonly warnings: readonly string[];
};

/**
 * All networks if no InfraEnv selects. A selector that matches none of the existing networks would
 * leave hosts without network.
 */
function selectNetworks(
  resources: readonly Resource[],
  infraEnv: Resource | undefined,
): SelectedNetworks {
  const all = resources.filter(({ kind }) => kind === 'NMStateConfig');
  if (!infraEnv) return { selected: all, warnings: [] };
  const selector = objectOrEmpty(infraEnv.spec['nmStateConfigLabelSelector']);
  const matches = createSelector(selector, nameOf(infraEnv));
  const selected = all.filter(
    (each) => matches(each) && isNamedBy(infraEnv, each.kind, each.name)(each),
  );
  const isSelecting = Object.keys(selector).length > 0;
  if (isSelecting && all.length > 0 && selected.length === 0) {
    throw refuseResource(
      `nmStateConfigLabelSelector of ${nameOf(infraEnv)} selects none of ${all.map(nameOf).join(', ')}: ` +
        `it wants ${JSON.stringify(selector)}, but found ${all.map(({ labels }) => JSON.stringify(labels)).join(', ')}`,
      'give both the same labels and the same namespace',
    );
  }
  const left = all.filter((each) => !selected.includes(each));
  return {
    selected,
    warnings: [
      ...left.map((each) => `${nameOf(each)} is not selected by the InfraEnv and is ignored`),
      ...(isSelecting && all.length === 0
        ? [`${nameOf(infraEnv)} selects NMStateConfigs, but the resources have none`]
        : []),
    ],
  };
}

/** The release image that the AgentClusterInstall names, or the only one. */
function findReleaseImage(
  resources: readonly Resource[],
  install: Resource | undefined,
): string | undefined {
  const sets = resources.filter(({ kind }) => kind === 'ClusterImageSet');
  const { name } = objectOrEmpty(install?.spec['imageSetRef']);
  const set =
    sets.length > 0 && name !== undefined
      ? sets.find((each) => each.name === name)
      : findOnly(sets, 'ClusterImageSet');
  if (sets.length === 0) return undefined;
  if (!set)
    throw missingReference(
      { kind: 'ClusterImageSet', name },
      'imageSetRef of the AgentClusterInstall',
    );
  const { releaseImage } = set.spec;
  if (typeof releaseImage === 'string') return releaseImage;
  throw lacks(set, 'spec.releaseImage');
}

const MANIFEST = /\.(?:json|ya?ml)$/;

type Parents = {
  readonly infraEnv: Resource | undefined;
  readonly install: Resource | undefined;
};

/**
 * The manifests that an AgentClusterInstall names; if there is no AgentClusterInstall, the
 * manifests of every ConfigMap except the mirrors' one.
 */
function readManifests(
  resources: readonly Resource[],
  { infraEnv, install }: Parents,
): NonNullable<CustomValues['manifests']> {
  const { name: mirrors } = objectOrEmpty(infraEnv?.spec['mirrorRegistryRef']);
  const maps = install
    ? namesOf(install.spec).map((name) => {
        const map = resources.find(isNamedBy(install, 'ConfigMap', name));
        if (map) return map;
        throw missingReference(
          { kind: 'ConfigMap', name },
          `manifestsConfigMapRefs of ${nameOf(install)}`,
        );
      })
    : resources.filter(({ kind, name }) => kind === 'ConfigMap' && name !== mirrors);
  const files = maps.flatMap((map) =>
    Object.entries(objectOrEmpty(map.value['data']))
      .filter(([name]) => MANIFEST.test(name) && !name.includes('/'))
      .map(([name, text]) => {
        if (typeof text === 'string') return { name, text };
        throw refuseResource(`data "${name}" of ${nameOf(map)} is not a string`);
      }),
  );
  return planExtraManifests(files, { useDefaultSourceNames: false });
}

function namesOf({ manifestsConfigMapRefs, manifestsConfigMapRef }: Members): readonly string[] {
  const all: readonly unknown[] = Array.isArray(manifestsConfigMapRefs)
    ? manifestsConfigMapRefs
    : [];
  return [...all, ...(manifestsConfigMapRef === undefined ? [] : [manifestsConfigMapRef])].map(
    (reference) => String(objectOrEmpty(reference)['name']),
  );
}

/** Members that values represent; all others stay in the InfraEnv unchanged. */
const STOOD_FOR = [
  'sshAuthorizedKey',
  'pullSecretRef',
  'proxy',
  'additionalNTPSources',
  'ntpSources',
  'additionalTrustBundle',
  'ignitionConfigOverride',
  'kernelArguments',
  'nmStateConfigLabelSelector',
  'mirrorRegistryRef',
  'imageType',
  'clusterRef',
];

/**
 * The values in an InfraEnv, and in the Secret that it names.
 *
 * @throws ConfigError `customize.resource`
 */
function readInfraEnv(
  infraEnv: Resource,
  resources: readonly Resource[],
  options: { readonly hasPullSecret: boolean },
): CustomValues {
  const { spec, value } = infraEnv;
  requireTypes(infraEnv);
  const { name, namespace } = objectOrEmpty(value['metadata']);
  const others = Object.entries(spec).filter(([member]) => !STOOD_FOR.includes(member));
  const ntpSources = listTexts(spec['ntpSources'] ?? spec['additionalNTPSources']);
  const { proxy, kernelArguments } = spec;
  return {
    ...withoutUndefined({
      sshKeys: textOf(spec['sshAuthorizedKey'])
        ?.split(/\r?\n/)
        .filter((line) => line.trim() !== ''),
      pullSecret: options.hasPullSecret ? undefined : findPullSecret(infraEnv, resources),
      proxy: proxy === undefined ? undefined : objectOrEmpty(proxy),
      ntpSources: ntpSources.length === 0 ? undefined : ntpSources,
      trustBundle: textOf(spec['additionalTrustBundle']),
      ignitionOverride: textOf(spec['ignitionConfigOverride']),
      kargs: kernelArguments === undefined ? undefined : readKargs(kernelArguments),
    }),
    infraEnv: {
      metadata: withoutUndefined({ name, namespace }),
      spec: Object.fromEntries(others),
    },
  };
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = (value: unknown): boolean => Array.isArray(value);

/**
 * Types that the API gives to members that are read: a member of another type would be lost
 * without a message.
 */
const TYPES: Readonly<Record<string, readonly [what: string, test: (value: unknown) => boolean]>> =
  {
    sshAuthorizedKey: ['a string', isText],
    additionalTrustBundle: ['a string', isText],
    ignitionConfigOverride: ['a string', isText],
    pullSecretRef: ['an object', isObject],
    proxy: ['an object', isObject],
    nmStateConfigLabelSelector: ['an object', isObject],
    additionalNTPSources: ['a list', isList],
    ntpSources: ['a list', isList],
    kernelArguments: ['a list', isList],
  };

function requireTypes(infraEnv: Resource): void {
  const { spec } = infraEnv;
  for (const [member, [what, test]] of Object.entries(TYPES)) {
    if (spec[member] === undefined || spec[member] === null || test(spec[member])) continue;
    throw refuseResource(`spec.${member} of ${nameOf(infraEnv)} is not ${what}`);
  }
  const { ntpSources, additionalNTPSources } = spec;
  if (ntpSources === undefined || additionalNTPSources === undefined) return;
  throw refuseResource(
    `${nameOf(infraEnv)} has both spec.ntpSources and spec.additionalNTPSources`,
  );
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

const listTexts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(String) : [];

const SECRET_KEY = '.dockerconfigjson';

function findPullSecret(infraEnv: Resource, resources: readonly Resource[]): string | undefined {
  const { pullSecretRef } = infraEnv.spec;
  if (pullSecretRef === undefined) return undefined;
  const { name } = objectOrEmpty(pullSecretRef);
  const secret = resources.find(isNamedBy(infraEnv, 'Secret', name));
  if (!secret) {
    const where = `pullSecretRef of ${nameOf(infraEnv)}`;
    throw missingReference(
      { kind: 'Secret', name },
      where,
      'add it to the files, or give --pull-secret',
    );
  }
  const { data, stringData } = secret.value;
  const plain = objectOrEmpty(stringData)[SECRET_KEY];
  if (typeof plain === 'string') return plain;
  const encoded = objectOrEmpty(data)[SECRET_KEY];
  if (typeof encoded !== 'string') throw lacks(secret, SECRET_KEY);
  const text = encoded.replaceAll(/\s/g, '');
  if (/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) {
    return Buffer.from(text, 'base64').toString('utf8');
  }
  throw refuseResource(`data of ${nameOf(secret)} is not base64`, 'encode it, or use stringData');
}

function readKargs(value: unknown): NonNullable<CustomValues['kargs']> {
  const edits = (Array.isArray(value) ? value : []).map((each) => {
    const { operation, value: karg } = objectOrEmpty(each);
    if (typeof karg === 'string' && karg.trim() === '')
      throw refuseResource('kernelArguments of the InfraEnv has an empty value');
    if (typeof karg === 'string' && (operation === 'append' || operation === 'delete')) {
      return { operation, karg };
    }
    throw refuseResource(
      `kernelArguments of the InfraEnv has the operation ${JSON.stringify(operation)}, but only append and delete are known`,
    );
  });
  const of = (wanted: string): readonly string[] =>
    edits.filter(({ operation }) => operation === wanted).map(({ karg }) => karg);
  return { append: of('append'), remove: of('delete') };
}
