import { join } from 'node:path';
import { type Digest, isDigest } from '../base/digest.ts';
import { useTemporaryFolder } from '../base/disk/temporary.ts';
import { ConfigError, SealiftError } from '../base/errors.ts';
import { type Catalog, type Lifecycles, readCatalog, readLifecycles } from '../fbc/index.ts';
import { decodeFileContent, type IgnitionConfig } from '../ignition/index.ts';
import { EXTRA_MANIFESTS } from '../openshift/agent/configure.ts';
import {
  extractConfigs,
  parseCatalogConfig,
  readConfigsLabel,
} from '../openshift/catalog/configs.ts';
import {
  listCatalogNames,
  listReleaseNames,
  type NamedImage,
  type Shelf,
} from '../openshift/mirror/closure.ts';
import {
  ADDITIONAL_IMAGES,
  RELEASE_IMAGE,
  RELEASE_IMAGES_REPOSITORY,
} from '../openshift/mirror/sets.ts';
import { NODE_REGISTRIES } from '../openshift/node/lookup.ts';
import { type NodeManifest, splitDocuments } from '../openshift/node/manifests.ts';
import { platformOf, type RpmArchitecture } from '../openshift/release/bundle.ts';
import { IMAGE_REFERENCES_PATH, parseImageReferences } from '../openshift/release/release.ts';
import { IMAGE_MEMBER } from '../openshift/workspace/workspace.ts';
import {
  type Layer,
  listRepositories,
  listTags,
  pathTo,
  type Platform,
  readFiles,
  readReference,
  readTag,
  type RegistryTree,
} from '../registry/index.ts';
import type { MediaIndex } from './media-index.ts';
import { openMediumImage, openMediumLayers } from './tree.ts';

/*
 * The images that the contents of a medium name, and those that its registry has; `findAbsent` compares them.
 */

/** An image in the registry of the medium that names others. */
export type NamingImage = { readonly name: string; readonly digest: Digest };

export type NamingParts = {
  readonly tree: RegistryTree;
  /** Absent: any architecture that is carried. */
  readonly arch?: RpmArchitecture;
  readonly releases: readonly NamingImage[];
  readonly catalogs: readonly NamingImage[];
  /** Images that are named without another image: additional ones, and those of catalog sources. */
  readonly others: readonly NamedImage[];
};

export type CarriedCatalog = {
  readonly name: string;
  readonly catalog: Catalog;
  readonly lifecycles: Lifecycles;
};

export type NamedImages = {
  readonly named: readonly NamedImage[];
  /** The catalogs that name some of them. */
  readonly catalogs: readonly CarriedCatalog[];
  /** Releases and catalogs that cannot be read, and why. */
  readonly unread: readonly { readonly name: string; readonly problem: string }[];
};

/**
 * Reads the layer of each release that has its manifests, and the layers of each catalog that may have its
 * directory, which is unpacked to a temporary directory.
 */
export async function listNamedImages(
  { tree, arch, releases, catalogs, others }: NamingParts,
  signal: AbortSignal,
): Promise<NamedImages> {
  const unread: { name: string; problem: string }[] = [];
  const platform = arch === undefined ? {} : { platform: platformOf(arch) };
  const readEach = async <Read>(
    images: readonly NamingImage[],
    read: (image: Wanted) => Promise<Read>,
  ): Promise<readonly Read[]> => {
    const all: Read[] = [];
    for (const image of images) {
      signal.throwIfAborted();
      try {
        all.push(await read({ ...image, ...platform, tree, signal }));
      } catch (error) {
        if (!(error instanceof SealiftError)) throw error;
        unread.push({ name: image.name, problem: error.message });
      }
    }
    return all;
  };
  const ofReleases = await readEach(releases, readReleaseNames);
  const carried = await readEach(catalogs, readCarriedCatalog);
  const ofCatalogs = carried.flatMap(({ catalog, name }) => listCatalogNames(catalog, name));
  return { named: [...others, ...ofReleases.flat(), ...ofCatalogs], catalogs: carried, unread };
}

type Wanted = NamingImage & {
  readonly platform?: Platform;
  readonly tree: RegistryTree;
  readonly signal: AbortSignal;
};

/** The manifests of a release are in its last layer. */
async function readReleaseNames({
  tree,
  signal,
  ...wanted
}: Wanted): Promise<readonly NamedImage[]> {
  const layers = await openMediumLayers(tree, wanted, signal);
  const read = async (some: readonly Layer[]): Promise<Uint8Array | undefined> =>
    (await readFiles(some, (path) => path === IMAGE_REFERENCES_PATH, { signal })).get(
      IMAGE_REFERENCES_PATH,
    );
  const bytes = (await read(layers.slice(-1))) ?? (await read(layers));
  return listReleaseNames(parseImageReferences(Buffer.from(bytes ?? []).toString('utf8')));
}

async function readCarriedCatalog({ tree, signal, ...wanted }: Wanted): Promise<CarriedCatalog> {
  const { config, layers } = await openMediumImage(tree, wanted, signal);
  const { name } = wanted;
  const directory = readConfigsLabel(parseCatalogConfig(config, name), name);
  return useTemporaryFolder(async (folder) => {
    const output = join(folder, 'catalog');
    await extractConfigs({ layers, config }, directory, { output, signal });
    const catalog = await readCatalog(output, { name, signal });
    return { name, catalog, lifecycles: await readLifecycles(output, catalog) };
  });
}

