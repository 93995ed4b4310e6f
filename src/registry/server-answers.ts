import { isDigest, type Digest } from '../base/digest.ts';
import { withoutUndefined } from '../base/lists.ts';
import { pathTo } from './layout/distribution.ts';
import {
  hasLink,
  hasRepository,
  listRepositories,
  listTags,
  readLink,
  readManifestBytes,
  type RegistryTree,
} from './layout/tree.ts';
import { parseManifest } from './manifest.ts';
import { isRepository } from './reference.ts';

/** distribution-spec 1.1, "Error Codes", and those of distribution's own; each with its status. */
const STATUS = {
  BLOB_UNKNOWN: 404,
  DIGEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  PAGINATION_NUMBER_INVALID: 400,
  TOOMANYREQUESTS: 429,
  UNAVAILABLE: 503,
  UNKNOWN: 500,
  UNSUPPORTED: 404,
} as const;

export type Failure = {
  readonly kind: 'failure';
  readonly status: number;
  readonly code: keyof typeof STATUS;
  readonly message: string;
  readonly detail: Readonly<Record<string, string | undefined>> | undefined;
};

export const failure = (
  code: Failure['code'],
  message: string,
  detail?: Failure['detail'],
): Failure => ({ kind: 'failure', status: STATUS[code], code, message, detail });

/** distribution-spec 1.1, "Error Codes": the body of every answer from 400 up. */
export const encodeFailure = ({ code, message, detail }: Failure): Buffer =>
  Buffer.from(JSON.stringify({ errors: [{ code, message, ...withoutUndefined({ detail }) }] }));

/** A parsed request: distribution-spec 1.1, "Endpoints", the reading half. */
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
  if (decoded === undefined) return failure('NAME_INVALID', 'path has malformed percent-encoding');
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
  return failure('NAME_INVALID', 'repository name is not valid', { name });
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined; // the caller answers 400
  }
}

/** The answer to a request, before methods, ranges and conditions are looked at. */
export type Answer =
  | Failure
  | { readonly kind: 'json'; readonly bytes: Buffer; readonly link?: string }
  | {
      readonly kind: 'manifest';
      readonly digest: Digest;
      readonly mediaType: string;
      readonly path: string;
      /** Bytes. */
      readonly size: number;
      /** Content, if it is small. */
      readonly bytes?: Uint8Array;
    }
  | {
      readonly kind: 'blob';
      readonly digest: Digest;
      readonly path: string;
      /** Bytes. */
      readonly size: number;
    };

/** distribution-spec 1.1, "Pull" and "Content Discovery", out of a tree. */
export async function answerRoute(
  tree: RegistryTree,
  route: Route,
  query: URLSearchParams,
): Promise<Answer> {
  switch (route.kind) {
    case 'ping':
      return { kind: 'json', bytes: Buffer.from('{}') };
    case 'catalog':
      return answerCatalog(tree, query);
    case 'tags':
      return answerTags(tree, route.repository, query);
    case 'manifest':
      return answerManifest(tree, route);
    case 'blob':
      return answerBlob(tree, route);
  }
}

async function answerCatalog(tree: RegistryTree, query: URLSearchParams): Promise<Answer> {
  const page = pageOf(await listRepositories(tree), query);
  if (page.kind === 'failure') return page;
  return answerJson({ repositories: page.items }, page.next && `/v2/_catalog?${page.next}`);
}

async function answerTags(
  tree: RegistryTree,
  repository: string,
  query: URLSearchParams,
): Promise<Answer> {
  if (!(await hasRepository(tree, repository))) return nameUnknown(repository);
  const page = pageOf(await listTags(tree, repository), query);
  if (page.kind === 'failure') return page;
  return answerJson(
    { name: repository, tags: page.items },
    page.next && `/v2/${repository}/tags/list?${page.next}`,
  );
}

function answerJson(value: unknown, next: string | undefined): Answer {
  const bytes = Buffer.from(JSON.stringify(value));
  return { kind: 'json', bytes, ...(next !== undefined && { link: `<${next}>; rel="next"` }) };
}

/** A larger manifest is read again piece by piece: hundreds of clients may be slow to take it. */
const SMALL = 64 * 1024;

async function answerManifest(
  tree: RegistryTree,
  { repository, reference }: Route & { kind: 'manifest' },
): Promise<Answer> {
  const digest = isDigest(reference)
    ? reference
    : await readLink(tree, pathTo.tagLink(repository, reference));
  const isLinked =
    digest !== undefined && (await hasLink(tree, pathTo.revisionLink(repository, digest), digest));
  const bytes = isLinked ? await readManifestBytes(tree, digest) : undefined;
  if (digest === undefined || bytes === undefined) {
    if (!(await hasRepository(tree, repository))) return nameUnknown(repository);
    return failure('MANIFEST_UNKNOWN', 'manifest is not in this repository', { reference });
  }
  return {
    kind: 'manifest',
    digest,
    mediaType: parseManifest(bytes).mediaType,
    path: pathTo.blob(digest),
    size: bytes.length,
    ...(bytes.length <= SMALL && { bytes }),
  };
}

async function answerBlob(
  tree: RegistryTree,
  { repository, digest }: Route & { kind: 'blob' },
): Promise<Answer> {
  const path = pathTo.blob(digest);
  const isLinked = await hasLink(tree, pathTo.layerLink(repository, digest), digest);
  const size = isLinked ? await tree.size(path) : undefined;
  if (size !== undefined) return { kind: 'blob', digest, path, size };
  if (!(await hasRepository(tree, repository))) return nameUnknown(repository);
  return failure('BLOB_UNKNOWN', 'blob is not in this repository', { digest });
}

const nameUnknown = (name: string): Failure =>
  failure('NAME_UNKNOWN', 'repository is not in this registry', { name });

/** Part of a sorted list; `next` is the query of the next page, if there is one. */
type Page = {
  readonly kind: 'page';
  readonly items: readonly string[];
  readonly next: string | undefined;
};

/** Most items of a page, as in distribution. A page has 256 KiB at most. */
const MOST_ITEMS = 1000;

/** distribution-spec 1.1, "Listing Tags": at most `n` items after `last`, which need not be in the list. */
function pageOf(items: readonly string[], query: URLSearchParams): Page | Failure {
  const n = query.get('n');
  const last = query.get('last');
  if (n !== null && !/^\d{1,9}$/.test(n)) {
    return failure('PAGINATION_NUMBER_INVALID', 'n is not a valid number of items', { n });
  }
  const sorted = items.toSorted((a, b) => (a < b ? -1 : 1));
  const rest = last === null ? sorted : sorted.filter((item) => item > last);
  const count = Math.min(n === null ? MOST_ITEMS : Number(n), MOST_ITEMS);
  const page = rest.slice(0, count);
  const end = page.at(-1);
  const hasMore = page.length < rest.length && end !== undefined;
  const next = hasMore
    ? new URLSearchParams({ n: String(count), last: end }).toString()
    : undefined;
  return { kind: 'page', items: page, next };
}
