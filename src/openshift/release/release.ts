import type { Digest } from '../../base/digest.ts';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { describeValue } from '../../base/text/words.ts';
import { formatReference, isTag, parseReference, type Reference } from '../../registry/index.ts';
import type { RpmArchitecture } from './bundle.ts';
import type { AdminGates } from './gates.ts';
import type { ImagePolicy } from './image-policy.ts';
import type { ResourceDefinition } from './manifests.ts';
import { isVersion } from './version.ts';

/** An image of a release: `etcd`, `machine-os-images`, always by digest. */
type Component = { readonly name: string; readonly reference: Reference };

/** A release payload, as described by its image and two of its files. Plain JSON. */
export type Release = {
  readonly version: string;
  /**
   * Reference by digest, without a tag; the digest of the list if the payload has several
   * architectures.
   */
  readonly reference: Reference;
  readonly arch: RpmArchitecture;
  /** RFC 3339, UTC, whole seconds. */
  readonly created: string;
  /** Sorted by name, as in the payload. */
  readonly components: readonly Component[];
  readonly metadata: ReleaseMetadata;
  /** Kinds that the cluster version operator adds to a self-managed cluster. */
  readonly definitions: readonly ResourceDefinition[];
  /** Conditions that nodes set for images. */
  readonly imagePolicies: readonly ImagePolicy[];
  /** Reasons for which its clusters wait for an acknowledgement before they leave it, by key. */
  readonly adminGates: AdminGates;
  /** Absent if no signature was looked for. */
  readonly signature?: ReleaseSignature;
};

/** Result of checking whether a release is signed by a trusted key. Plain JSON. */
export type ReleaseSignature =
  | {
      readonly status: 'verified';
      /** Verified signatures of its source, base64, at least one. */
      readonly messages: readonly string[];
      /** Fingerprint of the key, upper-case hex. */
      readonly key: string;
      /** The signer's name for the release. */
      readonly identity: string;
      /** The place in which the signature was found. */
      readonly from: string;
    }
  | {
      /** A nightly or CI build, which is not signed, and the user accepts that. */
      readonly status: 'unsigned';
      /** The reason why it is not verified. */
      readonly problem: string;
    };

/** `release-manifests/release-metadata`. */
export type ReleaseMetadata = {
  readonly version: string;
  /** Versions that may be updated to this one. */
  readonly previous: readonly string[];
  /** `url` of the errata, `release.openshift.io/architecture`. */
  readonly metadata: Readonly<Record<string, string>>;
};

export type ImageReferences = {
  readonly version: string;
  readonly created?: string;
  readonly components: readonly Component[];
};

export const IMAGE_REFERENCES_PATH = 'release-manifests/image-references';
export const RELEASE_METADATA_PATH = 'release-manifests/release-metadata';

/**
 * Reads a payload's ImageStream.
 *
 * @throws IntegrityError `release.malformed` for another kind, a tag without image, an image that is
 * not by digest, a name that occurs twice.
 */
export function parseImageReferences(text: string): ImageReferences {
  const refuse = refuser(IMAGE_REFERENCES_PATH);
  const document = parseObject(text, refuse);
  const { kind, apiVersion } = document;
  if (kind !== 'ImageStream' || apiVersion !== 'image.openshift.io/v1') {
    refuse(
      `is ${describeValue(apiVersion)} ${describeValue(kind)}, not image.openshift.io/v1 ImageStream`,
    );
  }
  const metadata = objectOrEmpty(document['metadata']);
  const name = textOr(metadata['name']) ?? refuse('has no metadata.name');
  const version = parseVersion(name, refuse);
  const tags = objectOrEmpty(document['spec'])['tags'];
  if (!Array.isArray(tags) || tags.length === 0) return refuse('has no spec.tags');
  const components = tags.map((tag, index) => parseComponent(objectOrEmpty(tag), index, refuse));
  const seen = new Set<string>();
  const twice = components.find(({ name }) => seen.size === seen.add(name).size)?.name;
  if (twice !== undefined) refuse(`names component "${twice}" twice`);
  const created = textOr(metadata['creationTimestamp']);
  return { version, components, ...withoutUndefined({ created }) };
}

/** @throws IntegrityError `release.malformed` */
export function parseReleaseMetadata(text: string): ReleaseMetadata {
  const refuse = refuser(RELEASE_METADATA_PATH);
  const document = parseObject(text, refuse);
  if (document['kind'] !== 'cincinnati-metadata-v0') {
    refuse(`has kind "${describeValue(document['kind'])}", not "cincinnati-metadata-v0"`);
  }
  const previous = document['previous'] ?? [];
  if (!Array.isArray(previous)) return refuse('has a "previous" that is not an array');
  const version = parseVersion(document['version'] ?? refuse('has no version'), refuse);
  const pairs = Object.entries(objectOrEmpty(document['metadata']));
  return {
    version,
    previous: previous.map((one) => parseVersion(one, refuse)),
    metadata: Object.fromEntries(
      pairs.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
    ),
  };
}

