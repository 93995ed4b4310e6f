import { withoutUndefined } from '../base/lists.ts';
import { requireInside, type RandomAccess } from '../base/random-access.ts';
import { type IsoImage, openIso } from '../iso/index.ts';
import type { ConfiguredCluster } from '../openshift/agent/cluster.ts';
import { decodeConfigArea } from './config-area.ts';
import { type ConfigImageCheck, judgeConfigImage, readLiveMedium } from './config-image.ts';
import { CONFIG_AREA_PATH } from './media-index.ts';
import { type MediumAreas, readOptionalAreas } from './medium.ts';
import { attempt } from './open.ts';

/* Owns what is known of the configuration image inside a medium: its cluster, and whether hosts take it. */

/** Without secrets. */
export type HeldImage = {
  /** Bytes of the image; those of the area if another program wrote it. */
  readonly size: number;
  /** True if a digest covers the image. */
  readonly isProven: boolean;
  readonly releaseImage?: string;
  readonly cluster?: ConfiguredCluster;
  /** Reason why hosts that boot the medium do not install with it. */
  readonly problem?: string;
  /** True if the image cannot be read. */
  readonly isDamaged: boolean;
};

/** Undefined on a medium without an image. */
export async function readHeldImage({
  now,
  system,
}: Pick<MediumAreas, 'now' | 'system'>): Promise<HeldImage | undefined> {
  const area = now.find(({ kind }) => kind === 'config-image');
  if (!area) return undefined;
  const { bytes } = area;
  const { value: held, problem } = await attempt(() => Promise.resolve(decodeConfigArea(bytes)));
  if (problem !== undefined) return damaged(bytes.length, problem);
  if (!held) return undefined;
  const { image, isProven } = held;
  const about = { size: image.length, isProven };
  if (!system) return { ...about, isDamaged: false };
  const names = { image: CONFIG_AREA_PATH, medium: 'the medium' };
  const opened = await attempt(async () =>
    judgeConfigImage(await openIso(inMemory(image)), { system }, names),
  );
  if (!opened.value) return damaged(image.length, opened.problem ?? '');
  const { releaseImage, cluster } = opened.value;
  const found = describeObstacles(opened.value);
  return {
    ...about,
    isDamaged: false,
    ...withoutUndefined({ releaseImage, cluster, problem: found }),
  };
}

/** Judges the image inside a medium as `config-iso check` judges one beside it. Undefined without an image. */
export async function checkHeldImage(iso: IsoImage): Promise<ConfigImageCheck | undefined> {
  const areas = await readOptionalAreas(iso, {});
  const held = areas && (await readHeldImage(areas));
  const area = areas?.now.find(({ kind }) => kind === 'config-image');
  if (!held || !area) return undefined;
  if (held.isDamaged) {
    const problem = { code: 'image.archive', problem: held.problem ?? '', file: CONFIG_AREA_PATH };
    return { fits: false, obstacles: [{ severity: 'error', ...problem }], cautions: [] };
  }
  const names = { image: CONFIG_AREA_PATH, medium: iso.path };
  const image = await openIso(inMemory(area.bytes));
  return judgeConfigImage(image, await readLiveMedium(iso), names);
}

const damaged = (size: number, problem: string): HeldImage => ({
  size,
  isProven: false,
  isDamaged: true,
  problem: `holds a configuration image that cannot be read: ${problem}`,
});

function describeObstacles({ obstacles }: ConfigImageCheck): string | undefined {
  const [first] = obstacles;
  return first && `holds a configuration image that the medium does not take: ${first.problem}`;
}

/** An image in memory as a file that is never closed. */
export const inMemory = (bytes: Uint8Array, path = CONFIG_AREA_PATH): RandomAccess => ({
  path,
  size: bytes.length,
  // eslint-disable-next-line @typescript-eslint/require-await -- bytes outside of it reject
  async read(offset, size, buffer = Buffer.alloc(size)) {
    requireInside({ offset, size }, bytes.length);
    buffer.set(bytes.subarray(offset, offset + size));
    return buffer.subarray(0, size);
  },
  close: () => Promise.resolve(),
});
