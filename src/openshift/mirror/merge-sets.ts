import { formatReference } from '../../registry/reference.ts';
import type { ImageSet, Need, WantedImage } from './image-set.ts';

/**
 * One image for all that name it in the same way and want it in the same place: it belongs to the
 * first set that has it, has its first name, and knows everybody's need.
 */
export function mergeSets(sets: readonly ImageSet[]): readonly ImageSet[] {
  const merged = new Map<string, { image: WantedImage; needs: Map<string, Need> }>();
  const order = sets.map(({ name, images }) => {
    const keys = new Set<string>();
    for (const image of images) {
      const key = keyOf(image);
      const known = merged.get(key);
      const entry = known ?? { image, needs: new Map<string, Need>() };
      if (known === undefined) keys.add(key);
      merged.set(key, entry);
      for (const need of image.neededBy) entry.needs.set(JSON.stringify(need), need);
    }
    return { name, keys };
  });
  return order.map(({ name, keys }) => ({
    name,
    images: [...keys].flatMap((key) => {
      const entry = merged.get(key);
      return entry ? [{ ...entry.image, neededBy: [...entry.needs.values()] }] : [];
    }),
  }));
}

const keyOf = ({ source, destination: { repository, tags } }: WantedImage): string =>
  JSON.stringify([formatReference(source), repository, tags]);
