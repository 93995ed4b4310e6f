import type { Digest } from '../base/digest.ts';
import { encodeInitrd } from '../ignition/initrd.ts';
import { readCoreosLive } from '../iso/coreos/coreos.ts';
import type { Extent, Layout, TreeFile } from '../iso/extent.ts';
import { layOutIso } from '../iso/lay-out.ts';
import { planLiveGraft } from '../iso/live-graft.ts';
import { openIso } from '../iso/open-iso.ts';
import type { BaseImage } from '../iso/base/scan-base.ts';
import { BOOTSTRAP_IGNITION_PATH } from '../openshift/node/bootstrap-ignition.ts';
import {
  formatMediaIndex,
  type IndexExtent,
  type IndexImage,
} from '../openshift/media/media-index.ts';
import { BOOTSTRAP_IMAGE_PATH, INDEX_PATH } from '../openshift/media/media-paths.ts';
import type { MirrorPlan, PlannedImage } from '../openshift/mirror/mirror-plan.ts';
import { encodeReleaseBundle, type ReleaseBundle } from '../openshift/release/release-bundle.ts';
import type { Release } from '../openshift/release/release-payload.ts';
import { planDirLayout } from '../registry/dir-layout.ts';
import { planDistributionTree, type RegistryFile } from '../registry/distribution-layout.ts';
import type { Descriptor } from '../registry/descriptor.ts';
import { parseManifest, type StoredManifest } from '../registry/manifest.ts';
import { formatReference } from '../registry/reference.ts';

/** The recipe of the minimal ISO describes the base image byte by byte: untrue of ours. */
const MINIMAL_RECIPE = '/coreos/miniso.dat';

export type LiveIsoParts = {
  readonly base: BaseImage;
  readonly release: Release;
  readonly plan: MirrorPlan;
  /** Bytes of every manifest of the plan. */
  readonly readManifest: (manifest: Descriptor) => Promise<Uint8Array>;
  /** Ignition configs, as JSON text. */
  readonly bootstrap: string;
  readonly unconfigured: string;
  readonly appendKargs: readonly string[];
  /** Seconds since 1970, for everything new on the medium. */
  readonly epoch: number;
};

/**
 * The whole live ISO, before a byte of it is written: the base, the registry, both configurations and
 * the index. Fetches nothing.
 */
export async function layOutLiveIso(parts: LiveIsoParts): Promise<Layout> {
  const { base, epoch, plan } = parts;
  const iso = await openIso(base.path);
  try {
    const live = await readCoreosLive(iso);
    const graft = await planLiveGraft(iso, live, {
      initrd: { path: BOOTSTRAP_IMAGE_PATH, bytes: encodeBootstrap(parts.bootstrap) },
      embed: encodeUnconfigured(parts.unconfigured),
      appendKargs: parts.appendKargs,
    });
    return layOutIso({
      base,
      files: [...graft.files, ...(await planRegistryFiles(parts))],
      remove: [MINIMAL_RECIPE],
      patches: graft.patches,
      epoch,
      index: {
        path: INDEX_PATH,
        render: (extents) => renderIndex({ parts, images: plan.images, extents }),
      },
    });
  } finally {
    await iso.close();
  }
}

const encodeBootstrap = (text: string): Uint8Array =>
  encodeInitrd([{ name: BOOTSTRAP_IGNITION_PATH, mode: 0o100644, data: Buffer.from(text) }]);

const encodeUnconfigured = (text: string): Uint8Array =>
  encodeInitrd([{ name: 'config.ign', mode: 0o100600, data: Buffer.from(text) }]);

/** The registry's tree, the registry server's own image, and the release bundle. */
async function planRegistryFiles(parts: LiveIsoParts): Promise<TreeFile[]> {
  const { plan, release } = parts;
  const placed = await Promise.all(
    plan.images.map(async (image) => ({
      ...image.destination,
      manifests: await readManifests(image, parts),
    })),
  );
  const bundle = encodeReleaseBundle({
    version: release.version,
    arch: release.arch,
    digestReference: formatReference(release.reference),
  });
  const placedBundle = {
    repository: bundle.repository,
    tags: [bundle.tag],
    manifests: [toStored(bundle)],
  };
  const rendered = new Map(
    [bundle.config, bundle.layer].map(({ descriptor, bytes }) => [descriptor.digest, bytes]),
  );
  const server = plan.registryImage
    ? planDirLayout(await readManifests(plan.registryImage, parts))
    : [];
  return [
    ...planDistributionTree([...placed, placedBundle]).map((file) =>
      toTreeFile('/registry', file, rendered),
    ),
    ...server.map((file) => toTreeFile('/registry/images/registry', file, rendered)),
  ];
}

async function readManifests(image: PlannedImage, parts: LiveIsoParts): Promise<StoredManifest[]> {
  return Promise.all(
    image.manifests.map(async (descriptor) => {
      const bytes = await parts.readManifest(descriptor);
      return { descriptor, bytes, manifest: parseManifest(bytes, descriptor.mediaType) };
    }),
  );
}

const toStored = ({ manifest: { descriptor, bytes } }: ReleaseBundle): StoredManifest => ({
  descriptor,
  bytes,
  manifest: parseManifest(bytes, descriptor.mediaType),
});

function toTreeFile(
  root: string,
  { path, content }: RegistryFile,
  rendered: ReadonlyMap<Digest, Uint8Array>,
): TreeFile {
  const bytes = content.kind === 'blob' ? rendered.get(content.digest) : undefined;
  return { path: `${root}${path}`, content: bytes ? { kind: 'bytes', bytes } : content };
}

/**
 * What the medium holds, so that it can be verified, compared and reused without anything else:
 * extents with digests and paths, images with digests and places. No secret, no clock, no host.
 */
function renderIndex(about: {
  readonly parts: LiveIsoParts;
  readonly images: readonly PlannedImage[];
  readonly extents: readonly Extent[];
}): Uint8Array {
  const { parts, images, extents } = about;
  const { release, base, plan } = parts;
  const text = formatMediaIndex({
    format: 1,
    product: 'live-iso',
    base: { digest: base.digest, size: base.size },
    release: {
      version: release.version,
      reference: formatReference(release.reference),
      architecture: release.arch,
    },
    images: [...images, ...(plan.registryImage ? [plan.registryImage] : [])].map(describeImage),
    extents: extents.filter(({ source }) => source.kind !== 'zero').map(describeExtent),
  });
  return Buffer.from(text);
}

const describeImage = (image: PlannedImage): IndexImage => ({
  name: image.name,
  set: image.set,
  source: formatReference(image.source),
  repository: image.destination.repository,
  tags: image.destination.tags,
  manifests: image.manifests.map(({ digest }) => digest),
});

const describeExtent = ({ offset, size, digest, paths }: Extent): IndexExtent => ({
  ...{ offset, size, paths },
  ...(digest !== undefined && { digest }),
});
