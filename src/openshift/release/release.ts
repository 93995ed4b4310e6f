import type { Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { findRepeated, withoutUndefined } from '../../base/lists.ts';
import {
  explainReference,
  formatReference,
  isTag,
  parseImageConfig,
  parseReference,
  type Reference,
} from '../../registry/index.ts';
import { decodeJson, GO_RULES, requireDecoded } from '../../shape/decode.ts';
import {
  defaulted,
  FREE,
  LEFT_OUT,
  list,
  mapping,
  oneOf,
  optional,
  record,
  refine,
  type Shape,
  TEXT,
  transform,
} from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
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
  /** By digest, without a tag; of the list if the payload has several architectures. */
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
      readonly from: string;
    }
  | {
      /** A nightly or CI build, which is not signed, and the user accepts that. */
      readonly status: 'unsigned';
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

/** Versions are used in tags, file names and scripts on the media. */
const VERSION = refine(TEXT, (text) =>
  isVersion(text) ? undefined : `${JSON.stringify(text)} is not a valid version`,
);

const PINNED = transform(refine(TEXT, explainUnpinned), parseReference);

const COMPONENT = record(
  {
    name: refine(TEXT, (name) =>
      isTag(name) ? undefined : `${JSON.stringify(name)} is not a valid tag`,
    ),
    from: record({ kind: oneOf('DockerImage'), name: PINNED }, LEFT_OUT),
  },
  LEFT_OUT,
);

const IMAGE_REFERENCES = record(
  {
    kind: oneOf('ImageStream'),
    apiVersion: oneOf('image.openshift.io/v1'),
    metadata: record({ name: VERSION, creationTimestamp: optional(TEXT) }, LEFT_OUT),
    spec: record({ tags: refine(list(COMPONENT), explainTags) }, LEFT_OUT),
  },
  LEFT_OUT,
);

const RELEASE_METADATA = record(
  {
    kind: oneOf('cincinnati-metadata-v0'),
    version: VERSION,
    previous: defaulted(list(VERSION), () => []),
    metadata: defaulted(mapping(FREE), () => ({})),
  },
  LEFT_OUT,
);

function explainUnpinned(image: string): string | undefined {
  const why = explainReference(image);
  if (why !== undefined) return why;
  const isPinned = parseReference(image).digest !== undefined;
  return isPinned ? undefined : `"${image}" is not a reference by digest`;
}

function explainTags(tags: readonly { readonly name: string }[]): string | undefined {
  const [twice] = findRepeated(tags.map(({ name }) => name));
  if (twice !== undefined) return `has component "${twice}" twice`;
  return tags.length === 0 ? 'is empty' : undefined;
}

/**
 * @throws IntegrityError `release.malformed` for another kind, a tag without image, an image that is
 * not by digest, a name that occurs twice.
 */
export function parseImageReferences(text: string): ImageReferences {
  const { metadata, spec } = readDocument(IMAGE_REFERENCES, text, IMAGE_REFERENCES_PATH);
  const components = spec.tags.map(({ name, from }) => ({ name, reference: from.name }));
  const created = metadata.creationTimestamp;
  return { version: metadata.name, components, ...withoutUndefined({ created }) };
}

/** @throws IntegrityError `release.malformed` */
export function parseReleaseMetadata(text: string): ReleaseMetadata {
  const read = readDocument(RELEASE_METADATA, text, RELEASE_METADATA_PATH);
  const texts = Object.entries(read.metadata).filter(
    (pair): pair is [string, string] => typeof pair[1] === 'string',
  );
  return {
    version: read.version,
    previous: read.previous,
    metadata: Object.fromEntries(texts),
  };
}

const readDocument = <T>(shape: Shape<T>, text: string, path: string): T =>
  requireDecoded(decodeJson(shape, text, GO_RULES), ([first]) =>
    malformed(`${path}: ${describeFinding(first, 'it')}`),
  );

const malformed = (message: string): IntegrityError =>
  new IntegrityError('release.malformed', message);

/** Identifies a resolved release. */
export function digestOfRelease({ reference: { digest } }: Pick<Release, 'reference'>): Digest {
  if (digest === undefined) throw new TypeError('a resolved release has a digest');
  return digest;
}

/** @throws IntegrityError `release.component-missing` */
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

type ReleaseConfig = {
  /** Architecture in Go's words. */
  readonly architecture: string;
  /** Label `io.openshift.release`. */
  readonly version?: string;
  readonly created?: string;
};

/** @throws IntegrityError `release.malformed` */
export function parseReleaseConfig(bytes: Uint8Array): ReleaseConfig {
  const refuse = (problem: string): IntegrityError =>
    malformed(`config of the release image: ${problem}`);
  const { architecture, created, config } = parseImageConfig(bytes, refuse);
  if (architecture === undefined) throw refuse('it names no architecture');
  const version = config.Labels['io.openshift.release'];
  return { architecture, ...withoutUndefined({ version, created }) };
}

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
