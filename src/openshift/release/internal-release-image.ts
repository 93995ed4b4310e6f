import { ConfigError } from '../../base/errors.ts';
import { isInDefaultSet, type ResourceDefinition } from './resource-definitions.ts';

/** How a payload serves a kind of the machine config operator. */
export type ServedKind = {
  readonly version: 'v1' | 'v1alpha1';
  /** Clusters have it only with feature set TechPreviewNoUpgrade, and such clusters cannot be upgraded. */
  readonly isPreview: boolean;
};

export const MACHINE_CONFIG_GROUP = 'machineconfiguration.openshift.io';
export const INTERNAL_RELEASE_IMAGE = 'InternalReleaseImage';
export const PINNED_IMAGE_SET = 'PinnedImageSet';

/**
 * What a payload says of the object that hands the registry of the media to the machine config
 * operator. Undefined where it serves none, as before 4.21.
 */
export const findInternalReleaseImage = (
  definitions: readonly ResourceDefinition[],
): ServedKind | undefined => findServedKind(definitions, INTERNAL_RELEASE_IMAGE);

/**
 * By which version a payload serves a kind of the machine config operator: its definitions decide,
 * because releases of one minor version differ.
 */
export function findServedKind(
  definitions: readonly ResourceDefinition[],
  wanted: string,
): ServedKind | undefined {
  const found = definitions.filter(
    ({ group, kind }) => group === MACHINE_CONFIG_GROUP && kind === wanted,
  );
  const usual = found.filter(isInDefaultSet);
  const isPreview = usual.length === 0;
  const served = new Set((isPreview ? found : usual).flatMap(({ versions }) => versions));
  const version = (['v1', 'v1alpha1'] as const).find((name) => served.has(name));
  return version && { version, isPreview };
}

/**
 * Whether installed hosts go without the registry of the media, because the cluster's own takes over:
 * what the configuration says, else whether every cluster of this release has one.
 *
 * @throws ConfigError `release.no-internal-registry` when hosts would have neither
 */
export function skipsLocalRegistry(
  release: { readonly version: string; readonly definitions: readonly ResourceDefinition[] },
  wanted: { readonly interactive: boolean; readonly skipLocalRegistry?: boolean },
): boolean {
  const { interactive, skipLocalRegistry } = wanted;
  const served = interactive ? findInternalReleaseImage(release.definitions) : undefined;
  if (skipLocalRegistry === undefined) return served?.isPreview === false;
  if (skipLocalRegistry && interactive && served === undefined) {
    throw new ConfigError(
      'release.no-internal-registry',
      `skipLocalRegistry is set, but release ${release.version} has no registry of its own: its payload does not define ${INTERNAL_RELEASE_IMAGE}`,
      {
        expected: `${INTERNAL_RELEASE_IMAGE} of ${MACHINE_CONFIG_GROUP} in the payload`,
        found: 'none',
        hint: 'remove skipLocalRegistry, or take release 4.22 or later',
      },
    );
  }
  return skipLocalRegistry;
}
