import { isDigest, type Digest } from '../../base/digest.ts';
import { pathTo } from '../layout/distribution-layout.ts';
import { parseManifest } from '../manifest.ts';
import {
  hasLink,
  hasRepository,
  listRepositories,
  listTags,
  readLink,
  readManifestBytes,
} from '../layout/stored.ts';
import type { RegistryTree } from '../layout/store.ts';
import { failure, type Failure } from './failure.ts';
import type { Route } from './route.ts';

/** What to send for a request, before methods, ranges and conditions are looked at. */
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
      /** Where it is small. */
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

/** Part of a sorted list; `next` is the query of the page after it, when there is one. */
type Page = {
  readonly kind: 'page';
  readonly items: readonly string[];
  readonly next: string | undefined;
};

/** As distribution has it. A page has 256 KiB at most. */
const MOST_ITEMS = 1000;

/**
 * distribution-spec 1.1, "Listing Tags": at most `n` items that sort after `last`, and at most a
 * thousand. `last` need not be in the list.
 */
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
