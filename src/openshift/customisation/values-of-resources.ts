import { objectOrEmpty, withoutUndefined } from '../../base/members.ts';
import { planExtraManifests } from '../node/manifests/extra-manifests.ts';
import type { CustomValues } from './custom-values.ts';
import { readHostNetworks, refuseResource, type Resource } from './resources.ts';

type Members = Readonly<Record<string, unknown>>;

/** The values that custom resources stand for, and what of them has no place on a medium. */
export type ValuesOfResources = {
  readonly values: CustomValues;
  readonly warnings: readonly string[];
};

/** Kinds that are read, all else is named in a warning. */
const READ = [
  'InfraEnv',
  'NMStateConfig',
  'Secret',
  'ConfigMap',
  'ClusterImageSet',
  'AgentClusterInstall',
];

/**
 * What an InfraEnv and the resources that it refers to say of a site: its NMStateConfigs by their labels, the Secret
 * with its pull secret, the ClusterImageSet, and the ConfigMaps with manifests for the cluster.
 *
 * @throws ConfigError `customize.resource`, `manifest.malformed`, `manifest.duplicate`
 */
export function readResourceValues(resources: readonly Resource[]): ValuesOfResources {
  const infraEnvs = resources.filter(({ kind }) => kind === 'InfraEnv');
  const [infraEnv, second] = infraEnvs;
  if (second) throw refuseResource(`there are ${infraEnvs.length} InfraEnvs, and one is read`);
  const images = resources.filter(({ kind }) => kind === 'ClusterImageSet');
  const hosts = readHostNetworks(resources, labelsOf(infraEnv));
  const manifests = readManifests(resources, infraEnv);
  const { releaseImage } = images[0]?.spec ?? {};
  return {
    values: {
      ...(infraEnv && readInfraEnv(infraEnv, resources)),
      ...(hosts.length > 0 && { hosts }),
      ...(manifests.length > 0 && { manifests }),
      ...(typeof releaseImage === 'string' && { releaseImage }),
    },
    warnings: [
      ...resources
        .filter(({ kind }) => !READ.includes(kind))
        .map(({ kind, name }) => `${kind} "${name}" has no place on the medium and is ignored`),
      ...(infraEnv?.spec['mirrorRegistryRef'] === undefined
        ? []
        : ['spec.mirrorRegistryRef of the InfraEnv is ignored: the medium has its own mirrors']),
    ],
  };
}

/** Absent: no InfraEnv selects, and all are taken. One that selects nothing takes none. */
function labelsOf(infraEnv: Resource | undefined): Members | undefined {
  if (!infraEnv) return undefined;
  const { matchLabels } = objectOrEmpty(infraEnv.spec['nmStateConfigLabelSelector']);
  return matchLabels === undefined ? { [NO_LABEL]: true } : objectOrEmpty(matchLabels);
}

const NO_LABEL = '';

/** Members that values stand for; all others stay in the InfraEnv as they are. */
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

function readInfraEnv({ spec, value }: Resource, resources: readonly Resource[]): CustomValues {
  const { name, namespace } = objectOrEmpty(value['metadata']);
  const others = Object.entries(spec).filter(([member]) => !STOOD_FOR.includes(member));
  const ntpSources = listTexts(spec['ntpSources'] ?? spec['additionalNTPSources']);
  const { pullSecretRef, proxy, kernelArguments } = spec;
  return {
    ...withoutUndefined({
      sshKeys: textOf(spec['sshAuthorizedKey'])?.split('\n'),
      pullSecret:
        pullSecretRef === undefined ? undefined : findPullSecret(pullSecretRef, resources),
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

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

const listTexts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(String) : [];

/** Undefined where no document has it: it is then given otherwise, or stays as the medium has it. */
function findPullSecret(reference: unknown, resources: readonly Resource[]): string | undefined {
  const { name } = objectOrEmpty(reference);
  const secret = resources.find((each) => each.kind === 'Secret' && each.name === name);
  if (!secret) return undefined;
  const { data, stringData } = secret.value;
  const plain = objectOrEmpty(stringData)['.dockerconfigjson'];
  if (typeof plain === 'string') return plain;
  const encoded = objectOrEmpty(data)['.dockerconfigjson'];
  if (typeof encoded === 'string') return Buffer.from(encoded, 'base64').toString('utf8');
  throw refuseResource(`Secret "${secret.name}" of ${secret.file} lacks .dockerconfigjson`);
}

function readKargs(value: unknown): NonNullable<CustomValues['kargs']> {
  const edits = (Array.isArray(value) ? value : []).map((each) => {
    const { operation, value: karg } = objectOrEmpty(each);
    if (typeof karg === 'string' && (operation === 'append' || operation === 'delete')) {
      return { operation, karg };
    }
    throw refuseResource(
      `kernelArguments of the InfraEnv has the operation ${JSON.stringify(operation)}, and append and delete are known`,
    );
  });
  const of = (wanted: string): readonly string[] =>
    edits.filter(({ operation }) => operation === wanted).map(({ karg }) => karg);
  return { append: of('append'), remove: of('delete') };
}

const MANIFEST = /\.(?:json|ya?ml)$/;

/** Those that an AgentClusterInstall names; where there is none, of every ConfigMap but that of the mirrors. */
function readManifests(
  resources: readonly Resource[],
  infraEnv: Resource | undefined,
): NonNullable<CustomValues['manifests']> {
  const install = resources.find(({ kind }) => kind === 'AgentClusterInstall');
  const named = install && namesOf(install.spec);
  const { name: mirrors } = objectOrEmpty(infraEnv?.spec['mirrorRegistryRef']);
  const maps = resources
    .filter(({ kind, name }) => kind === 'ConfigMap' && name !== mirrors)
    .filter(({ name }) => named?.includes(name) ?? true);
  const missing = named?.find((name) => !maps.some((map) => map.name === name));
  if (missing !== undefined)
    throw refuseResource(`ConfigMap "${missing}" is not among the resources`);
  const files = maps.flatMap(({ value }) =>
    Object.entries(objectOrEmpty(value['data']))
      .filter(([name]) => MANIFEST.test(name) && !name.includes('/'))
      .map(([name, text]) => ({ name, text: String(text) })),
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
