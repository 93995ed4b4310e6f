import { ConfigError } from '../../base/errors.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';
import { getComponent, type Release } from '../release/release-payload.ts';
import { isAtLeast } from '../release/version.ts';

export type RegistryImageChoice = {
  readonly reference: Reference;
  /** The payload's image does not start the server by itself; a user's does. */
  readonly useDistributionEntrypoint: boolean;
};

const COMPONENT = 'docker-registry';
/** The first release whose component can serve what is on the media. */
const FIRST_VERSION = '4.21.0';

/** Whether no release of this version, `X.Y` or `X.Y.Z`, can serve the media by its own registry. */
export const needsRegistryImage = (version: string): boolean =>
  !isAtLeast(/^\d+\.\d+$/.test(version) ? `${version}.0` : version, FIRST_VERSION);

/**
 * The registry server that runs on the nodes: the configured image, else the payload's own. Other
 * builders bring an image of their own for older releases; we ship none.
 *
 * @throws ConfigError `release.no-registry-image`, `reference.malformed`
 */
export function chooseRegistryImage(options: {
  readonly uri?: string;
  readonly release: Release;
}): RegistryImageChoice {
  const { uri, release } = options;
  if (uri !== undefined && uri !== '') {
    return { reference: parseReference(uri), useDistributionEntrypoint: false };
  }
  const hasComponent = release.components.some(({ name }) => name === COMPONENT);
  if (hasComponent && isAtLeast(release.version, FIRST_VERSION)) {
    return { reference: getComponent(release, COMPONENT), useDistributionEntrypoint: true };
  }
  throw new ConfigError(
    'release.no-registry-image',
    hasComponent
      ? `release ${release.version} is older than ${FIRST_VERSION}, the first whose own registry can serve the media`
      : `release ${release.version} has no component "${COMPONENT}" to serve the media`,
    {
      expected: `${FIRST_VERSION} or later, or imageRegistry.uri`,
      found: release.version,
      hint: 'set imageRegistry.uri to a registry server image, such as docker.io/library/registry:2',
    },
  );
}
