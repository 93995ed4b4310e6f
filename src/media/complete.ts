import { ConfigError } from '../base/errors.ts';
import type { IgnitionConfig } from '../ignition/index.ts';
import type { IsoImage } from '../iso/index.ts';
import {
  type AbsentImage,
  createShelfLookup,
  findAbsent,
  type Shelf,
} from '../openshift/mirror/closure.ts';
import { readRegistriesConf } from '../openshift/node/bootstrap.ts';
import { createConfLookup, type NodeLookup } from '../openshift/node/lookup.ts';
import type { RegistryTree } from '../registry/index.ts';
import { mergeMediumConfigs, readMediumConfigs } from './live-config.ts';
import type { MediaIndex } from './media-index.ts';
import { findNamingParts, listNamedImages, type NamedImages, readShelf } from './named-images.ts';

/* The images that a medium names and does not have where its hosts look for them. */

export type Completeness = Pick<NamedImages, 'unread'> & {
  readonly absent: readonly AbsentImage[];
};

type BuiltIndex = Pick<MediaIndex, 'images' | 'leftOut' | 'program'>;

/**
 * Indexes of earlier versions, which do not name their program, never list images that were left out on
 * purpose. An image that the build carried is missing in any case.
 */
export function mayBeLeftOut(image: string, index: BuiltIndex | undefined): boolean {
  if (!index || index.program !== undefined || index.leftOut !== undefined) return false;
  const digest = image.split('@')[1];
  return !index.images.some(
    ({ source, manifests }) =>
      source === image || (digest !== undefined && manifests.includes(digest)),
  );
}

type CheckedMedium = {
  readonly tree: RegistryTree;
  readonly index: Pick<MediaIndex, 'release' | 'images' | 'leftOut' | 'catalogs'> | undefined;
};

/**
 * Hosts look where the registries.conf of the medium leads them; a medium without one is for clusters that
 * have their own, so an image counts in any repository. Images left out on purpose do not count.
 */
export async function findIncomplete(
  iso: IsoImage,
  { tree, index }: CheckedMedium,
  signal: AbortSignal,
): Promise<Completeness> {
  const configs = await readMediumConfigs(iso);
  const config = mergeMediumConfigs(configs);
  const parts = await findNamingParts({ tree, index, config });
  const { named, unread } = await listNamedImages(parts, signal);
  const broken = configs.flatMap(({ name, problem }) => (problem ? [{ name, problem }] : []));
  const shelf = await readShelf(tree);
  try {
    const look = createLookup(config, shelf);
    const absent = findAbsent(named, { look, shelf, leftOut: index?.leftOut });
    return { unread: [...unread, ...broken], absent };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { message: problem } = error;
    return { unread: [...unread, ...broken, { name: 'registries.conf', problem }], absent: [] };
  }
}

function createLookup(config: IgnitionConfig | undefined, shelf: Shelf): NodeLookup {
  const conf = config && readRegistriesConf(config);
  if (conf !== undefined) return createConfLookup(conf);
  const look = createShelfLookup(shelf);
  return (image) => {
    const having = look(image);
    return having.length > 0 ? having : EVERYWHERE;
  };
}

/** For messages: the name of no repository has a blank. */
const EVERYWHERE = ['every repository'];
