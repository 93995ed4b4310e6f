import type { Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { groupBy, withoutUndefined } from '../../base/lists.ts';
import {
  type AddedBundle,
  type Catalog,
  type CatalogBundle,
  findGraphProblems,
  findHead,
  type LocalCatalog,
} from '../../fbc/index.ts';
import { blobsOf, type Descriptor, openOciLayout, type Reference } from '../../registry/index.ts';
import { readManifest, type ImageTools } from '../images.ts';
import { readImage, type Selection } from '../mirror/fetch.ts';
import type { GatedBundle } from '../release/gates.ts';
import type { Release } from '../release/release.ts';

/** A selected bundle, with every image that it needs, its own included; each once. */
export type SelectedBundle = {
  readonly package: string;
  readonly name: string;
  readonly version?: string;
  readonly image: string;
  readonly relatedImages: readonly { readonly name: string; readonly image: string }[];
};

/** A package as the carried catalog offers it. */
export type SelectedPackage = {
  readonly name: string;
  readonly defaultChannel?: string;
  readonly channels: readonly {
    readonly name: string;
    /** The bundle that upgrades lead to; absent if the channel is not one graph with one head. */
    readonly head?: string;
  }[];
};

/** The part of a catalog that is carried. Plain JSON. */
export type SelectedCatalog = {
  /** In the configuration. */
  readonly name: string;
  /** Reference by which its image, or the lower layers of a rebuilt image, are fetched. */
  readonly reference: Reference;
  /** Digest of the image that is carried: the catalog's own, or the one that we rebuilt. */
  readonly digest: Digest;
  readonly targetCatalog?: string;
  readonly targetTag?: string;
  /** Present when it is on this machine: no registry has its image. */
  readonly isLocal?: true;
  /** Present if only a part of the catalog is selected, or it is a directory. */
  readonly rebuilt?: {
    /** Blobs made here, which no registry has: manifests, configs and layers, all in the cache. */
    readonly made: readonly Descriptor[];
  };
  readonly packages: readonly SelectedPackage[];
  readonly bundles: readonly SelectedBundle[];
  /** The last minor version of OpenShift that bundles may be on, as they name it, by bundle. */
  readonly lastVersions: Readonly<Record<string, string>>;
  /** Bundles that others need and the configuration does not name. */
  readonly additions: readonly AddedBundle[];
  readonly warnings: readonly string[];
};

/** Sorted as in the catalog. */
export function listPackages({ packages, channels }: Catalog): readonly SelectedPackage[] {
  const byPackage = groupBy(channels, (channel) => channel.package);
  return packages.map(({ name, defaultChannel }) => ({
    name,
    ...withoutUndefined({ defaultChannel }),
    channels: (byPackage.get(name) ?? []).map((channel) => ({
      name: channel.name,
      ...(findGraphProblems(channel).length === 0 && { head: findHead(channel) }),
    })),
  }));
}

/** Each image of a bundle once; sorted as in the catalog. */
export function listBundles(catalog: Catalog): readonly SelectedBundle[] {
  return catalog.bundles.map((bundle) => ({
    package: bundle.package,
    name: bundle.name,
    ...withoutUndefined({ version: bundle.version }),
    image: bundle.image,
    relatedImages: listImages(bundle),
  }));
}

/** Lists the bundles that OLM lets up to a certain minor version of OpenShift only. */
export const listLastVersions = ({ bundles }: Catalog): SelectedCatalog['lastVersions'] =>
  Object.fromEntries(
    bundles.flatMap(({ name, maxOpenShiftVersion: last }) =>
      last === undefined ? [] : [[name, last]],
    ),
  );

/** Lists the bundles of a catalog that a cluster may have installed. */
export const listGatedBundles = ({
  bundles,
  lastVersions,
}: SelectedCatalog): readonly GatedBundle[] =>
  bundles.map(({ package: inPackage, name }) => ({
    package: inPackage,
    name,
    ...withoutUndefined({ maxOpenShiftVersion: lastVersions[name] }),
  }));

/** The format does not require the bundle's own image among the related ones. */
function listImages({
  name,
  image,
  relatedImages,
}: CatalogBundle): SelectedBundle['relatedImages'] {
  const images = new Map<string, { name: string; image: string }>();
  for (const related of [...relatedImages, { name, image }]) {
    if (related.image === '') continue;
    if (!images.has(related.image)) images.set(related.image, related);
  }
  return [...images.values()];
}

/** For images that are in no registry; no host can have this name (RFC 6761 6.4). */
const NO_REGISTRY = 'local.invalid';

/** The component that catalogs are built on: it has `opm`. */
const SERVER = 'operator-registry';

/**
 * Copies manifests, and blobs of the carried platforms, to the cache, verified: they are read from there, and
 * no registry is asked.
 *
 * @throws the errors of `openOciLayout` and of reading blobs
 */
export async function importOciLayout(
  { path, tag }: Extract<LocalCatalog, { kind: 'oci' }>,
  repository: string,
  { selection, ...tools }: ImageTools & { readonly selection: Selection },
): Promise<Reference> {
  const { signal, onProgress } = tools;
  const layout = await openOciLayout(path, tag);
  const read = (reference: Reference) => readManifest({ ...layout, signal }, reference);
  const manifests = await readImage(read, layout.reference, selection);
  const sources = layout.client.sourcesOf(layout.reference);
  for (const { bytes, manifest } of manifests) {
    await tools.cache.put(bytes);
    for (const blob of blobsOf(manifest)) {
      await tools.cache.ensure(blob, sources, { signal, ...(onProgress && { onProgress }) });
    }
  }
  const [top] = manifests;
  if (top === undefined) throw new RangeError('an image has a manifest');
  return { registry: NO_REGISTRY, repository, digest: top.descriptor.digest };
}

/** @throws ConfigError `catalog.no-server` */
export function findCatalogServer({ version, components }: Release): Reference {
  const found = components.find(({ name }) => name === SERVER);
  if (found) return found.reference;
  throw new ConfigError(
    'catalog.no-server',
    `release ${version} has no component ${SERVER} to serve a catalog out of a directory`,
    { expected: SERVER, hint: 'build an image of the catalog and name it, or its OCI layout' },
  );
}
