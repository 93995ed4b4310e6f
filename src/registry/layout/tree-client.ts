import { join } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { BlobSource, Content } from '../../base/store/blob-source.ts';
import type { RegistryClient } from '../client.ts';
import { parseStored, type StoredManifest } from '../manifest.ts';
import { formatReference, type Reference } from '../reference.ts';
import { pathTo } from './distribution.ts';
import { type RegistryTree, hasLink, readLink, readManifestBytes } from './tree.ts';

export type TreeClientOptions = {
  readonly tree: RegistryTree;
  /** Directory of the tree on this machine. */
  readonly root: string;
  /** Repositories of the tree that may have what a reference names, in the order of search. */
  readonly repositoriesOf: (reference: Reference) => Promise<readonly string[]>;
};

/**
 * Answers from a registry's tree on disk, regardless of the registry in a reference, without network.
 * Every manifest is checked against its digest; a reader of a blob must do the same.
 */
export function createTreeClient(options: TreeClientOptions): RegistryClient {
  const { tree, root } = options;
  const source = createTreeSource(options);
  return {
    async fetchManifest(reference) {
      const digest = await findDigest(reference, options);
      if (digest !== undefined) return readStored(tree, { digest, root });
      throw new RegistryError(
        'registry.manifest-unknown',
        `there is no ${formatReference(reference)} in ${root}`,
        { hint: 'mirror the image into it, or leave it out of the configuration' },
      );
    },
    async resolveTag(reference) {
      const digest = await findDigest(reference, options);
      return digest && (await readStored(tree, { digest, root })).descriptor;
    },
    fetchReferrers: () => Promise.resolve([]), // oc-mirror copies none
    sourcesOf: () => [source],
    statistics: () => [],
    close: () => Promise.resolve(),
  };
}

/**
 * A manifest of a tree by its digest.
 *
 * @throws IntegrityError `registry.blob-missing`, and what `readManifestBytes` and `parseManifest` throw
 */
export async function readStored(
  tree: RegistryTree,
  { digest, root }: { readonly digest: Digest; readonly root: string },
): Promise<StoredManifest> {
  const bytes = await readManifestBytes(tree, digest);
  if (bytes === undefined) {
    throw new IntegrityError(
      'registry.blob-missing',
      `manifest ${digest} is linked in ${root}, but its file does not exist`,
      { expected: join(root, pathTo.blob(digest)), found: 'nothing', hint: 'mirror it again' },
    );
  }
  return parseStored(bytes, digest);
}

/**
 * The digest that a tag of a repository names; undefined when the repository does not have the tag.
 *
 * @throws IntegrityError `registry.tag-dangling`, `registry.link-malformed`
 */
export async function readTag(
  tree: RegistryTree,
  { repository, tag }: { readonly repository: string; readonly tag: string },
): Promise<Digest | undefined> {
  const digest = await readLink(tree, pathTo.tagLink(repository, tag));
  if (digest === undefined || (await hasRevision(tree, repository, digest))) return digest;
  throw new IntegrityError(
    'registry.tag-dangling',
    `tag ${repository}:${tag} names ${digest}, which its repository does not have`,
    {
      expected: pathTo.revisionLink(repository, digest),
      found: 'nothing',
      hint: 'mirror it again',
    },
  );
}

const hasRevision = (tree: RegistryTree, repository: string, digest: Digest): Promise<boolean> =>
  hasLink(tree, pathTo.revisionLink(repository, digest), digest);

async function findDigest(
  reference: Reference,
  { tree, repositoriesOf }: TreeClientOptions,
): Promise<Digest | undefined> {
  const { digest, tag = 'latest' } = reference;
  for (const repository of await repositoriesOf(reference)) {
    const found =
      digest === undefined
        ? await readTag(tree, { repository, tag })
        : (await hasRevision(tree, repository, digest)) && digest;
    if (found !== undefined && found !== false) return found;
  }
  return undefined;
}

function createTreeSource({ tree, root }: TreeClientOptions): BlobSource {
  const isHere = async (blob: Content): Promise<boolean> => {
    const size = await tree.size(pathTo.blob(blob.digest));
    if (size === undefined || size === blob.size) return size !== undefined;
    throw wrongSize(blob, { size, root });
  };
  return {
    name: root,
    local: true,
    async open(blob, { offset }) {
      if (!(await isHere(blob))) return undefined;
      const range = { start: offset, end: blob.size - 1 };
      return { offset, body: tree.stream(pathTo.blob(blob.digest), range) };
    },
    async fileOf(blob) {
      if (!(await isHere(blob))) return undefined;
      const path = pathTo.blob(blob.digest);
      return tree.locate?.(path) ?? { path: join(root, path), position: 0 };
    },
  };
}

function wrongSize(
  blob: Content,
  { size, root }: { readonly size: number; readonly root: string },
): IntegrityError {
  const path = join(root, pathTo.blob(blob.digest));
  return new IntegrityError(
    size > blob.size ? 'blob.too-long' : 'blob.too-short',
    `blob ${blob.digest} should be ${blob.size} bytes, but ${path} has ${size}`,
    { expected: String(blob.size), found: String(size), hint: 'mirror the image again' },
  );
}
