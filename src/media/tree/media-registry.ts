import { planDirLayout } from '../../registry/layout/dir-layout.ts';
import type { Descriptor } from '../../registry/descriptor.ts';
import {
  planDistributionTree,
  type PlacedImage,
  type RegistryFile,
} from '../../registry/layout/distribution-layout.ts';
import { parseManifest, type StoredManifest } from '../../registry/manifest.ts';
import type { MirrorPlan, PlannedImage } from '../../openshift/mirror/mirror-plan.ts';
import { REGISTRY_ROOT } from '../index/media-paths.ts';

/** What the registry of a medium is made of. */
export type MediaRegistry = {
  readonly plan: MirrorPlan;
  /** Bytes of every manifest of the plan. */
  readonly readManifest: (manifest: Descriptor) => Promise<Uint8Array>;
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

const readManifests = (
  image: PlannedImage,
  { readManifest }: MediaRegistry,
): Promise<StoredManifest[]> =>
  Promise.all(
    image.manifests.map(async (descriptor) => {
      const bytes = await readManifest(descriptor);
      return { descriptor, bytes, manifest: parseManifest(bytes, descriptor.mediaType) };
    }),
  );

const below = (root: string, { path, content }: RegistryFile): RegistryFile => ({
  path: `${root}${path}`,
  content,
});
