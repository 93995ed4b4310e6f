import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf, type Digest } from '../../src/base/digest.ts';
import { formatReference, parseReference } from '../../src/registry/reference.ts';
import { buildStandIn, topDigest } from './catalog.ts';
import { buildIndex, type TestImage } from './images.ts';

/** A small image in the place of a real one. */
export type StandIn = {
  /** Its path in the registry. */
  readonly repository: string;
  readonly digest: Digest;
  /** As the real one is named, with the digest of this one. */
  readonly reference: string;
  readonly image: TestImage;
};

/** Every so many stand-ins is an index, as the real ones are, which take longer to carry about. */
const INDEX_INTERVAL = 5;

/** An image for each reference by digest; each differs from all others. */
export async function makeStandIns(
  references: readonly string[],
): Promise<ReadonlyMap<string, StandIn>> {
  const made = references.map(async (real, at): Promise<readonly [string, StandIn]> => {
    const { registry, repository } = parseReference(real);
    const image = await (at % INDEX_INTERVAL === 0 ? buildStandInIndex(real) : buildStandIn(real));
    const digest = topDigest(image);
    const reference = formatReference({ registry, repository, digest });
    return [real, { repository, digest, reference, image }];
  });
  return new Map(await Promise.all(made));
}

async function buildStandInIndex(name: string): Promise<TestImage> {
  const images = ['amd64', 'arm64'].map(
    async (architecture) =>
      [{ os: 'linux', architecture }, await buildStandIn(name, architecture)] as const,
  );
  return buildIndex(await Promise.all(images), { family: 'docker' });
}

/** The text of a catalog with the digests of stand-ins; what has none is left as it is. */
export function nameStandIns(text: string, standIns: ReadonlyMap<string, StandIn>): string {
  let named = text;
  for (const [real, { reference }] of standIns) named = named.replaceAll(real, reference);
  return named;
}

/** Writes an image as containers-transports(5) `dir:` has it, for skopeo to push. */
export async function writeDirImage(directory: string, image: TestImage): Promise<void> {
  const [top, ...children] = image.manifests;
  if (top === undefined) throw new Error('an image has a manifest');
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'version'), 'Directory Transport Version: 1.1\n');
  await writeFile(join(directory, 'manifest.json'), top.bytes);
  for (const { descriptor, bytes } of children) {
    await writeFile(join(directory, `${hexOf(descriptor.digest)}.manifest.json`), bytes);
  }
  for (const [digest, bytes] of image.blobs) await writeFile(join(directory, hexOf(digest)), bytes);
}
