import { planDirLayout } from '../../registry/layout/distribution.ts';
import {
  planDistributionTree,
  type PlacedImage,
  type RegistryFile,
} from '../../registry/layout/distribution.ts';
import type { BlobCache } from '../../base/store/store.ts';
import { parseManifest, type StoredManifest } from '../../registry/manifest.ts';
import { readPlanned } from '../../openshift/images.ts';
import type { MirrorPlan, PlannedImage } from '../../openshift/mirror/plan.ts';
import { REGISTRY_ROOT } from '../index/media-paths.ts';
import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { encodeReleaseBundle, type ReleaseBundle } from '../../openshift/release/bundle.ts';
import type { Release } from '../../openshift/release/release.ts';
import { formatBundleFile } from '../index/bundle-file.ts';

/** What the registry of a medium is made of. */
export type MediaRegistry = {
  readonly plan: MirrorPlan;
  /** Has every manifest of the plan. */
  readonly cache: Pick<BlobCache, 'read'>;
  /** Images that no mirror plan has, because they were made here. */
  readonly made?: readonly PlacedImage[];
  /** Directory of the medium that has the storage; default: that of media that boot. */
  readonly root?: string;
};

/** The registry's tree on the medium, and the image of the server that serves it. */
export async function planMediaRegistry(registry: MediaRegistry): Promise<RegistryFile[]> {
  const { plan, made = [], root = REGISTRY_ROOT } = registry;
  const placed = await Promise.all(
    plan.images.map(async (image) => {
      const manifests = await readManifests(image, registry);
      const places = [image.destination, ...(image.signedCopy ? [image.signedCopy] : [])];
      return places.map((place) => ({ ...place, manifests }));
    }),
  );
  const server = plan.registryImage
    ? planDirLayout(await readManifests(plan.registryImage, registry))
    : [];
  return [
    ...planDistributionTree([...placed.flat(), ...made]).map((file) => below(root, file)),
    ...server.map((file) => below(`${root}/images/registry`, file)),
  ];
}

const readManifests = (image: PlannedImage, { cache }: MediaRegistry): Promise<StoredManifest[]> =>
  Promise.all(
    image.manifests.map(async (descriptor) => {
      const bytes = await readPlanned(cache, descriptor);
      return { descriptor, bytes, manifest: parseManifest(bytes, descriptor.mediaType) };
    }),
  );

const below = (root: string, { path, content }: RegistryFile): RegistryFile => ({
  path: `${root}${path}`,
  content,
});

/** What the registry of a live ISO is made of. */
type LiveRegistry = Pick<MediaRegistry, 'plan' | 'cache'> & {
  readonly release: Release;
};

/** The registry of a live ISO, with the release bundle, which is made here. */
export async function planLiveRegistry(registry: LiveRegistry): Promise<RegistryFile[]> {
  const { plan, release, cache } = registry;
  const { version, arch, reference: image } = release;
  const list = formatBundleFile({ release, plan });
  const bundle = await encodeReleaseBundle({ version, arch, image }, list);
  const made = {
    repository: bundle.repository,
    tags: [bundle.tag],
    manifests: [toStored(bundle)],
  };
  const rendered = new Map(
    [bundle.config, bundle.layer].map(({ descriptor, bytes }) => [descriptor.digest, bytes]),
  );
  const files = await planMediaRegistry({ plan, cache, made: [made] });
  return files.map((file) => toRendered(file, rendered));
}

const toStored = ({ manifest: { descriptor, bytes } }: ReleaseBundle): StoredManifest => ({
  descriptor,
  bytes,
  manifest: parseManifest(bytes, descriptor.mediaType),
});

function toRendered(
  { path, content }: RegistryFile,
  rendered: ReadonlyMap<Digest, Uint8Array>,
): RegistryFile {
  const bytes = content.kind === 'blob' ? rendered.get(content.digest) : undefined;
  return { path, content: bytes ? { kind: 'bytes', bytes } : content };
}

/**
 * One digest for all names and bytes of a registry's tree: SHA-256 of what sha256sum(1) prints for
 * every file by its path below {@link REGISTRY_ROOT}, sorted by line.
 */
export function digestRegistryTree(files: readonly RegistryFile[]): Digest {
  const lines = files.map(({ path, content }) => {
    const digest = content.kind === 'blob' ? content.digest : digestOf(content.bytes);
    return `${hexOf(digest)}  ${path.slice(REGISTRY_ROOT.length + 1)}\n`;
  });
  return digestOf(lines.sort().join(''));
}
