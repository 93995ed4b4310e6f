import { SealiftError } from '../../base/errors.ts';
import type { Digest } from '../../base/digest.ts';
import {
  blobsOf,
  formatReference,
  type ImageManifest,
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

export type PulledImage = {
  readonly repository: string;
  /** Digest of the manifest of the node's platform. */
  readonly digest: Digest;
  readonly image: ImageManifest;
};

/** The registry of a medium, asked by a program that pulls. */
export type Store = {
  /** The digest that a reference to this registry names; undefined if the registry answers 404. */
  readonly resolve: (reference: Reference) => Promise<Digest | undefined>;
  /**
   * Follows a pull to the manifest of a platform, and looks for its config and layers. A text is the reason
   * why the pull fails.
   */
  readonly pull: (repository: string, digest: Digest) => Promise<PulledImage | string>;
  readonly readManifest: (digest: Digest) => Promise<StoredManifest['manifest'] | undefined>;
  /** Bytes of a small blob; undefined if it is absent. */
  readonly readBlob: (digest: Digest) => Promise<Uint8Array | undefined>;
};

/** Remembers what it looked up: nodes pull the same layers again and again. */
export function createStore(tree: RegistryTree, platform: Platform): Store {
  const pulls = new Map<string, Promise<PulledImage | string>>();
  const sizes = new Map<string, Promise<number | undefined>>();
  const sizeOf = (path: string): Promise<number | undefined> => {
    const known = sizes.get(path) ?? tree.size(path);
    sizes.set(path, known);
    return known;
  };
  const readManifest: Store['readManifest'] = async (digest) => {
    const bytes = await readManifestBytes(tree, digest);
    return bytes && parseManifest(bytes);
  };
  const follow = async (repository: string, digest: Digest): Promise<PulledImage | string> => {
    const manifest = await readManifest(digest);
    if (manifest === undefined) return `manifest ${digest} has no file`;
    if (manifest.kind === 'manifest') {
      const problem = await findMissingBlob({ tree, sizeOf }, repository, manifest);
      return problem ?? { repository, digest, image: manifest };
    }
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
    pull(repository, digest) {
      const key = formatReference({ registry: '', repository, digest });
      const known = pulls.get(key) ?? explain(() => follow(repository, digest));
      pulls.set(key, known);
      return known;
    },
    readBlob: (digest) => tree.read(pathTo.blob(digest)),
  };
}

type Sized = {
  readonly tree: RegistryTree;
  readonly sizeOf: (path: string) => Promise<number | undefined>;
};

async function findMissingBlob(
  { sizeOf }: Sized,
  repository: string,
  manifest: ImageManifest,
): Promise<string | undefined> {
  for (const { digest, size } of blobsOf(manifest)) {
    const found = await sizeOf(pathTo.blob(digest));
    if (found === undefined) return `blob ${digest} is not on the medium`;
    if (found !== size) return `blob ${digest} has ${found} bytes instead of ${size}`;
    if ((await sizeOf(pathTo.layerLink(repository, digest))) === undefined) {
      return `blob ${digest} is not in repository ${repository}`;
    }
  }
  return undefined;
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
