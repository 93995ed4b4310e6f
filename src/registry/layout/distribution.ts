import { digestOf, type Digest, hexOf } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { type Descriptor, type StoredManifest, blobsOf } from '../manifest.ts';
import { checkRepository, checkTag } from '../reference.ts';

/** A file of a registry's tree: small bytes of ours, or a blob that is poured later. */
export type RegistryFile = {
  /** Absolute within the tree, `/docker/registry/v2/...`. */
  readonly path: string;
  readonly content:
    | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
    | { readonly kind: 'blob'; readonly digest: Digest; readonly size: number };
};

export type PlacedImage = {
  readonly repository: string;
  readonly tags: readonly string[];
  /**
   * Manifests: first the one that the tags name, then every child that is carried. An index may be sparse.
   */
  readonly manifests: readonly StoredManifest[];
};

/** Directory of everything that distribution's file system driver keeps, below its root directory. */
const ROOT = '/docker/registry/v2';

/** Paths of distribution's storage layout (its registry/storage/paths.go), one function for each kind. */
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

/** containers/image, directory transport: content of its `version` file. */
const VERSION = 'Directory Transport Version: 1.1\n';

/**
 * Every file of an image in the form that `skopeo` and `podman` read as `dir:`: `manifest.json`,
 * further manifests as `<hex>.manifest.json`, and blobs under their bare hex digest. The image's own
 * manifest comes first, then the children that are carried.
 *
 * @throws IntegrityError `layout.size-conflict`, `layout.digest-mismatch`
 */
export function planDirLayout(manifests: readonly StoredManifest[]): RegistryFile[] {
  const plan = createFilePlan();
  plan.addBytes('/version', Buffer.from(VERSION));
  for (const [index, stored] of manifests.entries()) {
    const name = index === 0 ? '' : `${hexOf(stored.descriptor.digest)}.`;
    plan.addManifest(`/${name}manifest.json`, stored);
    for (const blob of blobsOf(stored.manifest)) plan.addBlob(`/${hexOf(blob.digest)}`, blob);
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

/** Collects files; what is added twice must be the same. */
export type FilePlan = {
  addManifest: (path: string, manifest: StoredManifest) => void;
  addBlob: (path: string, blob: Descriptor) => void;
  addBytes: (path: string, bytes: Uint8Array) => void;
  /** Sorted by path, in UTF-16 code units. */
  files: () => RegistryFile[];
};

function createFilePlan(): FilePlan {
  const files = new Map<string, RegistryFile>();
  const sizes = new Map<Digest, number>();
  const checkSize = ({ digest, size }: Descriptor): void => {
    const known = sizes.get(digest) ?? size;
    if (known !== size) throw sizeConflict(digest, known, size);
    sizes.set(digest, size);
  };
  return {
    addManifest(path, { descriptor, bytes }) {
      checkManifest(descriptor, bytes);
      checkSize(descriptor);
      files.set(path, { path, content: { kind: 'bytes', bytes } });
    },
    addBlob(path, blob) {
      checkSize(blob);
      // A manifest may be named as a blob, too: its bytes are already here.
      if (files.has(path)) return;
      files.set(path, { path, content: { kind: 'blob', digest: blob.digest, size: blob.size } });
    },
    addBytes(path, bytes) {
      const known = files.get(path)?.content;
      if (known?.kind === 'bytes' && !Buffer.from(known.bytes).equals(bytes)) {
        throw pathConflict(path, known.bytes, bytes);
      }
      files.set(path, { path, content: { kind: 'bytes', bytes } });
    },
    files: () => [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1)),
  };
}

function checkManifest({ digest, size }: Descriptor, bytes: Uint8Array): void {
  if (bytes.length !== size) throw sizeConflict(digest, size, bytes.length);
  const found = digestOf(bytes);
  if (found === digest) return;
  throw new IntegrityError(
    'layout.digest-mismatch',
    `manifest ${digest} has bytes with the digest ${found}`,
    { expected: digest, found },
  );
}

const sizeConflict = (digest: Digest, expected: number, found: number): IntegrityError =>
  new IntegrityError(
    'layout.size-conflict',
    `${digest} is ${expected} bytes in one place and ${found} bytes in another`,
    { expected: `${expected} bytes`, found: `${found} bytes` },
  );

function pathConflict(path: string, known: Uint8Array, added: Uint8Array): ConfigError {
  const expected = Buffer.from(known).toString('utf8', 0, 80);
  const found = Buffer.from(added).toString('utf8', 0, 80);
  return new ConfigError(
    'layout.path-conflict',
    `${path} should hold ${expected} for one image and ${found} for another`,
    { expected, found, hint: 'give the two images different tags or repositories' },
  );
}
