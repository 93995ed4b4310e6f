import { UsageError } from '../base/errors.ts';
import type { MirrorPlan, PlannedImage } from '../openshift/mirror/mirror-plan.ts';
import type { Need } from '../openshift/mirror/image-set.ts';
import { formatReference } from '../registry/reference.ts';
import type { BuildTools } from './build-tools.ts';
import type { LiveIsoRequest } from './live-iso/live-iso-request.ts';
import { selectImages } from './live-iso/live-iso-images.ts';
import { sumSizes } from '../base/lists.ts';

/** What `sealift why` tells. Sizes are bytes. */
export type Explanation = {
  readonly images: readonly {
    readonly name: string;
    /** By digest. */
    readonly reference: string;
    readonly repository: string;
    readonly tags: readonly string[];
    /** Manifests and blobs. */
    readonly size: number;
    /** What no other image needs. */
    readonly marginalSize: number;
    readonly neededBy: readonly Need[];
  }[];
  /** Blobs that were asked for by digest. */
  readonly blobs: readonly {
    readonly digest: string;
    readonly size: number;
    readonly users: readonly string[];
  }[];
};

/**
 * Everything of the plan that the words mean: a digest or its first digits, a reference, or a part of
 * an image's name. A blob brings the images that have it.
 *
 * @throws UsageError `why.nothing`
 */
export async function explainImage(
  what: string,
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<Explanation> {
  const { plan, reserved } = selectImages(request, tools);
  reserved.catch(() => undefined); // what does not fit is explained, too
  return explain(what, await plan);
}

export function explain(what: string, plan: MirrorPlan): Explanation {
  const all = plan.registryImage ? [...plan.images, plan.registryImage] : plan.images;
  const blobs = plan.blobs.filter(({ digest }) => isDigestOf(what, digest));
  const hit = new Set(blobs.map(({ digest }) => digest));
  const images = all.filter(
    (image) => isMeant(what, image) || image.blobs.some(({ digest }) => hit.has(digest)),
  );
  if (images.length === 0) throw nothing(what, plan);
  const users = countUsers(all);
  return {
    images: images.map((image) => describe(image, users)),
    blobs: blobs.map(({ digest, size, users }) => ({ digest, size, users })),
  };
}

/** `sha256:4f2a...` or its hex, at least four digits of it. */
const isDigestOf = (what: string, digest: string): boolean =>
  /^(sha256:)?[0-9a-f]{4,64}$/.test(what) &&
  digest.startsWith(what.startsWith('sha256:') ? what : `sha256:${what}`);

function isMeant(what: string, image: PlannedImage): boolean {
  const { name, origin, source, manifests, destination } = image;
  if (manifests.some(({ digest }) => isDigestOf(what, digest))) return true;
  const names = [name, formatReference(origin), formatReference(source), destination.repository];
  return names.some((text) => text.includes(what));
}

function countUsers(images: readonly PlannedImage[]): ReadonlyMap<string, number> {
  const users = new Map<string, number>();
  for (const image of images) {
    const digests = [...image.manifests, ...image.blobs].map(({ digest }) => digest);
    for (const digest of new Set(digests)) users.set(digest, (users.get(digest) ?? 0) + 1);
  }
  return users;
}

function describe(
  image: PlannedImage,
  users: ReadonlyMap<string, number>,
): Explanation['images'][number] {
  const pieces = [...image.manifests, ...image.blobs];
  const alone = pieces.filter(({ digest }) => users.get(digest) === 1);
  return {
    name: image.name,
    reference: formatReference(image.source),
    repository: image.destination.repository,
    tags: image.destination.tags,
    size: sumSizes(pieces),
    marginalSize: sumSizes(alone),
    neededBy: image.neededBy,
  };
}

const nothing = (what: string, plan: MirrorPlan): UsageError =>
  new UsageError('why.nothing', `the plan has nothing named "${what}"`, {
    expected: `one of ${plan.images.length} images or ${plan.blobs.length} blobs`,
    found: what,
    hint: 'name a digest, its first digits, or a part of a reference',
  });
