import { objectOrEmpty } from '../../base/lists.ts';
import { unreadableManifest, type PayloadManifest } from './payload-manifests.ts';

/** A kind that the cluster version operator adds to a self-managed cluster. Plain JSON. */
export type ResourceDefinition = {
  readonly group: string;
  readonly kind: string;
  /** Served versions. */
  readonly versions: readonly string[];
  /** Feature sets of the clusters that have it; absent: every cluster. */
  readonly featureSets?: readonly string[];
};

/**
 * The definitions among a payload's manifests. A kind occurs once for each file, and there may be a file
 * for each feature set.
 *
 * @throws IntegrityError `release.manifest-unreadable`
 */
export const readDefinitions = (
  manifests: readonly PayloadManifest[],
): readonly ResourceDefinition[] =>
  manifests.flatMap(({ path, document, featureSets }) => {
    if (document['kind'] !== DEFINITION) return [];
    const definition = readDefinition(document);
    if (definition === undefined) {
      throw unreadableManifest(path, 'it has no spec.group, spec.names.kind or spec.versions');
    }
    return [{ ...definition, ...(featureSets && { featureSets }) }];
  });

/** What a manifest defines, whoever gets it; undefined for a manifest of another kind. */
export function readDefinition(manifest: unknown): ResourceDefinition | undefined {
  const { kind, spec } = objectOrEmpty(manifest);
  if (kind !== DEFINITION) return undefined;
  const { group, names, versions } = objectOrEmpty(spec);
  const defined = objectOrEmpty(names)['kind'];
  if (typeof group !== 'string' || typeof defined !== 'string' || !Array.isArray(versions)) {
    return undefined;
  }
  const served = versions.map(objectOrEmpty).filter((version) => version['served'] === true);
  const named = served.map(({ name }) => name).filter((name) => typeof name === 'string');
  return { group, kind: defined, versions: named };
}

/** Whether a cluster has it that asks for no feature set. */
export const isInDefaultSet = ({ featureSets }: Pick<ResourceDefinition, 'featureSets'>): boolean =>
  featureSets === undefined || featureSets.includes('Default') || featureSets.includes('');

export const DEFINITION = 'CustomResourceDefinition';
