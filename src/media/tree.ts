import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type Digest, digestOf, hexOf } from '../base/digest.ts';
import { IntegrityError, ConfigError } from '../base/errors.ts';
import type { BlobCache } from '../base/store/blob-cache.ts';
import type { IsoFile, IsoImage } from '../iso/index.ts';
import { readPlanned } from '../openshift/images.ts';
import type { MirrorPlan, PlannedImage } from '../openshift/mirror/plan.ts';
import { encodeReleaseBundle, type ReleaseBundle } from '../openshift/release/bundle.ts';
import type { Release } from '../openshift/release/release.ts';
import {
  type Descriptor,
  type ImageManifest,
  isForPlatform,
  type Layer,
  parseManifest,
  pathTo,
  type PlacedImage,
  planDirLayout,
  planDistributionTree,
  type Platform,
  readManifestBytes,
  type RegistryFile,
  type RegistryTree,
  type ServedTree,
  type StoredManifest,
} from '../registry/index.ts';
import { formatBundleFile } from './describe.ts';
import { BUNDLE_PATH, REGISTRY_ROOT, UPGRADE_REGISTRY_ROOT } from './media-index.ts';

/** Limit for a registry's small files: links of 71 bytes and manifests of up to 4 MiB. */
export const SMALL_FILE = 8 * 1024 * 1024;

/** On a medium of any product; undefined if it has no registry. */
export async function findRegistryRoot(iso: Pick<IsoImage, 'find'>): Promise<string | undefined> {
  for (const root of REGISTRY_ROOTS) {
    if ((await iso.find(`${root}/docker/registry/v2`))?.kind === 'directory') return root;
  }
  return undefined;
}

const REGISTRY_ROOTS = [REGISTRY_ROOT, UPGRADE_REGISTRY_ROOT];

/** Reads the registry on a medium directly from the ISO file. */
export function isoRegistryTree(iso: IsoImage, root: string): ServedTree {
  const findFile = async (path: string): Promise<IsoFile | undefined> => {
    const node = await iso.find(`${root}${path}`);
    return node?.kind === 'file' ? node : undefined;
  };
  const requireFile = async (path: string): Promise<IsoFile> => {
    const file = await findFile(path);
    if (file) return file;
    throw new IntegrityError('iso.no-file', `${root}${path} is no longer in the image`);
  };
  return {
    begin: iso.structure.budget.reset,
    async list(path) {
      const node = await iso.find(`${root}${path}`);
      if (node?.kind !== 'directory') return undefined;
      // Two entries of one name would be listed as two directories with the same content.
      return [...new Set((await iso.children(node)).map(({ name }) => name))];
    },
    size: async (path) => (await findFile(path))?.size,
    async read(path) {
      const file = await findFile(path);
      return file && iso.readFile(file, SMALL_FILE);
    },
    stream: (path, range) =>
      Readable.from(
        (async function* () {
          const wanted = range && { offset: range.start, size: range.end - range.start + 1 };
          yield* iso.stream(await requireFile(path), wanted);
        })(),
        { objectMode: false, highWaterMark: 1 << 20 },
      ),
    async open(path) {
      const { extents } = await requireFile(path);
      return {
        async fill(bytes, start) {
          let before = 0; // bytes of the file in the extents before this one
          for (const { offset, size } of extents) {
            const first = Math.max(0, start - before);
            const last = Math.min(size, start + bytes.length - before);
            const place = bytes.subarray(before + first - start, before + last - start);
            if (first < last) await iso.readBytes(offset + first, last - first, place);
            before += size;
          }
        },
        close: () => Promise.resolve(),
      };
    },
  };
}

export type WantedOnMedium = {
  /** Name of the image in errors. */
  readonly name: string;
  readonly digest: Digest;
  /** Absent: the first platform that the medium carries. */
  readonly platform?: Platform;
};

/** Bottom to top. A layer is digested whole before it is read. */
export async function openMediumLayers(
  tree: RegistryTree,
  wanted: WantedOnMedium,
  signal: AbortSignal,
): Promise<Layer[]> {
  const { layers } = await readImage(tree, wanted);
  return openBlobs(tree, { ...wanted, layers }, signal);
}

/** Layers are opened as `openMediumLayers` does. */
export async function openMediumImage(
  tree: RegistryTree,
  wanted: WantedOnMedium,
  signal: AbortSignal,
): Promise<{ readonly config: Uint8Array; readonly layers: readonly Layer[] }> {
  const { config, layers } = await readImage(tree, wanted);
  const bytes = await readManifestBytes(tree, config.digest);
  if (!bytes) throw notCarried(`the config of ${wanted.name}`, config.digest);
  return { config: bytes, layers: openBlobs(tree, { ...wanted, layers }, signal) };
}

