import { ConfigError, IntegrityError } from '../../base/errors.ts';
import {
  formatReference,
  parseImageConfig,
  parseReference,
  type Reference,
} from '../../registry/index.ts';
import { getComponent, type Release } from '../release/release.ts';
import { isAtLeast, isMinorVersion } from '../release/version.ts';

/** The registry server on the nodes: its image by digest, and how it is started. */
export type RegistryImageChoice = {
  readonly reference: Reference;
  /** True for OpenShift's `docker-registry`, whose entrypoint does not start the server. */
  readonly useDistributionEntrypoint: boolean;
};

export type RegistryImageOrigin =
  | { readonly kind: 'configured' | 'component'; readonly reference: Reference }
  /** The component of the newest release of this minor version. */
  | { readonly kind: 'newer-release'; readonly minor: string };

const REGISTRY_COMPONENT = 'docker-registry';
/** The first minor version whose component can serve the contents of the media. */
const FIRST_MINOR = '4.21';

/** Hint for naming a registry server if none can be found: one imperative sentence. */
export type Configure = `${'set' | 'name'} ${string}`;

const SERVER = 'an image of the distribution registry, such as docker.io/library/registry:2';
export const CONFIGURE: Configure = `set imageRegistry.uri to ${SERVER}`;
export const CONFIGURE_BY_OPTION: Configure = `name ${SERVER}, with --registry-image`;

/**
 * The configured image, else the payload's own. Before 4.21 that is only the cluster's internal registry,
 * which needs the cluster's API: the component of the newest 4.21 release takes its place.
 *
 * @throws ConfigError `release.no-registry-image` for a later release without the component,
 * `reference.malformed`
 */
export function chooseRegistryImage(options: {
  readonly uri?: string;
  readonly release: Release;
  readonly configure: Configure;
  /** True if no other release can be asked for. */
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

/** @param version `X.Y` or `X.Y.Z` */
export const needsNewerRelease = (version: string): boolean =>
  !isAtLeast(isMinorVersion(version) ? `${version}.0` : version, `${FIRST_MINOR}.0`);

/** The newer server's image is in no mirror of the older release. */
export const noRegistryOffline = (version: string, hint: Configure): ConfigError =>
  new ConfigError(
    'release.no-registry-image',
    `release ${version} cannot serve the media by itself, and only the mirror is used`,
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

export const describeNewerRelease = (version: string, minor: string): string =>
  `release ${version} has no registry that can serve the media, and the newest ${minor} release, whose registry can, cannot be resolved`;

export type StartConfig = {
  readonly architecture: string;
  /** Entrypoint and Cmd. */
  readonly command: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
};

/** @throws IntegrityError `registry-image.malformed` */
export function parseStartConfig(bytes: Uint8Array, reference: Reference): StartConfig {
  const { architecture = 'absent', config } = parseImageConfig(bytes, (problem) => {
    const message = `config of image ${formatReference(reference)}: ${problem}`;
    return new IntegrityError('registry-image.malformed', message);
  });
  return { architecture, command: [...config.Entrypoint, ...config.Cmd], labels: config.Labels };
}

/** Files of OpenShift's `docker-registry` from 4.21 on, all of them needed to start it. */
const DISTRIBUTION_FILES = ['usr/bin/distribution', 'etc/registry/config.yaml'];
const BIN = ['usr/bin', 'bin', 'usr/local/bin', 'usr/sbin'];
/** The distribution registry under the names that its packages and images give it. */
const SERVER_FILES = [
  'registry',
  ...BIN.flatMap((bin) =>
    ['registry', 'docker-registry', 'distribution'].map((n) => `${bin}/${n}`),
  ),
];
const OPENSSL_FILES = BIN.map((bin) => `${bin}/openssl`);

/** Files whose presence decides whether an image can serve the media. */
export const SERVER_IMAGE_FILES: readonly string[] = [
  ...new Set([...DISTRIBUTION_FILES, ...SERVER_FILES, ...OPENSSL_FILES]),
];

/** Hosts of 5.0 and later have no openssl, so the image makes the certificate of the registry. */
export const needsOpenssl = (version: string): boolean => isAtLeast(version, '5.0.0');

type Inspected = {
  readonly reference: Reference;
  readonly config: StartConfig;
  /** The members of SERVER_IMAGE_FILES that the image has. */
  readonly files: ReadonlySet<string>;
};

/**
 * True if an image must be started like OpenShift's `docker-registry`, by its labels or command and the files
 * that this needs.
 *
 * @throws ConfigError `registry-image.cluster-only` for the image of a release before 4.21,
 * `registry-image.no-command`, `registry-image.not-distribution`
 */
export function usesDistributionEntrypoint({ reference, config, files }: Inspected): boolean {
  const { command, labels } = config;
  const runsClusterRegistry = command.some((part) => part.includes('dockerregistry'));
  const isNamed = [labels['name'], labels['io.k8s.display-name']].some((label) =>
    label?.includes(REGISTRY_COMPONENT),
  );
  if (isNamed || runsClusterRegistry) {
    if (DISTRIBUTION_FILES.every((path) => files.has(path))) return true;
    if (runsClusterRegistry) {
      const missing = DISTRIBUTION_FILES.filter((path) => !files.has(path)).join(', ');
      throw refuse('cluster-only', reference, {
        reason: 'is an OpenShift registry that serves only inside a cluster',
        expected: DISTRIBUTION_FILES.join(', '),
        found: `no ${missing}`,
      });
    }
  }
  requireServer({ reference, config, files });
  return false;
}

/** Characters of a command. */
const MOST_SHOWN = 200;

function requireServer({ reference, config: { command }, files }: Inspected): void {
  if (command.length === 0) {
    throw refuse('no-command', reference, {
      reason: 'cannot be started: it has no entrypoint and no command',
      expected: 'an entrypoint or a command',
      found: 'neither',
    });
  }
  if (SERVER_FILES.some((path) => files.has(path))) return;
  throw refuse('not-distribution', reference, {
    reason: 'cannot serve the media read-only: it does not contain the distribution registry',
    expected: 'a program "registry", "docker-registry" or "distribution"',
    found: `command ${JSON.stringify(command.join(' ').slice(0, MOST_SHOWN))}`,
  });
}

/** @throws ConfigError `registry-image.no-openssl` if neither hosts nor image can make the certificate */
export function requireOpenssl(
  { reference, files }: Pick<Inspected, 'reference' | 'files'>,
  version: string,
): void {
  if (!needsOpenssl(version) || OPENSSL_FILES.some((path) => files.has(path))) return;
  throw refuse('no-openssl', reference, {
    reason: `has no openssl, and hosts of release ${version} have none to make the registry's certificate`,
    expected: OPENSSL_FILES[0] ?? '',
    found: 'no openssl',
  });
}

/** @throws ConfigError `registry-image.architecture` */
export function requireServerArchitecture(
  { reference, config: { architecture } }: Omit<Inspected, 'files'>,
  wanted: string,
): void {
  if (architecture === wanted) return;
  throw refuse('architecture', reference, {
    reason: `is for ${architecture}, but the hosts are ${wanted}`,
    expected: wanted,
    found: architecture,
  });
}

const refuse = (
  code: string,
  reference: Reference,
  { reason, expected, found }: Record<'reason' | 'expected' | 'found', string>,
): ConfigError =>
  new ConfigError(`registry-image.${code}`, `image ${formatReference(reference)} ${reason}`, {
    expected,
    found,
    hint: 'name an image of the distribution registry, or leave it out to use that of the release',
  });
