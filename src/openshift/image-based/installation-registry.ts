import { formatReference } from '../../registry/reference.ts';
import type { PlannedImage } from '../mirror/mirror-plan.ts';
import { formatMirror } from '../mirror/plan-mirrors.ts';
import {
  NODE_REGISTRY_PORT,
  nodeRegistryDomain,
  type RegistryImage,
} from '../node/node-registry.ts';

/** A repository whose images are on the medium, and where the live system's own registry has them. */
export type LocalMirror = { readonly source: string; readonly mirror: string };

/** The registry on the medium, as the live system is told of it. */
export type LocalRegistry = {
  readonly image: RegistryImage;
  readonly mirrors: readonly LocalMirror[];
};

/**
 * Every repository as it is named, each once. Release images are asked for at the registry that they
 * are precached from too, where the configuration names one.
 */
export function planLocalMirrors(
  images: readonly PlannedImage[],
  releaseRegistry: string,
): readonly LocalMirror[] {
  const mirrors = new Map<string, string>();
  for (const { origin, destination, set } of images) {
    const mirror = formatMirror(
      `${nodeRegistryDomain(true)}:${NODE_REGISTRY_PORT}`,
      destination.repository,
    );
    mirrors.set(`${origin.registry}/${origin.repository}`, mirror);
    if (set !== 'release' || releaseRegistry === '') continue;
    mirrors.set(`${releaseRegistry}/${origin.repository}`, mirror);
  }
  return [...mirrors].map(([source, mirror]) => ({ source, mirror })).sort(bySource);
}

const bySource = (a: LocalMirror, b: LocalMirror): number => (a.source < b.source ? -1 : 1);

/** What the unit and the scripts of the registry are told of its server's image. */
export const describeServer = (
  { source }: Pick<PlannedImage, 'source'>,
  useDistributionEntrypoint: boolean,
): RegistryImage => ({ reference: formatReference(source), useDistributionEntrypoint });
