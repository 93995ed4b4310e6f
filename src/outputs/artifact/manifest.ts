import { digestOf, hexOf, isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import { largestIsoOf } from '../../iso/index.ts';
import {
  type Descriptor,
  MEDIA_TYPE,
  parseAnnotations,
  type StoredManifest,
} from '../../registry/index.ts';
import type { Part } from './parts.ts';

/** OCI image-spec 1.1, manifest.md "Guidelines for Artifact Usage". */
const ARTIFACT_TYPE = 'application/vnd.sealift.iso.v1';
const PART_TYPE = 'application/vnd.sealift.iso.part.v1';

/** image-spec, manifest.md "Guidance for an Empty Descriptor". */
export const EMPTY_CONFIG = {
  bytes: Buffer.from('{}'),
  descriptor: {
    mediaType: 'application/vnd.oci.empty.v1+json',
    digest: digestOf('{}'),
    size: 2,
  },
} as const;

const KEY = {
  title: 'org.opencontainers.image.title',
  version: 'org.opencontainers.image.version',
  size: 'dev.sealift.iso.size',
  sha256: 'dev.sealift.iso.sha256',
  index: 'dev.sealift.iso.index',
  private: 'dev.sealift.iso.private',
  offset: 'dev.sealift.iso.offset',
} as const;

/** An ISO as its artifact describes it. */
export type IsoArtifact = {
  readonly title: string;
  /** Version of the release. */
  readonly version?: string;
  /** Bytes of the ISO. */
  readonly size: number;
  /** SHA-256 of the whole ISO; absent if no process had all of its bytes. */
  readonly digest?: Digest;
  /** Digest of the medium's index, which names every other byte. */
  readonly index: string;
  /** True if not every user could read the file that was pushed. */
  readonly isPrivate: boolean;
  /** By offset, without overlaps; between them are zeros. */
  readonly parts: readonly Required<Part>[];
};

/** A manifest as it is stored: its digest is the digest of its bytes. */
export type ManifestBytes = { readonly bytes: Buffer; readonly descriptor: Descriptor };

/** `top` is the manifest that a tag names; if it is an index, the `others` have the layers. */
export type ArtifactManifests = {
  readonly top: ManifestBytes;
  readonly others: readonly ManifestBytes[];
};

/** @param most maximum number of layers in one manifest */
export function formatArtifact(artifact: IsoArtifact, most: number): ArtifactManifests {
  const layers = describeLayers(artifact.parts);
  const annotations = describeIso(artifact);
  if (layers.length <= most) {
    return { top: formatManifest({ layers, annotations }), others: [] };
  }
  const others: ManifestBytes[] = [];
  for (let done = 0; done < layers.length; done += most) {
    others.push(formatManifest({ layers: layers.slice(done, done + most) }));
  }
  const top = encode(MEDIA_TYPE.ociIndex, {
    manifests: others.map(({ descriptor }) => ({ ...descriptor, artifactType: ARTIFACT_TYPE })),
    annotations,
  });
  return { top, others };
}

/** Layers with the same bytes are described once, by the place of the first. */
function describeLayers(parts: IsoArtifact['parts']): readonly Descriptor[] {
  const offsets = new Map<Digest, { readonly size: number; readonly offsets: number[] }>();
  for (const { digest, size, offset } of parts) {
    const known = offsets.get(digest);
    if (known) known.offsets.push(offset);
    else offsets.set(digest, { size, offsets: [offset] });
  }
  return [...offsets].map(([digest, { size, offsets }]) => ({
    mediaType: PART_TYPE,
    digest,
    size,
    annotations: { [KEY.offset]: offsets.join(' ') },
  }));
}

const describeIso = (artifact: IsoArtifact): Readonly<Record<string, string>> =>
  withoutUndefined({
    [KEY.title]: artifact.title,
    [KEY.version]: artifact.version,
    [KEY.size]: String(artifact.size),
    [KEY.sha256]: artifact.digest && hexOf(artifact.digest),
    [KEY.index]: artifact.index,
    [KEY.private]: artifact.isPrivate ? 'true' : undefined,
  });

const formatManifest = (content: {
  readonly layers: readonly Descriptor[];
  readonly annotations?: Readonly<Record<string, string>>;
}): ManifestBytes =>
  encode(MEDIA_TYPE.ociManifest, { config: EMPTY_CONFIG.descriptor, ...content });

function encode(mediaType: string, content: Readonly<Record<string, Json>>): ManifestBytes {
  const document = { schemaVersion: 2, mediaType, artifactType: ARTIFACT_TYPE, ...content };
  const bytes = Buffer.from(formatCanonicalJson(document));
  return { bytes, descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length } };
}

