import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { ConfigError, DiskError, IntegrityError, isErrno } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  type Descriptor,
  formatReference,
  type ImageConfig,
  type ImageManifest,
  isForPlatform,
  type Platform,
  type Reference,
  type StoredManifest,
} from '../../registry/index.ts';
import {
  formatPlatforms,
  noPlatform,
  openLayers,
  fetchBlob,
  readManifest,
  type ImageTools,
} from '../images.ts';
import { extractConfigs, parseCatalogConfig, readConfigsLabel } from './configs.ts';

export type CatalogPlatformImage = {
  /** Platform in the index, else in the config. */
  readonly platform?: Platform;
  readonly manifest: ImageManifest;
  readonly stored: StoredManifest;
  readonly config: Uint8Array;
};

export type CatalogImage = {
  /** Reference by digest, the digest of `top`. */
  readonly reference: Reference;
  /** The manifest that the reference names: an index, or the only image. */
  readonly top: StoredManifest;
  /** The only platform that was asked for; absent when all were. */
  readonly selected?: Platform;
  readonly images: readonly CatalogPlatformImage[];
  /** From the label, without slashes around it. */
  readonly configsDirectory: string;
  /** The command that serves the catalog, if the image has another entrypoint. */
  readonly entrypoint?: readonly string[];
};

/** Real configs have some 10 KiB. */
const MAX_CONFIG_SIZE = 8 * 1024 * 1024;

/**
 * Reads manifests and configs for one platform or for all of the index; entries of platform `unknown/unknown`
 * are attestations, not images.
 *
 * @throws ConfigError `catalog.no-label`, `catalog.label-malformed`, `catalog.labels-differ`,
 * `image.no-platform`; IntegrityError `catalog.config-malformed`; the errors of fetching
 */
export async function openCatalogImage(
  tools: ImageTools,
  reference: Reference,
  selection: Platform | 'all',
): Promise<CatalogImage> {
  const opened = await openImages(tools, reference, selection);
  return { ...opened, configsDirectory: readConfigsDirectory(opened.images, reference) };
}

/**
 * An image with `opm`, to put a catalog into.
 *
 * @throws ConfigError `image.no-platform`; IntegrityError `catalog.config-malformed`; errors of fetching
 */
export async function openServerImage(
  tools: ImageTools,
  reference: Reference,
  selection: Platform | 'all',
): Promise<CatalogImage> {
  const opened = await openImages(tools, reference, selection);
  return { ...opened, configsDirectory: 'configs', entrypoint: ['/bin/opm'] };
}

async function openImages(
  tools: ImageTools,
  reference: Reference,
  selection: Platform | 'all',
): Promise<Omit<CatalogImage, 'configsDirectory'>> {
  const top = await readManifest(tools, reference);
  const { registry, repository } = reference;
  const pinned: Reference = { registry, repository, digest: top.descriptor.digest };
  const stored: (readonly [Platform | undefined, StoredManifest])[] = [];
  if (top.manifest.kind === 'manifest') stored.push([undefined, top]);
  else {
    for (const child of selectChildren(top.manifest.manifests, reference, selection)) {
      const { digest, platform } = child;
      stored.push([platform, await readManifest(tools, { ...pinned, digest })]);
    }
  }
  const images: CatalogPlatformImage[] = [];
  for (const [platform, one] of stored)
    images.push(await openOne(tools, pinned, { platform, one }));
  return {
    reference: pinned,
    top,
    ...(selection !== 'all' && { selected: selection }),
    images,
  };
}

/**
 * Unpacks the catalog's directory to `<directory>/sha256-<hex>` of the image's top, and returns that path. A
 * directory that already exists is complete, because it appeared by rename. Takes the first platform's
 * catalog, and fetches only layers that may have it: see `extractConfigs`.
 *
 * @throws the errors of `extractTree` and of fetching
 */
export async function extractCatalog(
  tools: ImageTools,
  image: CatalogImage,
  directory: string,
): Promise<string> {
  const output = join(directory, `sha256-${hexOf(image.top.descriptor.digest)}`);
  if (await isDirectory(output)) return output;
  const [first] = image.images;
  if (first === undefined) throw new RangeError('catalog image has no platform');
  const { configsDirectory } = image;
  const layers = openLayers(tools, image.reference, first.manifest.layers);
  try {
    await extractConfigs({ layers, config: first.config }, configsDirectory, { ...tools, output });
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== 'layer.output-exists') throw error;
    // Another process was faster; its directory is the same.
  }
  return output;
}

function selectChildren(
  children: readonly Descriptor[],
  reference: Reference,
  selection: Platform | 'all',
): readonly Descriptor[] {
  if (selection !== 'all') {
    const child = children.find((entry) => isForPlatform(entry, selection));
    if (child) return [child];
    throw noPlatform(reference, selection, formatPlatforms(children));
  }
  const images = children.filter(({ platform }) => platform?.os !== 'unknown');
  if (images.length > 0) return images;
  throw new ConfigError(
    'image.no-platform',
    `image ${formatReference(reference)} has no platforms, only ${formatPlatforms(children)}`,
  );
}

async function openOne(
  tools: ImageTools,
  reference: Reference,
  { platform, one }: { readonly platform: Platform | undefined; readonly one: StoredManifest },
): Promise<CatalogPlatformImage> {
  const { manifest } = one;
  const name = formatReference({ ...reference, digest: one.descriptor.digest });
  if (manifest.kind === 'index') {
    throw new IntegrityError(
      'catalog.config-malformed',
      `catalog image ${name} is an index within an index`,
      { expected: 'an image manifest', found: manifest.mediaType },
    );
  }
  if (manifest.config.size > MAX_CONFIG_SIZE) {
    throw new IntegrityError(
      'catalog.config-malformed',
      `catalog image ${name} has a config of ${manifest.config.size} bytes, but at most ${MAX_CONFIG_SIZE} are read`,
    );
  }
  const config = await fetchBlob(tools, reference, manifest.config);
  const document = parseCatalogConfig(config, name);
  const found = platform ?? platformOf(document);
  return { ...(found && { platform: found }), manifest, stored: one, config };
}

function readConfigsDirectory(
  images: readonly CatalogPlatformImage[],
  reference: Reference,
): string {
  const name = formatReference(reference);
  const labels = images.map(({ config, platform }) => {
    const where = platform ? `${name} (${platform.os}/${platform.architecture})` : name;
    return readConfigsLabel(parseCatalogConfig(config, where), where);
  });
  const [label = '', ...others] = new Set(labels);
  if (others.length === 0) return label;
  throw new ConfigError(
    'catalog.labels-differ',
    `catalog image ${name} has its catalog in several directories: ${[label, ...others].join(', ')}`,
    { expected: label, found: others.join(', ') },
  );
}

function platformOf({ os, architecture, variant }: ImageConfig): Platform | undefined {
  if (os === undefined || architecture === undefined) return undefined;
  return { os, architecture, ...withoutUndefined({ variant }) };
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}
