import { hexOf, type Digest } from '../../base/digest.ts';
import { createFilePlan, type FilePlan, type RegistryFile } from './file-plan.ts';
import { blobsOf } from '../foreign-layer.ts';
import type { StoredManifest } from '../manifest.ts';
import { checkRepository, checkTag } from './names.ts';

export type { RegistryFile } from './file-plan.ts';

/** An image and where it is to be found in our registry. */
export type PlacedImage = {
  readonly repository: string;
  readonly tags: readonly string[];
  /** The one the tags name first, then every child that is carried: an index may be sparse. */
  readonly manifests: readonly StoredManifest[];
};

/** Where distribution's file system driver keeps everything, below its root directory. */
const ROOT = '/docker/registry/v2';

/** Paths of distribution's storage layout (its registry/storage/paths.go), one function a kind. */
export const pathTo = {
  blob: (digest: Digest): string =>
    `${ROOT}/blobs/sha256/${hexOf(digest).slice(0, 2)}/${hexOf(digest)}/data`,
  repositories: `${ROOT}/repositories`,
  repository: (repository: string): string => `${ROOT}/repositories/${repository}`,
  layerLink: (repository: string, digest: Digest): string =>
    `${ROOT}/repositories/${repository}/_layers/sha256/${hexOf(digest)}/link`,
  revisions: (repository: string): string =>
    `${ROOT}/repositories/${repository}/_manifests/revisions/sha256`,
  revisionLink: (repository: string, digest: Digest): string =>
    `${pathTo.revisions(repository)}/${hexOf(digest)}/link`,
  tags: (repository: string): string => `${ROOT}/repositories/${repository}/_manifests/tags`,
  tagLink: (repository: string, tag: string): string =>
    `${pathTo.tags(repository)}/${tag}/current/link`,
  tagIndexLink: (options: { repository: string; tag: string; digest: Digest }): string =>
    `${pathTo.tags(options.repository)}/${options.tag}/index/sha256/${hexOf(options.digest)}/link`,
} as const;

/**
 * Every file of a registry that serves these images: sorted by path, each path once. Manifests are
 * held as bytes, configs and layers are left as blobs. Foreign layers have no file.
 *
 * @throws IntegrityError `layout.size-conflict`, `layout.digest-mismatch`; ConfigError
 * `layout.path-conflict` when two images claim one tag, `reference.malformed`.
 */
export function planDistributionTree(images: readonly PlacedImage[]): RegistryFile[] {
  const plan = createFilePlan();
  for (const image of images) {
    checkRepository(image.repository);
    for (const stored of image.manifests) placeManifest(plan, image.repository, stored);
    const top = image.manifests[0];
    if (top !== undefined) placeTags(plan, image, top.descriptor.digest);
  }
  return plan.files();
}

function placeManifest(plan: FilePlan, repository: string, stored: StoredManifest): void {
  const { digest } = stored.descriptor;
  plan.addManifest(pathTo.blob(digest), stored);
  addLink(plan, pathTo.revisionLink(repository, digest), digest);
  for (const blob of blobsOf(stored.manifest)) {
    plan.addBlob(pathTo.blob(blob.digest), blob);
    addLink(plan, pathTo.layerLink(repository, blob.digest), blob.digest);
  }
}

function placeTags(plan: FilePlan, { repository, tags }: PlacedImage, digest: Digest): void {
  for (const tag of tags) {
    checkTag(tag);
    addLink(plan, pathTo.tagLink(repository, tag), digest);
    addLink(plan, pathTo.tagIndexLink({ repository, tag, digest }), digest);
  }
}

/** A link holds a digest and nothing else, not even a newline: 71 bytes. */
function addLink(plan: FilePlan, path: string, digest: Digest): void {
  plan.addBytes(path, Buffer.from(digest, 'ascii'));
}
