import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { createEmptyImage } from '../../src/iso/lay-out/empty-image.ts';
import type { Extent, Layout, TreeFile } from '../../src/iso/extent.ts';
import { layOutIso } from '../../src/iso/lay-out/lay-out.ts';
import { formatMediaIndex, type IndexImage } from '../../src/media/media-index.ts';
import { INDEX_PATH } from '../../src/media/media-index.ts';
import { planDistributionTree } from '../../src/registry/layout/distribution.ts';
import { MEDIA_TYPE, parseManifest, type StoredManifest } from '../../src/registry/manifest.ts';

type Named = IndexImage & { readonly stored: StoredManifest };

/** Layers of an image that no other has, and those that it shares with its neighbours. */
const OWN_LAYERS = 20;
const SHARED_LAYERS = 3;
const EPOCH = 1_767_323_045;
/** Bytes of the index for an image. */
const INDEX_ROOM = 16_000;

/**
 * Writes a medium of `count` images with the file tree, the index and the registry of a real one. Each
 * layer is a few bytes, so that the medium is mostly directories and holes.
 *
 * @returns how many files and directories it has
 */
export function writeLargeMedium(path: string, count: number): number {
  const blobs = new Map<Digest, Buffer>();
  const images = Array.from({ length: count }, (_, index) => makeImage(index, blobs));
  const files = planDistributionTree(
    images.map(({ repository, tags, stored }) => ({ repository, tags, manifests: [stored] })),
  ).map(({ path, content }): TreeFile => ({ path: `/registry${path}`, content }));
  // Filled in when it is known what it says: to lay out twice, as a build does, takes twice the time.
  const index = Buffer.alloc(count * INDEX_ROOM, ' ');
  index[index.length - 1] = 0x0a;
  files.push({ path: INDEX_PATH, content: { kind: 'bytes', bytes: index } });
  const layout = layOutIso({
    base: createEmptyImage({ volumeId: 'large', directories: [], epoch: EPOCH }),
    files,
    remove: [],
    patches: [],
    epoch: EPOCH,
  });
  index.set(renderIndex(images, layout));
  writeExtents(path, layout, blobs);
  return countEntries(files.map(({ path }) => path));
}

function makeImage(index: number, blobs: Map<Digest, Buffer>): Named {
  const name = `image-${String(index).padStart(4, '0')}`;
  const describe = (text: string, mediaType: string) => {
    const bytes = Buffer.from(text);
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const own = Array.from({ length: OWN_LAYERS }, (_, layer) => `${name}/${layer}`);
  const shared = Array.from({ length: SHARED_LAYERS }, (_, layer) => `${index % 200}/${layer}`);
  const manifest = {
    schemaVersion: 2,
    mediaType: MEDIA_TYPE.ociManifest,
    config: describe(`{"image":"${name}"}`, MEDIA_TYPE.ociConfig),
    layers: [...own, ...shared].map((text) => describe(text, MEDIA_TYPE.ociLayer)),
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  const digest = digestOf(bytes);
  return {
    name,
    set: 'additional',
    source: `registry.example.com/team-${index % 40}/${name}@${digest}`,
    repository: `team-${index % 40}/${name}`,
    tags: [`tag-${name}`],
    manifests: [digest],
    stored: {
      descriptor: { mediaType: manifest.mediaType, digest, size: bytes.length },
      bytes,
      manifest: parseManifest(bytes),
    },
  };
}

function renderIndex(images: readonly Named[], { extents }: Layout): Buffer {
  const text = formatMediaIndex({
    format: 1,
    product: 'live-iso',
    release: { version: '4.21.3', reference: 'quay.io/a/b@sha256:0', architecture: 'amd64' },
    images: images.map(({ name, set, source, repository, tags, manifests }) => {
      return { name, set, source, repository, tags, manifests };
    }),
    extents: extents.filter(({ source }) => source.kind !== 'zero').map(describeExtent),
  });
  return Buffer.from(text);
}

const describeExtent = ({ offset, size, digest, paths }: Extent) => ({
  offset,
  size,
  paths,
  ...(digest !== undefined && !paths.includes(INDEX_PATH) && { digest }),
});

function writeExtents(path: string, layout: Layout, blobs: ReadonlyMap<Digest, Buffer>): void {
  const file = openSync(path, 'w');
  try {
    ftruncateSync(file, layout.size);
    for (const { source, digest, offset, size } of layout.extents) {
      if (source.kind === 'zero') continue;
      const bytes = source.kind === 'bytes' ? source.bytes : digest && blobs.get(digest);
      if (bytes?.length !== size) throw new Error(`extent at ${offset} has not ${size} bytes`);
      writeSync(file, bytes, 0, size, offset);
    }
  } finally {
    closeSync(file);
  }
}

/** Files, and the directories that they are in, without the root. */
function countEntries(files: readonly string[]): number {
  const directories = new Set<string>();
  for (const file of files) {
    for (let end = file.lastIndexOf('/'); end > 0; end = file.lastIndexOf('/', end - 1)) {
      const directory = file.slice(0, end);
      if (directories.has(directory)) break;
      directories.add(directory);
    }
  }
  return files.length + directories.size;
}
