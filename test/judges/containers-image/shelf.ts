import { hexOf, type Digest } from '../../../src/base/digest.ts';
import type { TestImage } from '../../support/images.ts';
import { readFromMedium } from './alter.ts';
import type { GoodMedium } from './media.ts';

/* Paths of the registry on a medium, as the filesystem driver of distribution has them. */

const ROOT = '/registry/docker/registry/v2';

export const RELEASE = 'openshift/release';
export const RELEASE_IMAGES = 'openshift/release-images';

export const repositoryPath = (repository: string, root = ROOT): string =>
  `${root}/repositories/${repository}`;

export const blobPath = (digest: string, root = ROOT): string => {
  const hex = hexOf(digest as Digest);
  return `${root}/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`;
};

export const tagPath = (repository: string, tag: string): string =>
  `${repositoryPath(repository)}/_manifests/tags/${tag}`;

export const revisionPath = (repository: string, digest: string): string =>
  `${repositoryPath(repository)}/_manifests/revisions/sha256/${hexOf(digest as Digest)}`;

export const layerPath = (repository: string, digest: string): string =>
  `${repositoryPath(repository)}/_layers/sha256/${hexOf(digest as Digest)}`;

/** The tag under which cosign attaches signatures. */
export const signatureTag = (digest: Digest): string => `sha256-${hexOf(digest)}.sig`;

/** The digest that a tag names. */
export const readTag = ({ path }: GoodMedium, repository: string, tag: string): string =>
  readFromMedium(path, `${tagPath(repository, tag)}/current/link`).toString('latin1');

type ReadManifest = {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string }[];
};

export const readManifest = ({ path }: GoodMedium, digest: string): ReadManifest =>
  JSON.parse(readFromMedium(path, blobPath(digest)).toString('utf8')) as ReadManifest;

/** The last layer, which no other image has. */
export function ownLayer(medium: GoodMedium, digest: string): string {
  const layer = readManifest(medium, digest).layers.at(-1);
  if (!layer) throw new Error(`${digest} has no layer`);
  return layer.digest;
}

/** The digest by which hosts pull an image of the medium. */
export function findDigest({ images }: GoodMedium, part: string): string {
  const image = images.find((one) => one.includes(part) && one.includes('@'));
  if (image === undefined) throw new Error(`no image ${part}`);
  return image.slice(image.indexOf('@') + 1);
}

/** The files by which a repository has an image under a tag. */
export function shelve(
  repository: string,
  tag: string,
  { manifests: [top], blobs }: TestImage,
): Readonly<Record<string, string | Uint8Array>> {
  if (!top) throw new Error('an image has a manifest');
  const { digest } = top.descriptor;
  return {
    [blobPath(digest)]: top.bytes,
    [`${revisionPath(repository, digest)}/link`]: digest,
    [`${tagPath(repository, tag)}/current/link`]: digest,
    [`${tagPath(repository, tag)}/index/sha256/${hexOf(digest)}/link`]: digest,
    ...Object.fromEntries([...blobs].map(([blob, bytes]) => [blobPath(blob), bytes])),
    ...Object.fromEntries(
      [...blobs.keys()].map((blob) => [`${layerPath(repository, blob)}/link`, blob]),
    ),
  };
}
