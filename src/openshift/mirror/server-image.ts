import { objectOrEmpty } from '../../base/lists.ts';
import { describeValue } from '../../base/text/words.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { formatReference, type Reference } from '../../registry/reference.ts';
import { isAtLeast } from '../release/version.ts';
import { REGISTRY_COMPONENT } from './registry-image.ts';

/** What an image's config says of how it is started (OCI image-spec config.md). */
export type StartConfig = {
  readonly architecture: string;
  /** Entrypoint and Cmd. */
  readonly command: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
};

/** @throws IntegrityError `registry-image.malformed` */
export function parseStartConfig(bytes: Uint8Array, reference: Reference): StartConfig {
  const document = parseObject(bytes, reference);
  const { Entrypoint, Cmd, Labels } = objectOrEmpty(document['config']);
  const labels = Object.entries(objectOrEmpty(Labels)).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value]] : [],
  );
  return {
    architecture: describeValue(document['architecture']),
    command: [Entrypoint, Cmd].flatMap((part) =>
      Array.isArray(part) ? part.map(describeValue) : [],
    ),
    labels: Object.fromEntries(labels) as Record<string, string>,
  };
}

function parseObject(bytes: Uint8Array, reference: Reference): Record<string, unknown> {
  try {
    return objectOrEmpty(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch (cause) {
    const name = formatReference(reference);
    throw new IntegrityError('registry-image.malformed', `config of image ${name} is not JSON`, {
      cause,
    });
  }
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

/** Whose presence decides whether an image can serve the media. */
export const SERVER_IMAGE_FILES: readonly string[] = [
  ...new Set([...DISTRIBUTION_FILES, ...SERVER_FILES, ...OPENSSL_FILES]),
];

/** Hosts of 5.0 and later have no openssl, so the image makes the certificate of the registry. */
export const needsOpenssl = (version: string): boolean => isAtLeast(version, '5.0.0');

type Inspected = {
  readonly reference: Reference;
  readonly config: StartConfig;
  /** Which of SERVER_IMAGE_FILES the image has. */
  readonly files: ReadonlySet<string>;
};

/**
 * Whether a configured image has to be started as OpenShift's `docker-registry`: by its labels or its
 * command, and the files that this takes.
 *
 * @throws ConfigError `registry-image.cluster-only` for that of a release before 4.21,
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

/**
 * @throws ConfigError `registry-image.no-openssl` where neither the hosts nor the image can make the
 * registry's certificate
 */
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
export function requireArchitecture(
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
