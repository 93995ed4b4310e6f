import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Descriptor } from '../../registry/descriptor.ts';
import type { BlobCache } from '../../registry/blob-cache.ts';

/**
 * A manifest that was fetched before, out of the cache and checked again.
 *
 * @throws IntegrityError `cache.missing`, `cache.damaged`
 */
export async function readCached(
  cache: BlobCache,
  manifest: Descriptor,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { digest } = manifest;
  const opened = await cache.source.open(manifest, { offset: 0, signal });
  if (!opened) throw new IntegrityError('cache.missing', `manifest ${digest} left the cache`);
  const pieces: Uint8Array[] = [];
  for await (const piece of opened.body) pieces.push(piece as Uint8Array);
  const bytes = Buffer.concat(pieces);
  const found = digestOf(bytes);
  if (found === digest) return bytes;
  throw new IntegrityError('cache.damaged', `cached manifest ${digest} has digest ${found}`, {
    expected: digest,
    found,
    hint: 'remove the cache folder of the work directory and build again',
  });
}