/** Digest of the release image, which identifies a resolved release. */
export function digestOfRelease({ reference: { digest } }: Pick<Release, 'reference'>): Digest {
  if (digest === undefined) throw new TypeError('a resolved release has a digest');
  return digest;
}

/**
 * The image of a component.
 *
 * @throws IntegrityError `release.component-missing`
 */
export function getComponent(
  release: Pick<Release, 'version' | 'components'>,
  name: string,
  hint?: string,
): Reference {
  const found = release.components.find((component) => component.name === name);
  if (found) return found.reference;
  throw new IntegrityError(
    'release.component-missing',
    `release ${release.version} has no component "${name}"`,
    {
      expected: name,
      found: `${release.components.length} others`,
      ...withoutUndefined({ hint }),
    },
  );
}

type Refuse = (reason: string) => never;

const refuser =
  (path: string): Refuse =>
  (reason) => {
    throw new IntegrityError('release.malformed', `${path} ${reason}`);
  };

function parseComponent(tag: Record<string, unknown>, index: number, refuse: Refuse): Component {
  const name = textOr(tag['name']) ?? refuse(`has no name in spec.tags[${index}]`);
  const from = objectOrEmpty(tag['from']);
  const image = textOr(from['name']);
  if (from['kind'] !== 'DockerImage' || image === undefined) {
    return refuse(`has no image for component "${name}"`);
  }
  if (!isTag(name))
    return refuse(`names component ${JSON.stringify(name)}, which is not a valid tag`);
  const reference = parseImage(image, refuse);
  if (reference.digest !== undefined) return { name, reference };
  return refuse(`has image "${image}" for component "${name}", which is not by digest`);
}

function parseImage(image: string, refuse: Refuse): Reference {
  try {
    return parseReference(image);
  } catch (error) {
    if (error instanceof SealiftError) return refuse(`is wrong: ${error.message}`);
    throw error;
  }
}

/** Versions are used in tags, file names and scripts on the media. */
function parseVersion(version: unknown, refuse: Refuse): string {
  if (typeof version === 'string' && isVersion(version)) return version;
  return refuse(
    `has version ${JSON.stringify(describeValue(version))}, which is not a valid version`,
  );
}

function parseObject(text: string, refuse: Refuse): Record<string, unknown> {
  try {
    return objectOrEmpty(JSON.parse(text));
  } catch (error) {
    return refuse(`is not valid JSON: ${(error as Error).message}`);
  }
}

const textOr = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** The image config of a release payload (OCI image-spec config.md). */
type ReleaseConfig = {
  /** Architecture in Go's words. */
  readonly architecture: string;
  /** Label `io.openshift.release`. */
  readonly version?: string;
  readonly created?: string;
};

/** @throws IntegrityError `release.malformed` */
export function parseReleaseConfig(bytes: Uint8Array): ReleaseConfig {
  const document = parse(bytes);
  const { architecture, created } = document;
  if (typeof architecture !== 'string') throw malformed('names no architecture');
  const version = objectOrEmpty(objectOrEmpty(document['config'])['Labels'])[
    'io.openshift.release'
  ];
  return {
    architecture,
    ...(typeof version === 'string' && { version }),
    ...(typeof created === 'string' && { created }),
  };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    return objectOrEmpty(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch (cause) {
    throw malformed(`is not valid JSON: ${(cause as Error).message}`);
  }
}

const malformed = (reason: string): IntegrityError =>
  new IntegrityError('release.malformed', `config of the release image ${reason}`);

/** The description of a release for plans and media. */
export const describeRelease = ({ version, reference, arch }: Release) => ({
  version,
  reference: formatReference(reference),
  architecture: arch,
});

/** The signature of a release in plans and reports: without its messages. */
export type DescribedSignature = { readonly version: string } & (
  | Omit<Extract<ReleaseSignature, { status: 'verified' }>, 'messages'>
  | Extract<ReleaseSignature, { status: 'unsigned' }>
);

export const describeSignatures = (
  releases: readonly Pick<Release, 'version' | 'signature'>[],
): readonly DescribedSignature[] =>
  releases.flatMap(({ version, signature }): DescribedSignature[] => {
    if (!signature) return [];
    if (signature.status === 'unsigned') return [{ version, ...signature }];
    const { status, key, identity, from } = signature;
    return [{ version, status, key, identity, from }];
  });
