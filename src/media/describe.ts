import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { readVersion } from '../base/program.ts';
import { formatReadableJson } from '../base/text/json.ts';
import type { Areas, IsoImage } from '../iso/index.ts';
import type { MirrorPlan, PlannedImage } from '../openshift/mirror/plan.ts';
import {
  formatReleaseBundleTag,
  RELEASE_BUNDLE_REPOSITORY,
  RELEASE_DIGEST_ANNOTATION,
} from '../openshift/release/bundle.ts';
import { type Release, digestOfRelease } from '../openshift/release/release.ts';
import { isUnsigned } from '../openshift/release/signature.ts';
import {
  formatReference,
  parseAnnotations,
  parseManifest,
  pathTo,
  readLink,
  readManifestBytes,
  type RegistryTree,
} from '../registry/index.ts';
import { decode, decodeJson, JSON_RULES, requireDecoded, type Rules } from '../shape/decode.ts';
import { FREE, list, mapping, oneOf, record, TEXT } from '../shape/shape.ts';
import { describeFinding } from '../shape/words.ts';
import {
  formatMediaIndex,
  type IndexExtent,
  type IndexImage,
  type MediaIndex,
  BUNDLE_PATH,
} from './media-index.ts';

/* The index of a new medium, and the list of images of a live ISO, which is also read and compared here. */

type DescribedMedium = Pick<MediaIndex, 'product' | 'base' | 'release' | 'catalogs' | 'mutable'> & {
  readonly plan: Pick<MirrorPlan, 'images' | 'registryImage'> &
    Partial<Pick<MirrorPlan, 'blocked'>>;
  /** Images that are missing with the consent of the user. */
  readonly missing?: readonly string[];
  /** Releases on the medium; those with an unverified signature are marked. */
  readonly releases?: readonly Release[];
  /** Extents of the layout, including the padding, which the index omits. */
  readonly extents: readonly (IndexExtent & { readonly source: { readonly kind: string } })[];
  readonly areas: Areas;
};

/**
 * Content of `/bundle.json`, and of the file of that name in the release bundle: every image that the
 * registry of the medium serves, by digest. The format is ours: openshift/enhancements pull request 1821
 * defines none.
 */
export type BundleFile = {
  readonly format: 1;
  /** Tag of the release bundle, and name of the release in an InternalReleaseImage. */
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly release: { readonly image: string; readonly digest: string };
  readonly images: readonly BundleImage[];
};

type BundleImage = {
  /** Name of the component, or the name that the configuration or the operator gives. */
  readonly name: string;
  readonly set: string;
  /** Source reference, by digest. */
  readonly image: string;
  /** Repository in the registry of the medium. */
  readonly repository: string;
  readonly tags: readonly string[];
  /** Digest that the tags name. */
  readonly digest: string;
  /** Digests including the images for each architecture, if `digest` is a list; `digest` is the first. */
  readonly manifests: readonly string[];
};

/**
 * Renders `/sealift/index.json`, by which the medium can be verified, compared and reused without other
 * files. It holds no secret, no time and no host name.
 */
export function describeMedium(medium: DescribedMedium): Uint8Array {
  const { product, base, release, plan, catalogs, extents, areas } = medium;
  const { images, registryImage, blocked = [] } = plan;
  const leftOut = new Set([...blocked.map(({ image }) => image), ...(medium.missing ?? [])]);
  const { mutable } = medium;
  const unsigned = (medium.releases ?? []).filter(isUnsigned).map(({ version }) => version);
  const text = formatMediaIndex({
    format: product === DEPLOYMENT ? 5 : chooseFormat(mutable),
    product,
    program: readVersion(),
    ...(base && { base: describeBase(base) }),
    release,
    ...(unsigned.length > 0 && { unsigned }),
    images: [...images, ...(registryImage ? [registryImage] : [])].map(toIndexImage),
    ...(leftOut.size > 0 && { leftOut: [...leftOut].sort() }),
    ...withoutUndefined({ catalogs, mutable }),
    areas,
    extents: listIndexExtents(extents),
  });
  return Buffer.from(text);
}

/** Product that carries a disk image. */
export const DEPLOYMENT = 'deployment-iso';

/** The first format that names all kinds of the areas. */
function chooseFormat(areas: MediaIndex['mutable'] = []): MediaIndex['format'] {
  const kinds = areas.map(({ kind }) => kind);
  if (kinds.includes('config-image')) return 4;
  return kinds.includes('built') ? 3 : 2;
}

const describeBase = ({ digest, size, osStream }: NonNullable<MediaIndex['base']>) => ({
  digest,
  size,
  ...withoutUndefined({ osStream }),
});

const toIndexImage = (image: PlannedImage): IndexImage => ({
  name: image.name,
  set: image.set,
  source: formatReference(image.source),
  repository: image.destination.repository,
  tags: image.destination.tags,
  manifests: image.manifests.map(({ digest }) => digest),
});

