import type { Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { describeValue } from '../base/text/words.ts';

/** OCI image-spec, descriptor.md: what a blob or manifest is, how many bytes, and their digest. */
export type Descriptor = {
  readonly mediaType: string;
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  readonly urls?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: Platform;
  readonly artifactType?: string;
};

/** OCI image-index.md "platform"; architecture in Go's words (amd64, arm64, ppc64le, s390x). */
export type Platform = {
  readonly architecture: string;
  readonly os: string;
  readonly variant?: string;
};

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
  const document = parseObject(bytes);
  const declared = typeof document['mediaType'] === 'string' ? document['mediaType'] : undefined;
  const mediaType = declared ?? mediaTypeOf(contentType) ?? guessType(document);
  switch (mediaType) {
    case MEDIA_TYPE.dockerManifest:
    case MEDIA_TYPE.ociManifest:
      return {
        kind: 'manifest',
        mediaType,
        config: parseDescriptor(document['config'], 'config'),
        layers: parseDescriptors(document['layers'], 'layers'),
      };
    case MEDIA_TYPE.dockerList:
    case MEDIA_TYPE.ociIndex:
      return {
        kind: 'index',
        mediaType,
        manifests: parseDescriptors(document['manifests'], 'manifests'),
      };
    default:
      throw new IntegrityError(
        'manifest.unsupported',
        `manifest has media type "${mediaType}", which is neither Docker schema 2 nor OCI`,
      );
  }
}

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

function parseObject(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (isObject(value)) return value;
  } catch (cause) {
    throw new IntegrityError('manifest.malformed', 'manifest is not JSON', { cause });
  }
  throw new IntegrityError('manifest.malformed', 'manifest is not a JSON object');
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function guessType(document: Record<string, unknown>): string {
  if (document['schemaVersion'] === 1)
    return 'application/vnd.docker.distribution.manifest.v1+json';
  return 'manifests' in document ? MEDIA_TYPE.ociIndex : MEDIA_TYPE.ociManifest;
}

function parseDescriptors(value: unknown, member: string): Descriptor[] {
  if (Array.isArray(value)) {
    return value.map((entry, index) => parseDescriptor(entry, `${member}[${index}]`));
  }
  throw new IntegrityError('manifest.malformed', `manifest member "${member}" is not an array`);
}

function parseDescriptor(value: unknown, member: string): Descriptor {
  const refuse = (reason: string): never => {
    throw new IntegrityError('manifest.malformed', `manifest member "${member}" ${reason}`);
  };
  if (!isObject(value)) return refuse('is not an object');
  const { mediaType, digest, size } = value;
  if (typeof mediaType !== 'string') return refuse('has no mediaType');
  if (typeof digest !== 'string' || !/^sha256:[0-9a-f]{64}$/.test(digest)) {
    return refuse('has no sha256 digest');
  }
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    return refuse('has no size');
  }
  return { mediaType, digest: digest as Digest, size, ...parseOptional(value) };
}

function parseOptional({
  urls,
  platform,
  annotations,
  artifactType,
}: Readonly<Record<string, unknown>>): Partial<Descriptor> {
  return {
    ...(Array.isArray(urls) && { urls: urls.map(describeValue) }),
    ...(isObject(platform) && { platform: platform as Platform }),
    ...(isObject(annotations) && { annotations: textsOf(annotations) }),
    ...(typeof artifactType === 'string' && { artifactType }),
  };
}

const textsOf = (object: object): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(object).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
