import { isForeignDigest, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { decode, decodeJson, GO_RULES, requireDecoded, type Decoded } from '../shape/decode.ts';
import {
  COUNT,
  defaulted,
  DIGEST,
  FREE,
  LEFT_OUT,
  list,
  mapping,
  optional,
  record,
  TEXT,
  type TypeOf,
} from '../shape/shape.ts';
import { describeFinding } from '../shape/words.ts';

const PLATFORM = record(
  { architecture: TEXT, os: TEXT, variant: optional(TEXT) },
  { others: 'kept' },
);

const DESCRIPTOR = record(
  {
    mediaType: TEXT,
    digest: DIGEST,
    size: COUNT,
    urls: optional(list(TEXT)),
    annotations: optional(mapping(TEXT)),
    platform: optional(PLATFORM),
    artifactType: optional(TEXT),
  },
  LEFT_OUT,
);

const HEAD = record(
  {
    mediaType: optional(TEXT),
    schemaVersion: optional(FREE),
    manifests: optional(FREE),
    annotations: defaulted(mapping(TEXT), () => ({})),
    artifactType: optional(TEXT),
  },
  LEFT_OUT,
);
const BLOBS = record({ config: DESCRIPTOR, layers: list(DESCRIPTOR) }, LEFT_OUT);
const CHILDREN = record({ manifests: list(DESCRIPTOR) }, LEFT_OUT);

/** OCI image-spec, descriptor.md: what a blob or manifest is, how many bytes, and their digest. */
export type Descriptor = TypeOf<typeof DESCRIPTOR>;

/** OCI image-index.md "platform"; architecture in Go's words (amd64, arm64, ppc64le, s390x). */
export type Platform = TypeOf<typeof PLATFORM>;

/** Media types we read; schema 1 is refused. */
export const MEDIA_TYPE = {
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerList: 'application/vnd.docker.distribution.manifest.list.v2+json',
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  ociConfig: 'application/vnd.oci.image.config.v1+json',
  ociLayer: 'application/vnd.oci.image.layer.v1.tar',
} as const;

/** Bytes; distribution refuses larger manifests, too. */
export const MAX_MANIFEST_SIZE = 4 * 1024 * 1024;

/** OCI image-spec manifest.md, or Docker schema 2. */
export type ImageManifest = {
  readonly kind: 'manifest';
  readonly mediaType: string;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
};

/** OCI image-spec image-index.md, or Docker's manifest list. */
export type ImageIndex = {
  readonly kind: 'index';
  readonly mediaType: string;
  readonly manifests: readonly Descriptor[];
};

export type Manifest = ImageManifest | ImageIndex;

/** A manifest together with its untouched bytes: their digest is its name, so never re-serialise. */
export type StoredManifest = {
  readonly descriptor: Descriptor;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
};

/** Reads a manifest or index whose digest is known; throws as `parseManifest` does. */
export function parseStored(
  bytes: Uint8Array,
  digest: Digest,
  contentType?: string,
): StoredManifest {
  const manifest = parseManifest(bytes, contentType);
  const { mediaType } = manifest;
  return { descriptor: { mediaType, digest, size: bytes.length }, bytes, manifest };
}

/**
 * Reads a manifest or index. `contentType` decides if the document does not name its type.
 *
 * @throws IntegrityError `manifest.malformed`, `manifest.unsupported` (schema 1, unknown types)
 */
export function parseManifest(bytes: Uint8Array, contentType?: string): Manifest {
  const document = requireManifest(decodeJson(FREE, bytes, GO_RULES));
  const head = requireManifest(decode(HEAD, document, GO_RULES));
  const stated = head.mediaType === '' ? undefined : head.mediaType;
  const mediaType = stated ?? mediaTypeOf(contentType) ?? guessType(head);
  switch (mediaType) {
    case MEDIA_TYPE.dockerManifest:
    case MEDIA_TYPE.ociManifest:
      return {
        kind: 'manifest',
        mediaType,
        ...requireManifest(decode(BLOBS, document, GO_RULES)),
      };
    case MEDIA_TYPE.dockerList:
    case MEDIA_TYPE.ociIndex:
      return {
        kind: 'index',
        mediaType,
        ...requireManifest(decode(CHILDREN, document, GO_RULES)),
      };
    default:
      throw new IntegrityError(
        'manifest.unsupported',
        `manifest has media type "${mediaType}", which is neither Docker schema 2 nor OCI`,
      );
  }
}

/**
 * The annotations and the type of artifact of a manifest or index itself.
 *
 * @throws IntegrityError `manifest.malformed`
 */
export const parseAnnotations = (
  bytes: Uint8Array,
): Pick<TypeOf<typeof HEAD>, 'annotations' | 'artifactType'> =>
  requireManifest(decodeJson(HEAD, bytes, GO_RULES));

const requireManifest = <T>(decoded: Decoded<T>): T =>
  requireDecoded(decoded, ([first]) => {
    const message = `manifest ${describeFinding(first)}`;
    return isForeignDigest(first.found)
      ? new IntegrityError('manifest.unsupported', message)
      : new IntegrityError('manifest.malformed', message);
  });

/** The children (index) or blobs (manifest) that a manifest needs, in document order. */
export function descriptorsOf(manifest: Manifest): readonly Descriptor[] {
  return manifest.kind === 'index' ? manifest.manifests : [manifest.config, ...manifest.layers];
}

/** The config and layers a registry must hold for this manifest; none for an index. */
export const blobsOf = (manifest: Manifest): readonly Descriptor[] =>
  manifest.kind === 'index' ? [] : descriptorsOf(manifest).filter((blob) => !isForeignLayer(blob));

/**
 * Layers that stay at the URLs of their descriptor, and that no registry has to hold: OCI's
 * non-distributable and Docker's foreign ones (image-spec layer.md).
 */
const isForeignLayer = ({ mediaType, urls }: Descriptor): boolean =>
  (urls?.length ?? 0) > 0 || /\.foreign\.|\.nondistributable\./.test(mediaType);

/** True if an index entry is for this platform (image-index.md; arm64 means v8 or no variant). */
export function isForPlatform(entry: Descriptor, wanted: Platform): boolean {
  const platform = entry.platform;
  if (platform?.os !== wanted.os || platform.architecture !== wanted.architecture) return false;
  if (wanted.variant !== undefined) return platform.variant === wanted.variant;
  return wanted.architecture !== 'arm64' || [undefined, '', 'v8'].includes(platform.variant);
}

/** `type/subtype` of a Content-Type, or undefined if it cannot be the type of a manifest. */
export function mediaTypeOf(contentType: string | undefined): string | undefined {
  const essence = contentType?.split(';')[0]?.trim().toLowerCase();
  return essence?.startsWith('application/vnd.') === true ? essence : undefined;
}

function guessType({ schemaVersion, manifests }: TypeOf<typeof HEAD>): string {
  if (schemaVersion === 1) return 'application/vnd.docker.distribution.manifest.v1+json';
  return manifests === undefined ? MEDIA_TYPE.ociManifest : MEDIA_TYPE.ociIndex;
}
