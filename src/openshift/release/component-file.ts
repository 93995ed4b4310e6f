import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { digestOf, hexOf } from '../../base/digest.ts';
import { nameAside } from '../../base/disk/aside.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { digestFile } from '../../base/disk/files.ts';
import { maxOf } from '../../base/lists.ts';
import { explainDiskFailure } from '../../base/disk/disk-errors.ts';
import { extractFile } from '../../registry/layers/read.ts';
import type { Reference } from '../../registry/reference.ts';
import { platformOf, type RpmArchitecture } from './release-bundle.ts';
import { openImage, openLayers, type ImageTools } from '../image-access.ts';
import { findCached, cacheFile } from '../../base/disk/file-digests.ts';

export type ComponentFile = {
  readonly reference: Reference;
  readonly arch: RpmArchitecture;
  /** Inside the image. */
  readonly path: string;
  /** Where extracted files are kept. */
  readonly directory: string;
  /** `.iso`, or nothing. */
  readonly suffix: string;
  /** What `finish` depends on, so that a file finished otherwise is another file. */
  readonly finishKey?: string;
  /** Changes the file before it counts as extracted. */
  readonly finish?: (path: string) => Promise<void>;
};

/**
 * One file out of an image, kept under the digest of the layers it came from: asked for again, it
 * costs a look at its size and time. A file that was touched since is digested again, and extracted
 * again when it has changed.
 */
export async function extractComponentFile(
  wanted: ComponentFile,
  tools: ImageTools,
): Promise<FileInput> {
  const { reference, image } = await openImage(tools, wanted.reference, platformOf(wanted.arch));
  const key = digestOf(
    formatCanonicalJson({
      layers: image.layers.map(({ digest }) => digest),
      path: wanted.path,
      finish: wanted.finishKey,
    }),
  );
  const path = join(wanted.directory, `${hexOf(key)}${wanted.suffix}`);
  const known = await findCached(path);
  if (known) return known;
  const aside = await nameAside(path); // another build of this work directory may be at it, too
  try {
    const layers = openLayers(tools, reference, image.layers);
    const { signal } = tools;
    const { digest } = await extractFile(layers, wanted.path, aside, { signal });
    if (wanted.finish === undefined) return await cacheFile(aside, path, digest);
    await wanted.finish(aside);
    return await cacheFile(aside, path, await digestFile(aside, signal));
  } catch (error) {
    await rm(aside, { force: true });
    const needed = maxOf(image.layers.map(({ size }) => size));
    throw explainDiskFailure(error, { directory: wanted.directory, needed });
  }
}
