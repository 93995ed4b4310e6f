import type { IsoImage } from '../../iso/open-iso.ts';
import { parseBundleFile, type BundleFile } from './bundle-file.ts';
import { BUNDLE_PATH } from './media-paths.ts';
import {
  RELEASE_BUNDLE_REPOSITORY,
  RELEASE_DIGEST_ANNOTATION,
} from '../../openshift/release/release-bundle.ts';
import { pathTo } from '../../registry/layout/distribution-layout.ts';
import { parseManifest } from '../../registry/manifest.ts';
import type { RegistryTree } from '../../registry/layout/store.ts';
import { readLink, readManifestBytes } from '../../registry/layout/stored.ts';

const LIMIT = 16 * 1024 * 1024;

/**
 * The list of images of a medium; undefined on media that have none.
 *
 * @throws IntegrityError `bundle.malformed`, `bundle.format`
 */
export async function readBundleFile(
  iso: Pick<IsoImage, 'find' | 'readFile'>,
): Promise<BundleFile | undefined> {
  const node = await iso.find(BUNDLE_PATH);
  return node?.kind === 'file' ? parseBundleFile(await iso.readFile(node, LIMIT)) : undefined;
}

/**
 * What the release bundle of a registry says otherwise than the list of images, in words.
 *
 * @throws what `readLink`, `readManifestBytes` and `parseManifest` throw
 */
export async function compareBundleImage(
  tree: RegistryTree,
  { name, release }: BundleFile,
): Promise<readonly string[]> {
  const repository = RELEASE_BUNDLE_REPOSITORY;
  const digest = await readLink(tree, pathTo.tagLink(repository, name));
  const bytes = digest && (await readManifestBytes(tree, digest));
  if (bytes === undefined) return [`names release bundle ${name}, which is not in the registry`];
  parseManifest(bytes);
  const { annotations } = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
    readonly annotations?: Readonly<Record<string, unknown>>;
  };
  const found = annotations?.[RELEASE_DIGEST_ANNOTATION];
  if (found === release.digest) return [];
  return [
    `names release ${release.digest}, but the release bundle names ${JSON.stringify(found ?? null)}`,
  ];
}
