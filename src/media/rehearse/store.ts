import { SealiftError } from '../../base/errors.ts';
import type { Digest } from '../../base/digest.ts';
import {
  checkClosure,
  isForPlatform,
  parseManifest,
  pathTo,
  type Platform,
  readLink,
  readManifestBytes,
  type Reference,
  type RegistryTree,
  type StoredManifest,
} from '../../registry/index.ts';

/** An image as the registry of a medium gives it to a node. */
export type PulledImage = {
  readonly repository: string;
  /** Digest of the manifest of the node's platform. */
  readonly digest: Digest;
};

/** The registry of a medium, asked by a program that pulls. */
export type Store = {
  /** The digest that a reference to this registry names; undefined if the registry answers 404. */
  readonly resolve: (reference: Reference) => Promise<Digest | undefined>;
  /**
   * Follows a pull to the manifest of a platform.
   *
   * @returns the image, or the reason why the pull fails
   */
  readonly pull: (repository: string, digest: Digest) => Promise<PulledImage | string>;
  readonly readManifest: (digest: Digest) => Promise<StoredManifest['manifest'] | undefined>;
  /** Bytes of a small blob; undefined if it is absent. */
  readonly readBlob: (digest: Digest) => Promise<Uint8Array | undefined>;
};

/** Opens the registry of a medium. Each image is looked through once, as `verify` does. */
export async function openStore(tree: RegistryTree, platform: Platform): Promise<Store> {
  const broken = new Map<string, string>();
  for (const { repository, reference, path, problem } of await checkClosure(tree)) {
    const key = `${repository}@${reference}`;
    if (!broken.has(key)) broken.set(key, `${path} ${problem}`);
  }
  tree.begin?.();
  const readManifest: Store['readManifest'] = async (digest) => {
    const bytes = await readManifestBytes(tree, digest);
    return bytes && parseManifest(bytes);
  };
  const follow = async (repository: string, digest: Digest): Promise<PulledImage | string> => {
    const problem = broken.get(`${repository}@${digest}`);
    if (problem !== undefined) return problem;
    const manifest = await readManifest(digest);
    if (manifest === undefined) return `manifest ${digest} has no file`;
    if (manifest.kind === 'manifest') return { repository, digest };
    const child = manifest.manifests.find((one) => isForPlatform(one, platform));
    if (!child) return `index ${digest} has no image for ${platform.os}/${platform.architecture}`;
    if ((await readLink(tree, pathTo.revisionLink(repository, child.digest))) === undefined) {
      return `manifest ${child.digest} is not in repository ${repository}`;
    }
    return follow(repository, child.digest);
  };
  return {
    readManifest,
    resolve: async ({ repository, tag, digest }) =>
      digest === undefined
        ? readLink(tree, pathTo.tagLink(repository, tag ?? 'latest'))
        : readLink(tree, pathTo.revisionLink(repository, digest)),
    pull: (repository, digest) => explain(() => follow(repository, digest)),
    readBlob: (digest) => tree.read(pathTo.blob(digest)),
  };
}

/** Damage is a reason why a pull fails. */
async function explain(follow: () => Promise<PulledImage | string>): Promise<PulledImage | string> {
  try {
    return await follow();
  } catch (error) {
    if (error instanceof SealiftError) return error.message;
    throw error;
  }
}
