import { withoutUndefined } from '../../base/lists.ts';
import type { Areas } from '../../iso/extent.ts';
import type { MirrorPlan, PlannedImage } from '../../openshift/mirror/plan.ts';
import type { Release } from '../../openshift/release/release.ts';
import { isUnsigned } from '../../openshift/release/signature.ts';
import { formatReference } from '../../registry/reference.ts';
import {
  formatMediaIndex,
  type IndexExtent,
  type IndexImage,
  type MediaIndex,
} from './media-index.ts';

/** What an index describes. */
type DescribedMedium = Pick<MediaIndex, 'product' | 'base' | 'release' | 'catalogs' | 'mutable'> & {
  readonly plan: MirrorPlan;
  /** All that it carries; those whose signature was not verified are named. */
  readonly releases?: readonly Release[];
  /** All of the layout; zeros between the files are not told. */
  readonly extents: readonly (IndexExtent & { readonly source: { readonly kind: string } })[];
  readonly areas: Areas;
};

/**
 * The bytes of `/sealift/index.json`: what the medium holds, so that it can be verified, compared and
 * reused without anything else. Extents have digests and paths, images digests and places. No secret,
 * no clock, no host.
 */
export function describeMedium(medium: DescribedMedium): Uint8Array {
  const { product, base, release, plan, catalogs, extents, areas } = medium;
  const { images, registryImage } = plan;
  const { mutable } = medium;
  const unsigned = (medium.releases ?? []).filter(isUnsigned).map(({ version }) => version);
  const text = formatMediaIndex({
    format: 2,
    product,
    ...(base && { base: { digest: base.digest, size: base.size } }),
    release,
    ...(unsigned.length > 0 && { unsigned }),
    images: [...images, ...(registryImage ? [registryImage] : [])].map(describeImage),
    ...withoutUndefined({ catalogs, mutable }),
    areas,
    extents: listIndexExtents(extents),
  });
  return Buffer.from(text);
}

const describeImage = (image: PlannedImage): IndexImage => ({
  name: image.name,
  set: image.set,
  source: formatReference(image.source),
  repository: image.destination.repository,
  tags: image.destination.tags,
  manifests: image.manifests.map(({ digest }) => digest),
});

/** Those that an index names: all but padding. */
export const listIndexExtents = (extents: DescribedMedium['extents']): readonly IndexExtent[] =>
  extents.filter(({ source }) => source.kind !== 'zero').map(describeExtent);

const describeExtent = ({ offset, size, digest, paths }: IndexExtent): IndexExtent => ({
  offset,
  size,
  paths,
  ...withoutUndefined({ digest }),
});
