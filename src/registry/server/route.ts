import { isDigest, type Digest } from '../../base/digest.ts';
import { isRepository } from '../layout/names.ts';
import { failure, type Failure } from './failure.ts';

/** What a request asks for: distribution-spec 1.1, "Endpoints", the reading half. */
export type Route =
  | { readonly kind: 'ping' }
  | { readonly kind: 'catalog' }
  | { readonly kind: 'tags'; readonly repository: string }
  | { readonly kind: 'manifest'; readonly repository: string; readonly reference: string }
  | { readonly kind: 'blob'; readonly repository: string; readonly digest: Digest };

/**
 * Reads a request path. The path is taken as it was sent, never normalised: a name with `..` fails
 * its grammar, so that no path of the tree is made of it.
 */
export function parseRoute(path: string): Route | Failure {
  const decoded = decode(path);
  if (decoded === undefined) return failure('NAME_INVALID', 'path is not percent-encoded');
  if (decoded === '/v2/' || decoded === '/v2') return { kind: 'ping' };
  if (decoded === '/v2/_catalog') return { kind: 'catalog' };
  const tags = /^\/v2\/(.+)\/tags\/list$/.exec(decoded);
  if (tags !== null) return within(tags[1], (repository) => ({ kind: 'tags', repository }));
  const [, name, kind, reference = ''] =
    /^\/v2\/(.+)\/(manifests|blobs|referrers)\/([^/]+)$/.exec(decoded) ?? [];
  if (name === undefined) return failure('UNSUPPORTED', 'this registry has no such endpoint');
  return within(name, (repository) => routeOf(kind, repository, reference));
}

function routeOf(kind: string | undefined, repository: string, reference: string): Route | Failure {
  const isNamedByDigest = kind !== 'manifests' || reference.includes(':');
  if (isNamedByDigest && !isDigest(reference)) {
    return failure('DIGEST_INVALID', 'digest is not sha256: and 64 hex digits', { reference });
  }
  if (kind === 'manifests') return { kind: 'manifest', repository, reference };
  if (kind === 'blobs') return { kind: 'blob', repository, digest: reference as Digest };
  // "Listing Referrers": 404 tells a client to look for the fallback tag.
  return failure('UNSUPPORTED', 'this registry has no referrers API', { reference });
}

function within(
  name: string | undefined,
  then: (repository: string) => Route | Failure,
): Route | Failure {
  if (name !== undefined && isRepository(name)) return then(name);
  return failure('NAME_INVALID', 'repository name breaks the grammar of names', { name });
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined; // the caller answers 400
  }
}
