import { formatReference } from '../../registry/reference.ts';
import type { PlannedImage } from '../mirror/mirror-plan.ts';
import { formatMirror } from '../mirror/plan-mirrors.ts';
import {
  NODE_REGISTRY_PORT,
  nodeRegistryDomain,
  type RegistryImage,
} from '../node/node-registry.ts';

/** A repository whose images are on the medium, and where the live system's own registry has them. */
export type LocalMirror = { readonly source: string; readonly mirrors: readonly string[] };

/** The registry on the medium, as the live system is told of it. */
export type LocalRegistry = {
  readonly image: RegistryImage;
  readonly mirrors: readonly LocalMirror[];
};

/**
 * Every repository as it is named, each once, and as it is named at the registry that images are
 * precached from, where the configuration has one.
 */
export function planLocalMirrors(
  images: readonly PlannedImage[],
  releaseRegistry: string,
): readonly LocalMirror[] {
  const mirrors = new Map<string, Set<string>>();
  for (const { origin, destination } of images) {
    for (const registry of [origin.registry, releaseRegistry]) {
      if (registry === '') continue;
      const source = `${registry}/${origin.repository}`;
      const known = mirrors.get(source) ?? new Set();
      mirrors.set(source, known.add(formatMirror(LOCAL_REGISTRY, destination.repository)));
    }
  }
  return [...mirrors]
    .map(([source, known]) => ({ source, mirrors: [...known] }))
    .sort((a, b) => (a.source < b.source ? -1 : 1));
}

const LOCAL_REGISTRY = `${nodeRegistryDomain(true)}:${NODE_REGISTRY_PORT}`;

/** What the unit and the scripts of the registry are told of its server's image. */
export const describeServer = (
  { source }: Pick<PlannedImage, 'source'>,
  useDistributionEntrypoint: boolean,
): RegistryImage => ({ reference: formatReference(source), useDistributionEntrypoint });
