import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { rememberSecret } from '../../base/text/redact.ts';
import { planExtraManifests } from '../node/manifests.ts';
import { toRpmName } from '../release/bundle.ts';
import { WITHOUT_EFFECT } from './agent-manifests.ts';
import { readHosts } from './bare-metal.ts';
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
import { explainUnusable, requireUsable, requireValue } from './unusable.ts';
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
  const selected = readHostNetworks(networks.selected);
  const hosts = readHosts(resources);
  const releaseImage = findReleaseImage(resources, install);
  return {
    values: {
      ...(infraEnv && readInfraEnv(infraEnv, resources, options)),
      ...(selected.length > 0 && { hosts: selected }),
      ...(hosts.hostnames.length > 0 && { hostnames: hosts.hostnames }),
      ...(manifests.length > 0 && { manifests }),
      ...withoutUndefined({ releaseImage }),
    },
    warnings: [
      ...resources
        .filter((resource) => !isRead(resource))
        .map((resource) => `${nameOf(resource)} has no place on the medium and is ignored`),
      ...networks.warnings,
      ...(infraEnv ? warnOfInfraEnv(infraEnv) : []),
      ...(install ? warnOfInstall(install) : []),
      ...hosts.warnings,
    ],
  };
}

function warnOfInfraEnv({ spec }: Resource): readonly string[] {
  return [
    ...(spec['mirrorRegistryRef'] === undefined
      ? []
      : ['spec.mirrorRegistryRef of the InfraEnv is ignored: the medium has its own mirrors']),
    ...warnOfMembers(
      'InfraEnv',
      Object.keys(spec).filter((member) => WITHOUT_EFFECT.includes(member)),
    ),
    ...(spec['ntpSources'] === undefined
      ? []
      : [
          'spec.ntpSources of the InfraEnv needs a release that knows exclusive time servers: others ignore them',
        ]),
  ];
}

/** Members of an AgentClusterInstall that are read; the web interface of the installer asks for all others. */
const OF_INSTALL = ['imageSetRef', 'manifestsConfigMapRef', 'manifestsConfigMapRefs'];

const warnOfInstall = ({ spec }: Resource): readonly string[] =>
  warnOfMembers(
    'AgentClusterInstall',
    Object.keys(spec).filter((member) => !OF_INSTALL.includes(member)),
  );

function warnOfMembers(kind: string, members: readonly string[]): readonly string[] {
  if (members.length === 0) return [];
  const names = members.map((member) => `spec.${member}`).join(', ');
  return [
    `${names} of the ${kind} ${members.length === 1 ? 'has' : 'have'} no effect on the medium`,
  ];
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
  'proxy',
  'additionalNTPSources',
  'ntpSources',
  'additionalTrustBundle',
  'ignitionConfigOverride',
  'mirrorRegistryRef',
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
  requireOneKindOfServers(infraEnv);
  requireUsable(infraEnv);
  const { proxy, kernelArguments } = spec;
  return {
    ...withoutUndefined({
      sshKeys: textOf(spec['sshAuthorizedKey'])
        ?.split(/\r?\n/)
        .filter((line) => line.trim() !== ''),
      pullSecret: options.hasPullSecret ? undefined : findPullSecret(infraEnv, resources),
      proxy: proxy === undefined ? undefined : objectOrEmpty(proxy),
      ntpSources: listTexts(spec['additionalNTPSources']),
      exclusiveNtpSources: listTexts(spec['ntpSources']),
      trustBundle: textOf(spec['additionalTrustBundle']),
      ignitionOverride: textOf(spec['ignitionConfigOverride']),
      kargs: kernelArguments === undefined ? undefined : readKargs(kernelArguments),
    }),
    infraEnv: keepInfraEnv(value),
  };
}

/** An InfraEnv with the name that RPM has for its architecture, without members that values represent. */
function keepInfraEnv(value: Members): NonNullable<CustomValues['infraEnv']> {
  const { cpuArchitecture, ...spec } = objectOrEmpty(value['spec']);
  const others = Object.entries(spec).filter(([member]) => !STOOD_FOR.includes(member));
  const name = typeof cpuArchitecture === 'string' ? toRpmName(cpuArchitecture) : undefined;
  return {
    metadata: objectOrEmpty(value['metadata']),
    spec: { ...withoutUndefined({ cpuArchitecture: name }), ...Object.fromEntries(others) },
  };
}

function requireOneKindOfServers(infraEnv: Resource): void {
  const { ntpSources, additionalNTPSources } = infraEnv.spec;
  if (ntpSources === undefined || additionalNTPSources === undefined) return;
  throw refuseResource(
    `${nameOf(infraEnv)} has both spec.ntpSources and spec.additionalNTPSources`,
  );
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

const listTexts = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.length > 0 ? value.map(String) : undefined;

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
  const encoded = objectOrEmpty(data)[SECRET_KEY];
  const member = typeof plain === 'string' ? 'stringData' : 'data';
  if (typeof plain !== 'string' && typeof encoded !== 'string') throw lacks(secret, SECRET_KEY);
  const text =
    typeof plain === 'string' ? plain : Buffer.from(String(encoded), 'base64').toString('utf8');
  rememberSecret(text);
  const explain = explainUnusable.pullSecret;
  requireValue(secret, `${member}.${SECRET_KEY}`, { value: text, explain });
  return text;
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
