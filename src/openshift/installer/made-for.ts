import { IntegrityError } from '../../base/errors.ts';
import { decodeFileContent, type File, type IgnitionConfig } from '../../ignition/index.ts';
import { CLUSTER_IMAGE_SET, findReleaseImage, findScalar } from '../agent/live-system.ts';
import type { NodeRelease } from '../node/cluster.ts';

/** A file of the installer's output, and the names of the release in it. */
type Naming = {
  readonly path: string;
  readonly image: (text: Buffer) => string | undefined;
  readonly version?: (text: Buffer) => string | undefined;
};

/** Settings of the assisted service of a live system. */
export const SERVICE_ENVIRONMENT = '/usr/local/share/assisted-service/assisted-service.env';

const match =
  (pattern: RegExp) =>
  (text: Buffer): string | undefined =>
    pattern.exec(text.toString('utf8'))?.[1];

const NAMINGS: readonly Naming[] = [
  {
    path: CLUSTER_IMAGE_SET,
    image: findReleaseImage,
    version: (text) => /^openshift-(.+)$/.exec(findScalar(text, 'name') ?? '')?.[1],
  },
  { path: '/etc/assisted/agent-installer.env', image: match(/^RELEASE_IMAGE=(.+)$/m) },
  {
    path: SERVICE_ENVIRONMENT,
    image: match(/^RELEASE_IMAGES=.*"url":"([^"]+)"/m),
    version: match(/^RELEASE_IMAGES=.*"version":"([^"]+)"/m),
  },
  { path: '/usr/local/bin/release-image.sh', image: match(/podman inspect (\S+)/) },
  { path: '/usr/local/bin/release-image-download.sh', image: match(/^RELEASE_IMAGE=(\S+)/m) },
];

/**
 * Compares what the installer wrote with the release of the medium. An installer of another release
 * names an image that the medium does not carry, and then no host installs.
 *
 * @throws IntegrityError `installer.other-release`
 */
export function requireMadeFor({ storage }: IgnitionConfig, release: NodeRelease): void {
  for (const file of storage?.files ?? []) {
    const difference = findDifference(file, release);
    if (difference === undefined) continue;
    throw new IntegrityError(
      'installer.other-release',
      `the installer wrote another release into ${file.path} than the medium has`,
      {
        ...difference,
        hint: 'name the installer of this release in build.installer, or leave it out',
      },
    );
  }
}

type Difference = { readonly expected: string; readonly found: string };

/** The release image may have any name, but only the digest of the release. */
function findDifference(
  file: File,
  { digestReference, version }: NodeRelease,
): Difference | undefined {
  const naming = NAMINGS.find(({ path }) => path === file.path);
  const text = naming && decodeFileContent(file);
  if (text === undefined) return undefined;
  const image = naming?.image(text) ?? digestReference;
  const digest = digestReference.slice(digestReference.indexOf('@'));
  if (!image.endsWith(digest)) return { expected: digestReference, found: image };
  const told = naming?.version?.(text) ?? version;
  return told === version ? undefined : { expected: version, found: told };
}
