import type { Digest } from '../../base/digest.ts';
import type { Reference, WritingClient } from '../../registry/index.ts';

/** First the given repositories, then the images' original ones, or their mirrors in this registry. */
export function createMountsOf(
  { sourcesOf }: { readonly sourcesOf: (blob: Digest) => readonly Reference[] },
  {
    client,
    registry,
    mountFrom,
  }: {
    readonly client: Pick<WritingClient, 'placesOf'>;
    readonly registry: string;
    readonly mountFrom: readonly string[];
  },
): (layer: Digest) => readonly string[] {
  const known = new Map<Reference, readonly string[]>();
  const findHere = (source: Reference): readonly string[] => {
    const found =
      known.get(source) ??
      client
        .placesOf(source)
        .filter((place) => place.registry === registry)
        .map(({ repository }) => repository);
    known.set(source, found);
    return found;
  };
  return (layer) => [...new Set([...mountFrom, ...sourcesOf(layer).flatMap(findHere)])];
}
