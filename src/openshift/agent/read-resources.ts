import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { explainReference } from '../../registry/index.ts';
import { planExtraManifests } from '../node/manifests.ts';
import { readHosts } from './bare-metal.ts';
import { readInfraEnv, warnOfInfraEnv, warnOfMembers } from './infra-env.ts';
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
import { requireValue } from './unusable.ts';
import type { CustomValues } from './values.ts';

type Members = Readonly<Record<string, unknown>>;

/** Parts of the resources that have no place on a medium are warnings. */
export type ValuesOfResources = {
  readonly values: CustomValues;
  readonly warnings: readonly string[];
};

/**
 * The values of a site in an InfraEnv, and in the NMStateConfigs, Secret, ClusterImageSet and ConfigMaps that
 * it refers to.
 *
 * @param options.hasPullSecret true if a pull secret is given otherwise: the Secret may be missing
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
      ...withoutUndefined({ installOverrides: hosts.installOverrides }),
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

/** Members of an AgentClusterInstall that are read; the web interface of the installer asks for all others. */
const OF_INSTALL = ['imageSetRef', 'manifestsConfigMapRef', 'manifestsConfigMapRefs'];

const warnOfInstall = ({ spec }: Resource): readonly string[] =>
  warnOfMembers(
    'AgentClusterInstall',
    Object.keys(spec).filter((member) => !OF_INSTALL.includes(member)),
  );

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

/** All networks if no InfraEnv selects. A selector without a match would leave hosts without network. */
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
  const taken = new Set(selected);
  const left = all.filter((each) => !taken.has(each));
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
  if (typeof releaseImage !== 'string') throw lacks(set, 'spec.releaseImage');
  requireValue(set, 'spec.releaseImage', { value: releaseImage, explain: explainReference });
  return releaseImage;
}

const MANIFEST = /\.(?:json|ya?ml)$/;

type Parents = {
  readonly infraEnv: Resource | undefined;
  readonly install: Resource | undefined;
};

/** Without an AgentClusterInstall, the manifests of every ConfigMap except the mirrors' one. */
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
