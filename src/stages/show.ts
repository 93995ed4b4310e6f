import { join } from 'node:path';
import { SealiftError } from '../base/errors.ts';
import {
  type Catalog,
  type CatalogChannel,
  type CatalogSelection,
  type ChannelEntry,
  filterCatalog,
  findHead,
  readCatalog,
  resolveDependencies,
} from '../fbc/index.ts';
import type { CatalogSource } from '../openshift/catalog/source.ts';
import { explainImages, type ExplainableImage, type Explanation } from '../media/explain.ts';
import { extractCatalog, openCatalogImage } from '../openshift/catalog/image.ts';
import { listBundles } from '../openshift/catalog/selected.ts';
import type { ImageTools } from '../openshift/images.ts';
import type { MirrorPlan, PlannedImage } from '../openshift/mirror/plan.ts';
import { planClusterManifests } from '../openshift/node/bootstrap.ts';
import { describeCluster, listClusterCatalogs } from '../openshift/node/cluster.ts';
import type { NodeManifest } from '../openshift/node/manifests.ts';
import { signaturesOf } from '../openshift/release/signature.ts';
import { formatReference, openOciLayout, type Platform } from '../registry/index.ts';
import { clusterSettingsOf } from './ignition.ts';
import { selectContent, selectImages } from './live-content.ts';
import type { LiveIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/* Views that write no ISO: the explanation of an image, the content of a catalog, the resources of media. */

export type CatalogRequest = {
  /** Name that the user gave, for errors. */
  readonly name: string;
  readonly source: CatalogSource;
  readonly platform: Platform;
  readonly signal: AbortSignal;
  /** Called only when a registry is needed. */
  readonly openTools: () => Promise<ImageTools & { readonly workDir: string }>;
  /**
   * Opens the directory in which a catalog from an image is unpacked, and stays. Called only when
   * a catalog is unpacked without tools.
   */
  readonly openWorkDir: () => Promise<string>;
};

type ShownChannel = { readonly name: string; readonly head: string | null };

export type CatalogList = {
  readonly packages: readonly {
    readonly name: string;
    readonly defaultChannel: string | null;
    readonly channels: readonly ShownChannel[];
  }[];
  readonly warnings: readonly string[];
};

export type CatalogView = {
  readonly packages: readonly {
    readonly name: string;
    readonly defaultChannel: string | null;
    readonly channels: readonly (ShownChannel & { readonly entries: readonly ChannelEntry[] })[];
  }[];
  readonly bundles: readonly {
    readonly name: string;
    readonly package: string;
    readonly version: string | null;
    readonly image: string;
  }[];
  /** References, each once, sorted. */
  readonly relatedImages: readonly string[];
  readonly warnings: readonly string[];
};

/**
 * Explains everything in the plan that the words mean; see `explainImages`.
 *
 * @throws UsageError `why.nothing`
 */
export async function explainImage(
  what: string,
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<Explanation> {
  const { plan } = await selectImages(request, tools);
  return explain(what, plan);
}

export function explain(what: string, plan: MirrorPlan): Explanation {
  const all = plan.registryImage ? [...plan.images, plan.registryImage] : plan.images;
  return explainImages(what, all.map(toExplainable), 'the plan');
}

function toExplainable(image: PlannedImage): ExplainableImage {
  const { name, origin, source, manifests, blobs, destination, neededBy } = image;
  const reference = formatReference(source);
  const { repository, tags } = destination;
  const names = [name, formatReference(origin), reference, repository];
  return { name, reference, repository, tags, names, manifests, blobs, neededBy };
}

/** Lists every package of a catalog. A channel without a single head causes a warning. */
export async function listCatalog(request: CatalogRequest): Promise<CatalogList> {
  const catalog = await openCatalog(request);
  const warnings = catalog.malformed.flatMap(({ problems }) => problems);
  const packages = describePackages(catalog, warnings).map(({ channels, ...rest }) => ({
    ...rest,
    channels: channels.map(({ name, head }) => ({ name, head })),
  }));
  return { packages, warnings };
}

/** Shows the part of a catalog that a build with this selection would keep: the code is the same. */
export async function showCatalog(
  request: CatalogRequest,
  selection: CatalogSelection,
): Promise<CatalogView> {
  const source = await openCatalog(request);
  const { name } = request;
  const filtered = filterCatalog(source, selection, { name });
  const mode = selection.dependencies ?? 'warn';
  const [resolved] = resolveDependencies([{ name, filtered, mode }]);
  const { catalog, warnings } = resolved ?? filtered;
  const more: string[] = [];
  const bundles = listBundles(catalog);
  const images = bundles.flatMap(({ relatedImages }) => relatedImages.map(({ image }) => image));
  return {
    packages: describePackages(catalog, more),
    bundles: bundles.map(({ name, version, image, package: of }) => ({
      name,
      package: of,
      image,
      version: version ?? null,
    })),
    relatedImages: [...new Set(images)].sort(),
    warnings: [...warnings, ...more],
  };
}

/**
 * Lists the objects that describe the media to a cluster: the objects on the media themselves, and
 * the ClusterCatalogs, which the media leave out because not every cluster knows the kind. The
 * password of core is not among them, and neither are the user's own manifests.
 */
export async function listResources(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<readonly NodeManifest[]> {
  const content = await selectContent(request, tools);
  const made = { ...content, signatures: signaturesOf(content.release) };
  const cluster = describeCluster(made, clusterSettingsOf(request));
  const { manifests, warnings } = planClusterManifests({ ...cluster, extraManifests: [] });
  for (const message of warnings) tools.emit({ type: 'warning', message });
  return [...manifests, ...listClusterCatalogs(cluster)];
}

async function openCatalog(request: CatalogRequest): Promise<Catalog> {
  const { name, signal } = request;
  return readCatalog(await unpack(request), { name, signal });
}

async function unpack(request: CatalogRequest): Promise<string> {
  const { source, platform, signal } = request;
  switch (source.kind) {
    case 'directory':
      return source.path;
    case 'oci': {
      const { client, cache, reference } = await openOciLayout(source.path, source.tag);
      const tools = { client, cache, signal };
      const image = await openCatalogImage(tools, reference, platform);
      return extractCatalog(tools, image, directoryIn(await request.openWorkDir()));
    }
    case 'image': {
      const tools = await request.openTools();
      const image = await openCatalogImage(tools, source.reference, platform);
      return extractCatalog(tools, image, directoryIn(tools.workDir));
    }
  }
}

const directoryIn = (workDir: string): string => join(workDir, 'cache', 'catalogs');

function describePackages(catalog: Catalog, warnings: string[]): CatalogView['packages'] {
  return catalog.packages.map(({ name, defaultChannel }) => ({
    name,
    defaultChannel: defaultChannel ?? null,
    channels: catalog.channels
      .filter((channel) => channel.package === name)
      .map((channel) => ({
        name: channel.name,
        head: describeHead(channel, warnings),
        entries: channel.entries,
      })),
  }));
}

function describeHead(channel: CatalogChannel, warnings: string[]): string | null {
  try {
    return findHead(channel);
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    warnings.push(
      `package "${channel.package}" channel "${channel.name}" has no head: ${error.message}`,
    );
    return null;
  }
}