/**
 * Reads the manifest that a tag names, and the manifests of its index, as {@link formatArtifact} wrote them.
 *
 * @param name for errors
 */
export function parseArtifact(
  name: string,
  top: StoredManifest,
  others: readonly StoredManifest[],
): IsoArtifact {
  const refuse = (problem: string): IntegrityError => malformed(name, problem);
  const { annotations } = readDocument(name, top);
  const size = parseCount(annotations[KEY.size]);
  if (size === undefined) throw refuse(`has no whole number in ${KEY.size}`);
  const digest = parseSha256(annotations[KEY.sha256]);
  if (digest === undefined && KEY.sha256 in annotations) {
    throw refuse(`has no SHA-256 in ${KEY.sha256}`);
  }
  const isIndex = top.manifest.kind === 'index';
  const { parts, given } = listParts(name, isIndex ? others : [top], refuse);
  requirePlaces(parts, size, refuse);
  // The contents of an index are not known before its manifests are here.
  if (!(isIndex && others.length === 0) && size > largestIsoOf(given)) {
    throw refuse(`makes an ISO of ${size} bytes from ${given} bytes`);
  }
  return {
    title: annotations[KEY.title] ?? '',
    index: annotations[KEY.index] ?? '',
    ...withoutUndefined({ digest, version: annotations[KEY.version] }),
    size,
    isPrivate: annotations[KEY.private] === 'true',
    parts,
  };
}

/** The places of all layers, by offset, and the bytes of the layers, each counted once. */
function listParts(
  name: string,
  manifests: readonly StoredManifest[],
  refuse: (problem: string) => IntegrityError,
): { readonly parts: readonly Required<Part>[]; readonly given: number } {
  const parts: Required<Part>[] = [];
  const sizes = new Map<string, number>();
  for (const stored of manifests) {
    readDocument(name, stored);
    if (stored.manifest.kind !== 'manifest') throw refuse('has an index in its index');
    for (const layer of stored.manifest.layers) {
      append(parts, placesOf(layer, refuse));
      if (parts.length > MOST_PLACES) throw refuse(`has layers in more than ${MOST_PLACES} places`);
      sizes.set(layer.digest, layer.size);
    }
  }
  const given = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  return { parts: parts.sort((a, b) => a.offset - b.offset), given };
}

function readDocument(
  name: string,
  { bytes }: StoredManifest,
): { readonly annotations: Readonly<Record<string, string>> } {
  const { annotations, artifactType } = parseAnnotations(bytes);
  // Older versions of skopeo write an index again without the members that are new in OCI 1.1.
  const isOurs = artifactType === ARTIFACT_TYPE || (!artifactType && KEY.size in annotations);
  if (isOurs) return { annotations };
  throw new IntegrityError('artifact.not-ours', `${name} is not an ISO that sealift pushed`, {
    expected: ARTIFACT_TYPE,
    found: artifactType ?? 'an image or a list of images',
    hint: 'check the repository and the tag',
  });
}

/** Twice as many as the largest medium has. */
const MOST_PLACES = 500_000;

function placesOf(
  { digest, size, annotations }: Descriptor,
  refuse: (problem: string) => IntegrityError,
): readonly Required<Part>[] {
  const texts = annotations?.[KEY.offset]?.split(' ', MOST_PLACES + 1) ?? [];
  const parts = texts.map((text) => {
    const offset = parseCount(text);
    if (offset === undefined || size === 0) throw refuse(`does not state the offset of ${digest}`);
    return { offset, size, digest };
  });
  if (parts.length === 0) throw refuse(`does not state the offset of ${digest}`);
  return parts;
}

function requirePlaces(
  parts: IsoArtifact['parts'],
  size: number,
  refuse: (problem: string) => IntegrityError,
): void {
  let end = 0;
  for (const part of parts) {
    if (part.offset < end) throw refuse(`has two layers for byte ${part.offset}`);
    end = part.offset + part.size;
  }
  if (end > size) throw refuse(`has layers up to byte ${end} of an ISO of ${size} bytes`);
}

/** Far above any medium, so that the sum of two is exact. */
const LARGEST_COUNT = 2 ** 52;

function parseCount(value = ''): number | undefined {
  if (!/^\d{1,16}$/.test(value)) return undefined;
  return Number(value) < LARGEST_COUNT ? Number(value) : undefined;
}

function parseSha256(value = ''): Digest | undefined {
  const digest = `sha256:${value}`;
  return isDigest(digest) ? digest : undefined;
}

const malformed = (name: string, problem: string): IntegrityError =>
  new IntegrityError('artifact.malformed', `${name} ${problem}`, {
    hint: 'push the ISO again',
  });