function openBlobs(
  tree: RegistryTree,
  { layers, ...wanted }: WantedOnMedium & Pick<ImageManifest, 'layers'>,
  signal: AbortSignal,
): Layer[] {
  const verified = new Set<Digest>();
  return layers.map((descriptor) => ({
    descriptor,
    async open() {
      const { digest } = descriptor;
      if (!verified.has(digest)) await verifyBlob(tree, { ...wanted, digest }, signal);
      verified.add(digest);
      return tree.stream(pathTo.blob(digest));
    },
  }));
}

async function readImage(tree: RegistryTree, wanted: WantedOnMedium): Promise<ImageManifest> {
  const manifest = await readManifest(tree, wanted);
  if (manifest.kind === 'manifest') return manifest;
  for (const { digest } of manifest.manifests.filter(isWanted(wanted))) {
    const isCarried = (await tree.size(pathTo.blob(digest))) !== undefined;
    const image = isCarried ? await readManifest(tree, { ...wanted, digest }) : undefined;
    if (image?.kind === 'manifest') return image;
  }
  const { os = 'any', architecture = 'platform' } = wanted.platform ?? {};
  throw new ConfigError(
    'image.no-platform',
    `${wanted.name} on the medium has no image for ${os}/${architecture}`,
  );
}

/** Entries of platform `unknown/unknown` are attestations, not images. */
const isWanted =
  ({ platform }: Pick<WantedOnMedium, 'platform'>) =>
  (entry: Descriptor): boolean =>
    platform ? isForPlatform(entry, platform) : entry.platform?.os !== 'unknown';

async function readManifest(tree: RegistryTree, { name, digest }: WantedOnMedium) {
  const bytes = await readManifestBytes(tree, digest);
  if (bytes) return parseManifest(bytes);
  throw notCarried(name, digest);
}

const notCarried = (name: string, digest: Digest): IntegrityError =>
  new IntegrityError('medium.no-image', `the medium does not carry ${name}`, {
    expected: digest,
    found: 'no such file in its registry',
    hint: 'give a live ISO that carries the whole release',
  });

async function verifyBlob(
  tree: RegistryTree,
  { name, digest }: WantedOnMedium,
  signal: AbortSignal,
): Promise<void> {
  const path = pathTo.blob(digest);
  const hash = createHash('sha256');
  if ((await tree.size(path)) !== undefined) {
    for await (const piece of tree.stream(path) as AsyncIterable<Uint8Array>) {
      signal.throwIfAborted();
      hash.update(piece);
    }
  }
  const found = `sha256:${hash.digest('hex')}`;
  if (found === digest) return;
  throw new IntegrityError('medium.blob-damaged', `a layer of ${name} on the medium is damaged`, {
    expected: digest,
    found,
    hint: 'run "sealift verify" on the medium, and copy it again',
  });
}

export type MediaRegistry = {
  readonly plan: MirrorPlan;
  /** Cache that has every manifest of the plan. */
  readonly cache: Pick<BlobCache, 'read'>;
  /** Images that are in no mirror plan, because this build made them. */
  readonly made?: readonly PlacedImage[];
  /** Directory of the storage on the medium; default: the directory of bootable media. */
  readonly root?: string;
};

/** Plans the registry's tree on the medium, and the image of its server. */
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

type LiveRegistry = Pick<MediaRegistry, 'plan' | 'cache'> & {
  readonly release: Release;
};

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

/** The list of images, and the registry that has them. */
export const planLiveFiles = async (registry: LiveRegistry): Promise<readonly RegistryFile[]> => [
  { path: BUNDLE_PATH, content: { kind: 'bytes', bytes: formatBundleFile(registry) } },
  ...(await planLiveRegistry(registry)),
];

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

/** SHA-256 of the output of sha256sum(1) for every file by its path below {@link REGISTRY_ROOT}, sorted. */
export function digestRegistryTree(files: readonly RegistryFile[]): Digest {
  const lines = files.map(({ path, content }) => {
    const digest = content.kind === 'blob' ? content.digest : digestOf(content.bytes);
    return `${hexOf(digest)}  ${path.slice(REGISTRY_ROOT.length + 1)}\n`;
  });
  return digestOf(lines.sort().join(''));
}
