import { createHash } from 'node:crypto';
import type { Digest } from '../src/base/digest.ts';
import { digestOf } from '../src/base/digest.ts';
import { MEDIA_TYPE, parseManifest, type StoredManifest } from '../src/registry/manifest.ts';
import { blobOf, type Blob } from '../demo/payload.ts';
import { buildImage, packLayer } from '../demo/release.ts';
import type { SourceImage, SourceRegistry } from '../demo/source-registry.ts';
import { formatOperator } from './catalog-data.ts';
import type { OperatorShape, PublishedOperators } from './source-shape.ts';

const ARCHITECTURES = ['amd64', 'arm64', 'ppc64le', 's390x'];
const VERSIONS = 20;
const CATALOG = 'redhat/redhat-operator-index';

/**
 * Puts a catalog into the registry, and the images of the newest bundle of each of its packages, every
 * one for four architectures.
 */
export async function publishOperators(
  registry: SourceRegistry,
  { packages, images }: OperatorShape,
): Promise<PublishedOperators> {
  const files: Record<string, string> = {};
  const names = Array.from(
    { length: packages },
    (_, index) => `operator-${String(index).padStart(2, '0')}`,
  );
  for (const [index, name] of names.entries()) {
    const count = Math.ceil((images - index) / packages);
    const newest = Array.from({ length: count }, (_, part) => addOperand(registry, name, part));
    files[`configs/${name}/catalog.json`] = formatOperator({
      name,
      versions: VERSIONS,
      listImages: (version) =>
        version === VERSIONS - 1 ? newest : newest.map((image) => age(image, version)),
    });
  }
  const layers = [await packLayer({ 'bin/opm': 'stand-in' }), await packLayer(files)];
  const label = { 'operators.operatorframework.io.index.configs.v1': '/configs' };
  const catalog = buildIndex((architecture) => buildImage(layers, { ...label, architecture }));
  registry.add(CATALOG, catalog, 'v4.21');
  return { catalog: `${registry.host}/${CATALOG}:v4.21`, packages: names };
}

/** Signs every manifest of an image, as cosign does: by a tag that has the digest in its name. */
export function addSignatures(
  registry: SourceRegistry,
  repository: string,
  image: SourceImage,
): void {
  for (const { descriptor } of image.manifests) {
    const signature = buildImage([makeText(`signature of ${descriptor.digest}`)]);
    registry.add(repository, signature, `${descriptor.digest.replace(':', '-')}.sig`);
  }
}

/** Returns its reference, that of an index. */
function addOperand(registry: SourceRegistry, operator: string, part: number): string {
  const repository = `${operator}/part-${part}`;
  const image = buildIndex((architecture) =>
    buildImage([
      makeText(`base of ${architecture}`),
      makeText(`${operator} on ${architecture}`),
      makeText(`${repository} on ${architecture}`),
    ]),
  );
  registry.add(repository, image);
  addSignatures(registry, repository, image);
  return `${registry.host}/${repository}@${topOf(image)}`;
}

/** The reference that an older bundle has. */
const age = (reference: string, version: number): string =>
  reference.replace(/[0-9a-f]{64}$/, (hex) =>
    createHash('sha256').update(`${hex} ${version}`).digest('hex'),
  );

function buildIndex(build: (architecture: string) => SourceImage): SourceImage {
  const images = ARCHITECTURES.map(build);
  const bytes = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA_TYPE.dockerList,
      manifests: images.map((image, at) => ({
        ...image.manifests[0]?.descriptor,
        platform: { os: 'linux', architecture: ARCHITECTURES[at] },
      })),
    }),
  );
  const manifest = parseManifest(bytes);
  const { mediaType } = manifest;
  const top: StoredManifest = {
    bytes,
    manifest,
    descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length },
  };
  return {
    manifests: [top, ...images.flatMap(({ manifests }) => manifests)],
    blobs: images.flatMap(({ blobs }) => blobs),
  };
}

const makeText = (text: string): Blob => blobOf(Buffer.from(text));

function topOf({ manifests: [top] }: SourceImage): Digest {
  if (!top) throw new Error('an image has a manifest');
  return top.descriptor.digest;
}
