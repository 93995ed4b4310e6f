import { createBlobFactory, type Blob } from '../demo/payload.ts';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import {
  buildImage,
  COMPONENT_REPOSITORY,
  makeCoreComponents,
  publishRelease,
} from '../demo/release.ts';
import { startSourceRegistry, type SourceImage } from '../demo/source-registry.ts';
import { countRequests } from './count-requests.ts';
import { countUndelivered } from './count-undelivered.ts';
import { addSignatures, publishOperators } from './operator-images.ts';
import { findSignatures, type Served, type SourceShape } from './source-shape.ts';

/*
 * The source registry of the bench, a process of its own: makes a payload of the size that is asked
 * for, prints one JSON line about it, and serves until it is killed. `bytes` on its standard input
 * makes it print how many bytes it has served and how many of them wait to be received, `requests` what was asked of it since the last time.
 */

const MIB = 1024 * 1024;

/** Layer sizes of real payloads are skewed: few large ones, many of some MiB. One is over 4 GiB. */
function planSizes({ size, images, own }: SourceShape): number[] {
  const count = images * own;
  const hasGiant = size >= 12 * 1024 * MIB;
  const giant = 4 * 1024 * MIB + 5 * MIB + 321;
  const rest = size - (hasGiant ? giant : 0);
  const weights = Array.from(
    { length: count - Number(hasGiant) },
    (_, i) => 1 + ((i * 37) % 23) ** 1.5,
  );
  const total = weights.reduce((a, b) => a + b, 0);
  const sizes = weights.map((weight) => Math.max(512, Math.floor((rest * weight) / total)));
  return hasGiant ? [giant, ...sizes] : sizes;
}

const shape = JSON.parse(process.argv[2] ?? '{}') as SourceShape;
const takeRequests = countRequests();
const readUndelivered = countUndelivered();
const registry = await startSourceRegistry(shape.tls && { tls: shape.tls });
const makeBlob = createBlobFactory();
const shared = [0, 1, 2].map((index) => makeBlob(index, Math.floor(shape.size * 0.02) + 7 * index));
const own = planSizes({
  ...shape,
  size: shape.size - shared.reduce((sum, { size }) => sum + size, 0),
});
const blobs: Blob[] = [...shared];
const components: Map<string, SourceImage> = await makeCoreComponents(readFileSync(shape.base), []);
/** Each night another twentieth of the images was built again; their layers are a little larger. */
const makeLayer = (image: number, layer: number, size: number): Blob => {
  const night = image % 20;
  return night >= 1 && night <= (shape.night ?? 0)
    ? createBlobFactory(`night ${night} layer ${layer}`)(0, Math.ceil(size * 1.01))
    : makeBlob(100 + layer, size);
};
for (let index = 0; index < shape.images; index++) {
  const layers = own
    .slice(index * shape.own, (index + 1) * shape.own)
    .map((size, layer) => makeLayer(index, index * shape.own + layer, size));
  blobs.push(...layers);
  components.set(
    `component-${String(index).padStart(3, '0')}`,
    buildImage([...shared.slice(0, 1 + (index % 3)), ...layers]),
  );
}
const { version = '4.21.0' } = shape;
const pullspec = await publishRelease(registry, { version, components });
registry.signer.write(findSignatures(shape, pullspec));
if (shape.operators) {
  for (const image of components.values()) addSignatures(registry, COMPONENT_REPOSITORY, image);
}
const operators = shape.operators && (await publishOperators(registry, shape.operators));
const payloadSize = blobs.reduce((sum, { size }) => sum + size, 0);
process.stdout.write(
  `${JSON.stringify({
    host: registry.host,
    version,
    pullspec,
    ...(operators && { operators }),
    payloadSize,
    blobs: blobs.map(({ digest, size }) => ({ digest, size })),
    images: [...components].map(([name, image]) => ({
      name,
      digest: image.manifests[0]?.descriptor.digest,
    })),
  })}\n`,
);

process.stdin.setEncoding('utf8');
process.stdin.on('data', (text: string) => {
  for (const order of text.trim().split('\n')) {
    if (order === 'bytes') {
      const bytes: Served = { served: registry.bytesServed(), undelivered: readUndelivered() };
      process.stdout.write(`${JSON.stringify(bytes)}\n`);
    }
    if (order === 'requests') process.stdout.write(`${JSON.stringify(takeRequests())}\n`);
    if (order.startsWith('dump ')) dump(order.slice('dump '.length));
  }
});
process.stdin.on('end', () => process.exit(0));

/** Writes every blob into a folder, named by digest: the local files of the copying benches. */
function dump(folder: string): void {
  for (const blob of blobs) {
    const hash = createHash('sha256');
    const pieces: Uint8Array[] = [];
    const path = `${folder}/${blob.digest.slice('sha256:'.length)}`;
    writeFileSync(path, '');
    for (let offset = 0; offset < blob.size;) {
      const piece = blob.view(offset, MIB);
      hash.update(piece);
      pieces.push(piece);
      offset += piece.length;
      if (pieces.length < 64 && offset < blob.size) continue;
      writeFileSync(path, Buffer.concat(pieces.splice(0)), { flag: 'a' });
    }
  }
  process.stdout.write('dumped\n');
}
