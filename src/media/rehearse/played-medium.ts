import { withoutUndefined } from '../../base/lists.ts';
import { decodeFileContent, type IgnitionConfig } from '../../ignition/index.ts';
import type { IsoImage } from '../../iso/index.ts';
import type { RegistryTree } from '../../registry/index.ts';
import { mergeMediumConfigs, type MediumConfig, readMediumConfigs } from '../live-config.ts';
import { type MediaIndex, readIndex } from '../media-index.ts';
import {
  findNamingParts,
  listNamedImages,
  type NamedImages,
  type NamingParts,
} from '../named-images.ts';
import { findRegistryRoot } from '../tree.ts';
import { walkRegistryTree } from '../walk-registry.ts';

/* The medium as hosts find it: its files, its registry by directories, and the configs that Ignition merges. */

export type PlayedMedium = {
  readonly iso: IsoImage;
  readonly index?: MediaIndex;
  /** Directory of the registry on the medium, and its tree; absent on a medium without images. */
  readonly registry?: { readonly root: string; readonly tree: RegistryTree };
  /** Lowest precedence first. */
  readonly configs: readonly MediumConfig[];
  /** The configs as Ignition merges them; absent without any. */
  readonly live?: IgnitionConfig;
  /** Contents of the files that the live system gets, by path. */
  readonly files: ReadonlyMap<string, Buffer>;
};

export async function readPlayed(iso: IsoImage): Promise<PlayedMedium> {
  const index = await readIndex(iso);
  const root = await findRegistryRoot(iso);
  const configs = await readMediumConfigs(iso);
  const live = mergeMediumConfigs(configs);
  return {
    iso,
    configs,
    files: listContents(live),
    ...withoutUndefined({
      index,
      live,
      registry: root === undefined ? undefined : { root, tree: await walkRegistryTree(iso, root) },
    }),
  };
}

/** The images that the medium names, with the releases and catalogs that name them. */
export type CarriedImages = NamedImages & Pick<NamingParts, 'releases'>;

/** Absent on a medium without images. */
export async function readCarried(
  { registry, index, live }: PlayedMedium,
  signal: AbortSignal,
): Promise<CarriedImages | undefined> {
  if (!registry) return undefined;
  const { tree } = registry;
  const parts = await findNamingParts({ tree, index, config: live });
  return { ...(await listNamedImages(parts, signal)), releases: parts.releases };
}

/** Contents of the files of a config, by path, as far as the config holds them. */
export function listContents(config: IgnitionConfig | undefined): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const file of config?.storage?.files ?? []) {
    const bytes = decodeFileContent(file);
    if (bytes) files.set(file.path, bytes);
  }
  return files;
}

/** The text of a file of the live system, or an empty one. */
export const textOf = ({ files }: Pick<PlayedMedium, 'files'>, path: string): string =>
  files.get(path)?.toString('utf8') ?? '';
