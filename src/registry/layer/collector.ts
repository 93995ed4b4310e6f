import { IntegrityError } from '../../base/errors.ts';
import type { Entry } from './stream.ts';

/** An entry of one layer, `depth` layers below the top. */
export type Place = { readonly depth: number; readonly path: string };

/** Keeps whole files in memory, up to a limit for all of them together. */
export type Collector = {
  /**
   * Reads a body and keeps it; a later one of the same place replaces it.
   *
   * @throws IntegrityError `layer.files-too-large`
   */
  take: (place: Place, entry: Entry) => Promise<void>;
  get: (place: Place) => Uint8Array | undefined;
};

export function createCollector(limit: number): Collector {
  const files = new Map<string, Uint8Array>();
  const keyOf = ({ depth, path }: Place): string => `${depth}/${path}`;
  let total = 0;
  return {
    async take(place, entry) {
      const key = keyOf(place);
      total -= files.get(key)?.length ?? 0;
      total += entry.header.size;
      if (total > limit) throw tooLarge(place.path, limit, total);
      const chunks: Buffer[] = [];
      for await (const chunk of entry.body) chunks.push(chunk);
      files.set(key, Buffer.concat(chunks));
    },
    get: (place) => files.get(keyOf(place)),
  };
}

const tooLarge = (path: string, limit: number, total: number): IntegrityError =>
  new IntegrityError(
    'layer.files-too-large',
    `image files up to "${path}" take ${total} bytes, but only ${limit} may be read at once`,
    { expected: `at most ${limit} bytes`, found: `${total} bytes` },
  );