export const listIndexExtents = (extents: DescribedMedium['extents']): readonly IndexExtent[] =>
  extents.filter(({ source }) => source.kind !== 'zero').map(describeExtent);

const describeExtent = ({ offset, size, digest, paths }: IndexExtent): IndexExtent => ({
  offset,
  size,
  paths,
  ...withoutUndefined({ digest }),
});

export function formatBundleFile({
  release,
  plan,
}: {
  readonly release: Release;
  readonly plan: Pick<MirrorPlan, 'images'>;
}): Uint8Array {
  const { version, arch, reference } = release;
  const file: BundleFile = {
    format: 1,
    name: formatReleaseBundleTag(version, arch),
    version,
    architecture: arch,
    release: { image: formatReference(reference), digest: digestOfRelease(release) },
    images: plan.images.map(toBundleImage),
  };
  return Buffer.from(formatReadableJson(file));
}

function toBundleImage({ name, set, source, destination, manifests }: PlannedImage): BundleImage {
  const digests = manifests.map(({ digest }) => digest);
  return {
    name,
    set,
    image: formatReference(source),
    ...destination,
    digest: digests[0] ?? '',
    manifests: digests,
  };
}

/** Undefined if the medium has no list. */
export async function readBundleFile(
  iso: Pick<IsoImage, 'find' | 'readFile'>,
): Promise<BundleFile | undefined> {
  const node = await iso.find(BUNDLE_PATH);
  return node?.kind === 'file' ? parseBundleFile(await iso.readFile(node, LIMIT)) : undefined;
}

const LIMIT = 16 * 1024 * 1024;

export function parseBundleFile(bytes: Uint8Array): BundleFile {
  const document = requireDecoded(decodeJson(mapping(FREE), bytes, RULES), ([first]) =>
    malformed(describeFinding(first)),
  );
  if (document['format'] !== 1) {
    throw new IntegrityError('bundle.format', `${BUNDLE_PATH} has an unknown format`, {
      expected: '1',
      found: JSON.stringify(document['format'] ?? null),
      hint: 'use a newer version of sealift',
    });
  }
  return requireDecoded(decode(BUNDLE_FILE, document), ([first]) =>
    malformed(`${NOT_OURS}: ${describeFinding(first)}`),
  );
}

const BUNDLE_FILE = record(
  {
    format: oneOf(1),
    name: TEXT,
    version: TEXT,
    architecture: TEXT,
    release: record({ image: TEXT, digest: TEXT }, { others: 'kept' }),
    images: list(
      record(
        {
          name: TEXT,
          set: TEXT,
          image: TEXT,
          repository: TEXT,
          digest: TEXT,
          tags: list(TEXT),
          manifests: list(TEXT),
        },
        { others: 'kept' },
      ),
    ),
  },
  { others: 'kept' },
);

/** Ten times as many as 4,000 images have. */
const RULES: Rules = { ...JSON_RULES, most: { values: 500_000, depth: 16 } };

const NOT_OURS = 'is not in the form that sealift writes';

const malformed = (problem: string): IntegrityError =>
  new IntegrityError('bundle.malformed', `${BUNDLE_PATH} ${problem}`);

export function compareBundleFile(
  { version, release, images }: BundleFile,
  index: MediaIndex,
): readonly string[] {
  const image = release.image.endsWith(`@${release.digest}`) ? release.image : release.digest;
  // The image of the registry server is on the medium, but not in its registry.
  const served = index.images.filter(({ set }) => set !== 'registry').map(describePlace);
  const listed = images.map(describePlace);
  const [isServed, isListed] = [new Set(served), new Set(listed)];
  return [
    ...compareText('version', version, index.release.version),
    ...compareText('release', image, index.release.reference),
    ...listed.filter((place) => !isServed.has(place)).map((place) => `lists ${place}`),
    ...served.filter((place) => !isListed.has(place)).map((place) => `does not list ${place}`),
  ].map((problem) => `${problem}, unlike the index`);
}

const compareText = (what: string, found: string, expected: string): readonly string[] =>
  found === expected ? [] : [`has ${what} ${found} instead of ${expected}`];

const describePlace = ({
  repository,
  manifests,
}: Pick<BundleImage, 'repository' | 'manifests'>): string => `${repository}@${manifests.join('+')}`;

/** Compares the release bundle of a registry with the list of images. */
export async function compareBundleImage(
  tree: RegistryTree,
  { name, release }: BundleFile,
): Promise<readonly string[]> {
  const repository = RELEASE_BUNDLE_REPOSITORY;
  const digest = await readLink(tree, pathTo.tagLink(repository, name));
  const bytes = digest && (await readManifestBytes(tree, digest));
  if (bytes === undefined) return [`names release bundle ${name}, which is not in the registry`];
  parseManifest(bytes);
  const found = parseAnnotations(bytes).annotations[RELEASE_DIGEST_ANNOTATION];
  if (found === release.digest) return [];
  return [
    `names release ${release.digest}, but the release bundle names ${JSON.stringify(found ?? null)}`,
  ];
}