/** A medium as far as it is known: its index, and the config that its hosts start with. */
type KnownMedium = {
  readonly tree: RegistryTree;
  readonly index?: Pick<MediaIndex, 'release' | 'images' | 'catalogs'> | undefined;
  /** Bootstrap config, merged with what the embed area adds to it. */
  readonly config?: IgnitionConfig | undefined;
};

/** By the registry, the index and the catalog sources in the config. */
export async function findNamingParts({ tree, index, config }: KnownMedium): Promise<NamingParts> {
  const sources = config ? listCatalogSources(readExtraManifests(config)) : [];
  const served = await Promise.all(sources.map((source) => findServed(tree, source)));
  const catalogs = [
    ...(index?.catalogs ?? []).map(({ name, digest }) => ({ name, digest: digest as Digest })),
    ...served.flat(),
  ];
  return {
    tree,
    arch: archOf(index),
    releases: uniqueByDigest([...(await findReleases(tree)), ...listReleases(index?.images ?? [])]),
    catalogs: uniqueByDigest(catalogs),
    others: [...sources, ...listAdditional(index?.images ?? [])],
  };
}

/** The architecture of a medium; by default that of nearly all. */
export const archOf = (index: Pick<MediaIndex, 'release'> | undefined): RpmArchitecture =>
  (index?.release.architecture ?? 'x86_64') as RpmArchitecture;

export const readExtraManifests = ({ storage }: IgnitionConfig): readonly NodeManifest[] =>
  (storage?.files ?? [])
    .filter(({ path }) => path.startsWith(EXTRA_MANIFESTS))
    .flatMap((file) => {
      const text = decodeFileContent(file)?.toString('utf8');
      return text === undefined ? [] : [{ name: file.path.slice(EXTRA_MANIFESTS.length), text }];
    });

/** The images of catalog sources that the registry of a node serves. */
const listCatalogSources = (manifests: readonly NodeManifest[]): readonly NamedImage[] =>
  manifests.flatMap(splitReadable).flatMap(({ document }) => {
    const kind = document.get('kind');
    if (kind !== 'CatalogSource' && kind !== 'ClusterCatalog') return [];
    const image = readReference(String(document.getIn(IMAGE_MEMBER[kind])));
    if (!image || !NODE_REGISTRIES.has(image.registry)) return [];
    const part = `${kind} ${String(document.getIn(['metadata', 'name']))}`;
    return [{ image, neededBy: { part } }];
  });

/** A manifest that is not YAML names no image; those who apply it refuse it. */
export function splitReadable(manifest: NodeManifest): ReturnType<typeof splitDocuments> {
  try {
    return splitDocuments(manifest);
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

async function findServed(
  tree: RegistryTree,
  { image: { repository, tag = 'latest', digest } }: NamedImage,
): Promise<readonly NamingImage[]> {
  const found = digest ?? (await readTag(tree, { repository, tag }));
  return found === undefined ? [] : [{ name: `${repository}:${tag}`, digest: found }];
}

/** The release image has one tag, the hex of its digest; images without a tag may be left over. */
async function findReleases(tree: RegistryTree): Promise<readonly NamingImage[]> {
  const repository = RELEASE_IMAGES_REPOSITORY;
  const tags = (await listTags(tree, repository)).map((hex) => `sha256:${hex}`).filter(isDigest);
  return tags.map((digest) => ({ name: `release image ${repository}@${digest}`, digest }));
}

/** Releases that an upgrade passes have no tag. */
const listReleases = (images: MediaIndex['images']): readonly NamingImage[] =>
  images
    .filter(({ set, name }) => set === 'release' && name === RELEASE_IMAGE)
    .flatMap(({ source, manifests: [digest] }) =>
      isDigest(digest ?? '') ? [{ name: `release image ${source}`, digest: digest as Digest }] : [],
    );

const listAdditional = (images: MediaIndex['images']): readonly NamedImage[] =>
  images
    .filter(({ set }) => set === 'additional')
    .flatMap(({ name, source }) => {
      const image = readReference(name) ?? readReference(source);
      return image?.tag !== undefined || image?.digest !== undefined
        ? [{ image, neededBy: { part: ADDITIONAL_IMAGES } }]
        : [];
    });

const uniqueByDigest = (images: readonly NamingImage[]): readonly NamingImage[] => [
  ...new Map(images.map((image) => [image.digest, image])).values(),
];

/** Every name by which the registry of a medium serves a manifest, by its links alone. */
export async function readShelf(tree: RegistryTree): Promise<Shelf> {
  const shelf = new Set<string>();
  for (const repository of await listRepositories(tree)) {
    const revisions = (await tree.list(pathTo.revisions(repository))) ?? [];
    for (const hex of revisions) shelf.add(`${repository}@sha256:${hex}`);
    for (const tag of await listTags(tree, repository)) shelf.add(`${repository}:${tag}`);
  }
  return shelf;
}
