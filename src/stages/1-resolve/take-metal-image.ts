import { join } from 'node:path';
import { fileOf, readUnchanged, type FileDigests } from '../../base/disk/file-digests.ts';
import { openRandomAccess } from '../../base/random-access.ts';
import type { Stage } from '../../engine/index.ts';
import { readMetalImage } from '../../iso/index.ts';
import {
  takeGivenIso,
  type BaseIso,
  type FetchGivenTools,
  type GivenBaseIso,
} from '../../openshift/release/base-iso.ts';
import { findDiskTools } from '../../openshift/release/boot-partition.ts';

/* The metal image that a disk image starts with: the raw image of CoreOS, from the user. */

/** Finds the programs that a disk image needs, before anything is fetched. */
export const requireDiskTools: Stage<{ readonly qcow2: boolean }, readonly string[], unknown> = {
  name: 'find disk tools',
  run: ({ qcow2 }, _tools, { signal }) => findDiskTools({ qcow2, signal }),
};

type MetalTools = Pick<FetchGivenTools, 'http' | 'digests' | 'tls'> & { readonly workDir: string };

/** Takes and judges the metal image: another one is refused before anything large is fetched. */
export const takeMetalImage: Stage<{ readonly given: GivenBaseIso }, BaseIso, MetalTools> = {
  name: 'take metal image',
  async run({ given }, { workDir, ...parts }, context) {
    const tools = { ...parts, ...context, noun: 'metal image' };
    const image = await takeGivenIso(given, join(workDir, 'cache', 'metal'), tools);
    await judge(image, parts.digests);
    return image;
  },
};

/** An image that was unpacked is named by its origin, not by its place in the cache. */
async function judge(image: BaseIso, digests: FileDigests): Promise<void> {
  await readUnchanged(await fileOf(image), digests, async () => {
    const access = await openRandomAccess(image.path);
    try {
      await readMetalImage({ ...access, path: image.from });
    } finally {
      await access.close();
    }
  });
}
