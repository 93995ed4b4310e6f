import type { Digest } from '../base/digest.ts';
import { digestOf } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { MAX_MANIFEST_SIZE } from '../registry/manifest.ts';
import type { BlobCache } from '../registry/blob-cache.ts';

/**
 * A manifest that was fetched before, out of the cache and checked again.
 *
 * @throws IntegrityError `cache.missing`, `cache.damaged`
 */
export async function readCached(
  cache: BlobCache,
  digest: Digest,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const blob = { mediaType: 'application/octet-stream', digest, size: MAX_MANIFEST_SIZE };
  const opened = await cache.source.open(blob, { offset: 0, signal });
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
