import { digestOf, isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { pathTo } from './distribution-layout.ts';
import { MAX_MANIFEST_SIZE } from '../manifest.ts';
import { isRepository, isTag } from './names.ts';
import type { RegistryTree } from './store.ts';

/** `sha256:` and 64 hex digits, no newline. */
const LINK_SIZE = 71;

/** The repositories of a tree, in no order: directories with `_manifests` or `_layers` in them. */
export async function listRepositories(tree: RegistryTree): Promise<string[]> {
  const repositories: string[] = [];
  const walk = async (name: string): Promise<void> => {
    const names =
      (await tree.list(name === '' ? pathTo.repositories : pathTo.repository(name))) ?? [];
    if (names.some(isReserved) && isRepository(name)) repositories.push(name);
    for (const child of names) {
      const path = name === '' ? child : `${name}/${child}`;
      if (isRepository(path)) await walk(path);
    }
  };
  await walk('');
  return repositories;
}

export async function hasRepository(tree: RegistryTree, repository: string): Promise<boolean> {
  return ((await tree.list(pathTo.repository(repository))) ?? []).some(isReserved);
}

/** The tags of a repository, in no order. */
export async function listTags(tree: RegistryTree, repository: string): Promise<string[]> {
  return ((await tree.list(pathTo.tags(repository))) ?? []).filter(isTag);
}

/**
 * The digest a link holds; undefined when there is no link.
 *
 * @throws IntegrityError `registry.link-malformed`
 */
export async function readLink(tree: RegistryTree, path: string): Promise<Digest | undefined> {
  const size = await tree.size(path);
  if (size === undefined) return undefined;
  const bytes = size === LINK_SIZE ? await tree.read(path) : undefined;
  const text = Buffer.from(bytes ?? []).toString('latin1');
  if (isDigest(text)) return text;
  throw new IntegrityError(
    'registry.link-malformed',
    `link ${path} should hold a digest of ${LINK_SIZE} bytes, but holds ${size} bytes`,
    { expected: 'sha256: and 64 hex digits', found: JSON.stringify(text) },
  );
}

/**
 * Whether there is a link to this digest.
 *
 * @throws IntegrityError `registry.link-malformed`, `registry.link-wrong` when it names another.
 */
export async function hasLink(tree: RegistryTree, path: string, digest: Digest): Promise<boolean> {
  const found = await readLink(tree, path);
  if (found === undefined || found === digest) return found !== undefined;
  throw new IntegrityError('registry.link-wrong', `link ${path} names ${found}`, {
    expected: digest,
    found,
  });
}

/**
 * A manifest's bytes; undefined when the tree does not hold them.
 *
 * @throws IntegrityError `registry.manifest-too-large`, `registry.manifest-damaged` when they have
 * another digest.
 */
export async function readManifestBytes(
  tree: RegistryTree,
  digest: Digest,
): Promise<Uint8Array | undefined> {
  const path = pathTo.blob(digest);
  const size = await tree.size(path);
  if (size !== undefined && size > MAX_MANIFEST_SIZE) throw tooLarge(digest, size);
  const bytes = await tree.read(path);
  if (bytes === undefined) return undefined;
  const found = digestOf(bytes);
  if (found === digest) return bytes;
  throw new IntegrityError(
    'registry.manifest-damaged',
    `manifest ${digest} has bytes with the digest ${found}`,
    { expected: digest, found },
  );
}

const tooLarge = (digest: Digest, size: number): IntegrityError =>
  new IntegrityError(
    'registry.manifest-too-large',
    `manifest ${digest} has ${size} bytes, more than the ${MAX_MANIFEST_SIZE} any registry takes`,
    { expected: `at most ${MAX_MANIFEST_SIZE} bytes`, found: `${size} bytes` },
  );

const isReserved = (name: string): boolean => name === '_manifests' || name === '_layers';
