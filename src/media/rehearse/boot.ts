import { SealiftError } from '../../base/errors.ts';
import {
  findMissingKargs,
  type IsoImage,
  type MenuEntry,
  readBootMenus,
  readCoreosLive,
  requireArchitecture,
} from '../../iso/index.ts';
import { BOOTSTRAP_IMAGE_PATH, type MediaIndex, ROOTFS_PATH } from '../media-index.ts';
import { attempt } from '../open.ts';
import type { PlayedMedium } from './played-medium.ts';
import { cannotKnow, type Step, unless, unlessAny, will, willNot } from './step.ts';

const PART = 'boot';

/** Plays the start of a host: firmware, boot menu, kernel, and the volume that the live system waits for. */
export async function rehearseBoot(medium: PlayedMedium): Promise<readonly Step[]> {
  const { iso, index } = medium;
  const { value: menus = [], problem } = await attempt(() => readBootMenus(iso));
  const entries = menus.flatMap(({ path, entries }) => entries.map((entry) => ({ path, entry })));
  const needed = [...new Set([...entries.flatMap(listFiles), ROOTFS_PATH])];
  return [
    ...rehearseFirmware(iso),
    ...(menus.length === 0
      ? [willNot(PART, 'a boot menu starts the kernel', { reason: problem ?? 'no menu is there' })]
      : menus.map(({ path, entries }) =>
          unless(PART, `the menu ${path} starts the kernel`, {
            place: path,
            reason: entries.length === 0 ? 'no entry starts a kernel' : undefined,
          }),
        )),
    ...unlessAny(
      PART,
      'the boot loader loads kernel, initrds and root file system',
      await findMissingFiles(needed, { iso, index }),
    ),
    ...unlessAny(
      PART,
      'the initrd with the bootstrap config is loaded',
      entries.flatMap((one) => findMissingInitrd(one, medium)),
    ),
    await rehearseKernel(iso, index),
    ...(await rehearseVolume(iso, entries)),
  ];
}

type Placed = { readonly path: string; readonly entry: MenuEntry };

const listFiles = ({ entry: { kernel, initrds } }: Placed): readonly string[] => [
  kernel,
  ...initrds,
];

/** El Torito: an entry for each kind of firmware that the medium is made for. */
function rehearseFirmware({ bootEntries, fileSize }: IsoImage): readonly Step[] {
  if (bootEntries.length === 0) {
    const reason = 'the ISO has no boot catalog';
    return [willNot(PART, 'firmware finds the boot loader', { reason })];
  }
  return bootEntries.map(({ platform, bootable, sector, loadSectors }) => {
    const isInside = sector * 2048 + Math.min(loadSectors, 1) * 512 <= fileSize;
    return unless(PART, `${platform} firmware finds the boot loader`, {
      place: `El Torito entry ${platform}`,
      reason: !bootable
        ? 'its entry in the boot catalog is marked as not bootable'
        : isInside
          ? undefined
          : 'its entry points behind the end of the ISO',
    });
  });
}

type Sized = { readonly iso: IsoImage; readonly index: MediaIndex | undefined };

/** A file that is shorter than the index says was cut; one that is longer was replaced on purpose. */
async function findMissingFiles(
  paths: readonly string[],
  { iso, index }: Sized,
): Promise<readonly { readonly place: string; readonly reason: string }[]> {
  const sizes = new Map(
    index?.extents.flatMap(({ size, paths }) => paths.map((path) => [path, size] as const)),
  );
  const found = await Promise.all(
    paths.map(async (path) => {
      const node = await iso.find(path);
      if (node?.kind !== 'file') return { place: path, reason: `${path} is not on the medium` };
      const size = sizes.get(node.size === 0 ? '' : path);
      if (node.size > 0 && (size ?? 0) <= node.size) return [];
      const reason = `${path} has ${node.size} bytes${size === undefined ? '' : ` instead of ${size}`}`;
      return { place: path, reason };
    }),
  );
  return found.flat();
}

const findMissingInitrd = (
  { path, entry }: Placed,
  { index }: PlayedMedium,
): readonly { readonly place: string; readonly reason: string }[] =>
  index?.product !== 'live-iso' || entry.initrds.includes(BOOTSTRAP_IMAGE_PATH)
    ? []
    : [{ place: path, reason: `an entry of ${path} does not load ${BOOTSTRAP_IMAGE_PATH}` }];

async function rehearseKernel(iso: IsoImage, index: MediaIndex | undefined): Promise<Step> {
  const architecture = index?.release.architecture;
  const name = 'the kernel runs on the hosts';
  if (architecture !== 'x86_64' && architecture !== 'aarch64' && architecture !== 'ppc64le') {
    const reason = `the kernel of ${architecture ?? 'an unknown architecture'} is not recognized`;
    return cannotKnow(PART, name, { reason });
  }
  try {
    await requireArchitecture(iso, architecture, '');
    return will(PART, `${name}, which are ${architecture}`);
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return willNot(PART, name, { reason: error.message, place: '/images/pxeboot/vmlinuz' });
  }
}

/** The kernel arguments of each menu entry, which the areas of kernel arguments are a part of. */
async function rehearseVolume(iso: IsoImage, entries: readonly Placed[]): Promise<readonly Step[]> {
  const { volumeId } = iso.volume;
  const name = `the live system finds the volume "${volumeId}"`;
  const { value: live, problem } = await attempt(() => readCoreosLive(iso));
  if (!live) return [willNot(PART, name, { reason: problem })];
  const problems = entries.flatMap(({ path, entry: { kargs } }) => {
    const labels = kargs.split(' ').filter((word) => word.startsWith('coreos.liveiso='));
    const other = labels.find((word) => word !== `coreos.liveiso=${volumeId}`);
    if (other !== undefined) return [{ place: path, reason: `the kernel gets ${other}` }];
    return labels.length > 0
      ? []
      : [{ place: path, reason: 'the kernel does not get coreos.liveiso=' }];
  });
  const missing = entries.flatMap(({ path, entry: { kargs } }) =>
    findMissingKargs({ text: kargs, default: live.kargs.default }).map((word) => ({
      place: path,
      reason: `the kernel does not get ${word}`,
    })),
  );
  return [
    ...unlessAny(PART, name, problems),
    ...unlessAny(
      PART,
      'the kernel gets the arguments with which Ignition runs',
      missing.filter(({ reason }) => !reason.includes('coreos.liveiso')),
    ),
  ];
}
