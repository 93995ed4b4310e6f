import { ConfigError } from '../../base/errors.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';
import { getComponent, type Release } from '../release/release-payload.ts';
import { isAtLeast } from '../release/version.ts';

/** The registry server on the nodes: its image by digest, and how it is started. */
export type RegistryImageChoice = {
  readonly reference: Reference;
  /** OpenShift's `docker-registry` does not start the server by itself. */
  readonly useDistributionEntrypoint: boolean;
};

/** Where the registry server comes from. */
export type RegistryImageOrigin =
  | { readonly kind: 'configured' | 'component'; readonly reference: Reference }
  /** The component of the newest release of this minor version. */
  | { readonly kind: 'newer-release'; readonly minor: string };

export const REGISTRY_COMPONENT = 'docker-registry';
/** The first minor version whose component can serve what is on the media. */
const FIRST_MINOR = '4.21';

/** How a registry server is named where none can be found: one imperative sentence. */
export type Configure = `${'set' | 'name'} ${string}`;

const SERVER = 'an image of the distribution registry, such as docker.io/library/registry:2';
export const CONFIGURE: Configure = `set imageRegistry.uri to ${SERVER}`;
export const CONFIGURE_BY_OPTION: Configure = `name ${SERVER}, with --registry-image`;

/**
 * The registry server that runs on the nodes: the configured image, else the payload's own. Before
 * 4.21 that is only the cluster's internal registry, which needs the cluster's API; then the
 * component of the newest 4.21 release of the same architecture takes its place.
 *
 * @throws ConfigError `release.no-registry-image` for a later release without the component,
 * `reference.malformed`
 */
export function chooseRegistryImage(options: {
  readonly uri?: string;
  readonly release: Release;
  readonly configure: Configure;
  /** Whether no other release can be asked for. */
  readonly isOffline?: boolean;
}): RegistryImageOrigin {
  const { uri, release, configure, isOffline = false } = options;
  if (uri !== undefined && uri !== '') {
    return { kind: 'configured', reference: parseReference(uri) };
  }
  if (needsNewerRelease(release.version)) {
    if (isOffline) throw noRegistryOffline(release.version, configure);
    return { kind: 'newer-release', minor: FIRST_MINOR };
  }
  return { kind: 'component', reference: getRegistryComponent(release, configure) };
}

/** Whether a release of this version, `X.Y` or `X.Y.Z`, has no registry that could serve the media. */
export const needsNewerRelease = (version: string): boolean =>
  !isAtLeast(/^\d+\.\d+$/.test(version) ? `${version}.0` : version, `${FIRST_MINOR}.0`);

/** What stands in for the registry server of an older release is in no mirror of that release. */
export const noRegistryOffline = (version: string, hint: Configure): ConfigError =>
  new ConfigError(
    'release.no-registry-image',
    `release ${version} cannot serve the media by itself, and nothing but the mirror is asked`,
    { expected: `${FIRST_MINOR} or later, or an image of the mirror`, found: version, hint },
  );

/** @throws ConfigError `release.no-registry-image` */
export function getRegistryComponent(release: Release, hint: Configure): Reference {
  if (release.components.some(({ name }) => name === REGISTRY_COMPONENT)) {
    return getComponent(release, REGISTRY_COMPONENT);
  }
  throw new ConfigError(
    'release.no-registry-image',
    `release ${release.version} has no component "${REGISTRY_COMPONENT}" to serve the media`,
    { expected: REGISTRY_COMPONENT, found: `${release.components.length} others`, hint },
  );
}

/** What is said where the newer release cannot be resolved. */
export const describeNewerRelease = (version: string, minor: string): string =>
  `release ${version} has no registry that can serve the media, and the newest ${minor} release, whose registry can, is not resolved`;
