import { IntegrityError } from '../../base/errors.ts';
import { decodeFileContent, type File, type IgnitionConfig } from '../../ignition/index.ts';
import { CLUSTER_IMAGE_SET, findReleaseImage, findReleaseVersion } from '../agent/live-system.ts';
import type { NodeRelease } from '../node/cluster.ts';

type Naming = {
  readonly path: string;
  readonly images: (text: Buffer) => readonly string[];
  readonly versions?: (text: Buffer) => readonly string[];
};

/** The ClusterImageSet that our script gives to the assisted service. */
export const TOLD_IMAGE_SET = '/etc/assisted/cluster-image-set.yaml';

/** Settings of the assisted service of a live system. */
export const SERVICE_ENVIRONMENT = '/usr/local/share/assisted-service/assisted-service.env';

/** Everything that a pattern with the flag `g` finds: a later line may name another release than the first. */
const match =
  (pattern: RegExp) =>
  (text: Buffer): readonly string[] =>
    [...text.toString('utf8').matchAll(pattern)].map(([, name = '']) => name);

/** The values of a member of the releases that the assisted service knows, which are JSON in one line. */
const ofReleases =
  (member: string) =>
  (text: Buffer): readonly string[] =>
    match(/^RELEASE_IMAGES=(.*)$/gm)(text).flatMap((line) =>
      match(new RegExp(`"${member}":"([^"]+)"`, 'g'))(Buffer.from(line)),
    );

const listOf = (name: string | undefined): readonly string[] => (name === undefined ? [] : [name]);

const NAMINGS: readonly Naming[] = [
  {
    path: CLUSTER_IMAGE_SET,
    images: (text) => listOf(findReleaseImage(text)),
    versions: (text) => listOf(findReleaseVersion(text)),
  },
  { path: '/etc/assisted/agent-installer.env', images: match(/^RELEASE_IMAGE=(.+)$/gm) },
  { path: SERVICE_ENVIRONMENT, images: ofReleases('url'), versions: ofReleases('version') },
  { path: '/usr/local/bin/release-image.sh', images: match(/podman inspect ([^\s"'$]\S*)/g) },
  { path: '/usr/local/bin/release-image-download.sh', images: match(/^RELEASE_IMAGE=(\S+)/gm) },
  // Ours, which the service reads after those of the installer.
  {
    path: '/usr/local/bin/set-env-files.sh',
    images: match(/^readonly release_image='([^']+)'$/gm),
  },
  { path: TOLD_IMAGE_SET, images: (text) => listOf(findReleaseImage(text)) },
];

/**
 * An installer of another release names an image that the medium does not carry: no host installs.
 *
 * @throws IntegrityError `installer.other-release`
 */
export function requireMadeFor({ storage }: IgnitionConfig, release: NodeRelease): void {
  for (const file of storage?.files ?? []) {
    const difference = findDifference(file, release);
    if (difference === undefined) continue;
    throw new IntegrityError(
      'installer.other-release',
      `${file.path} names another release than the medium has`,
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
  const digest = digestReference.slice(digestReference.indexOf('@'));
  const image = naming?.images(text).find((name) => !name.endsWith(digest));
  if (image !== undefined) return { expected: digestReference, found: image };
  const other = naming?.versions?.(text).find((name) => name !== version);
  return other === undefined ? undefined : { expected: version, found: other };
}
