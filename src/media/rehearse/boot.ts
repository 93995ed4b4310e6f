import {
  type BootEntry,
  type BootMenu,
  findEmbedArea,
  findMissingKargs,
  type IsoImage,
  type MenuEntry,
  readBootMenus,
  readCoreosLive,
  readKernelArchitecture,
  SECTOR_SIZE,
} from '../../iso/index.ts';
import { BOOTSTRAP_IMAGE_PATH, type MediaIndex, ROOTFS_PATH } from '../media-index.ts';
import { EMBEDDED_CONFIG } from '../live-config.ts';
import { attempt } from '../open.ts';
import type { PlayedMedium } from './played-medium.ts';
import { cannotKnow, type RehearsedStep, unless, unlessAny, will, willNot } from './step.ts';

const PART = 'boot';

/** Plays the start of a host: firmware, boot menu, kernel, and the volume that the live system waits for. */
export async function rehearseBoot(medium: PlayedMedium): Promise<readonly RehearsedStep[]> {
  const { iso, index } = medium;
  const { value: menus = [], problem } = await attempt(() => readBootMenus(iso));
  const entries = menus.flatMap(({ path, entries }) => entries.map((entry) => ({ path, entry })));
  const needed = [
    ...new Set([...entries.flatMap(listFiles), ROOTFS_PATH, ...listLoaderFiles(index)]),
  ];
  return [
    ...(await rehearseFirmware(iso)),
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
      'the initrds with configs for Ignition are loaded',
      await findMissingInitrds(entries, medium),
    ),
    ...rehearseRoot(menus, iso),
    ...(await rehearseKernels(entries, medium)),
    ...(await rehearseVolume(iso, entries)),
  ];
}

type Placed = { readonly path: string; readonly entry: MenuEntry };

const listFiles = ({ entry: { kernel, initrds } }: Placed): readonly string[] => [
  kernel,
  ...initrds,
];

/** Menus and programs of the boot loaders, such as the modules of ISOLINUX. */
const listLoaderFiles = (index: MediaIndex | undefined): readonly string[] =>
  (index?.extents ?? [])
    .flatMap(({ paths }) => paths)
    .filter((path) => /^\/(?:EFI|boot|isolinux)\/.*\.(?:bin|c32|cfg|efi|mod)$/i.test(path));

/** El Torito: an entry for each kind of firmware that the medium is made for. */
async function rehearseFirmware(iso: IsoImage): Promise<readonly RehearsedStep[]> {
  if (iso.bootEntries.length === 0) {
    const reason = 'the ISO has no boot catalog';
    return [willNot(PART, 'firmware finds the boot loader', { reason })];
  }
  return Promise.all(
    iso.bootEntries.map(async (entry) =>
      unless(PART, `${entry.platform} firmware finds the boot loader`, {
        place: `El Torito entry ${entry.platform}`,
        reason: await explainEntry(entry, iso),
      }),
    ),
  );
}

async function explainEntry(
  { bootable, sector, loadSectors }: BootEntry,
  iso: IsoImage,
): Promise<string | undefined> {
  if (!bootable) return 'its entry in the boot catalog is marked as not bootable';
  const [offset, size] = [sector * SECTOR_SIZE, Math.min(loadSectors, 1) * 512];
  if (offset + size > iso.fileSize) return 'its entry points behind the end of the ISO';
  const head = await iso.readBytes(offset, size);
  return size > 0 && head.every((byte) => byte === 0)
    ? 'its boot image begins with zeros'
    : undefined;
}

type Sized = { readonly iso: IsoImage; readonly index: MediaIndex | undefined };

/** A file that is shorter than the index says was cut; one that is longer was replaced on purpose. */
async function findMissingFiles(
  paths: readonly string[],
  { iso, index }: Sized,
): Promise<readonly Missing[]> {
  const sizes = new Map(
    index?.extents.flatMap(({ size, paths }) =>
      paths.filter((path) => !path.endsWith('.cfg')).map((path) => [path, size] as const),
    ),
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

type Missing = { readonly place: string; readonly reason: string };

/** The initrds in which Ignition finds configs: a menu that leaves one out starts a system without it. */
async function findMissingInitrds(
  entries: readonly Placed[],
  { iso, index, configs }: PlayedMedium,
): Promise<readonly Missing[]> {
  const isEmbedded = configs.some(({ name, config }) => name === EMBEDDED_CONFIG && config);
  const { value: area } = await attempt(() => findEmbedArea(iso));
  const needed = [
    ...(index?.product === 'live-iso' ? [BOOTSTRAP_IMAGE_PATH] : []),
    ...(isEmbedded && area ? [area.file.replace(/^\/*/, '/')] : []),
  ];
  return entries.flatMap(({ path, entry: { initrds } }) =>
    needed
      .filter((initrd) => !initrds.includes(initrd))
      .map((initrd) => ({ place: path, reason: `an entry of ${path} does not load ${initrd}` })),
  );
}

async function rehearseKernels(
  entries: readonly Placed[],
  { iso, index }: PlayedMedium,
): Promise<readonly RehearsedStep[]> {
  const name = 'the kernel runs on the hosts';
  const architecture = index?.release.architecture;
  const kernels = [...new Set(entries.map(({ entry: { kernel } }) => kernel))];
  const found = await Promise.all(
    kernels.map(async (place) => ({ place, is: await readKernelArchitecture(iso, place) })),
  );
  const steps = found.flatMap(({ place, is }): readonly RehearsedStep[] => {
    if (is === architecture) return [];
    const reason = `it is for ${is ?? 'an architecture that its header does not tell'}`;
    return [
      (is === undefined || architecture === undefined ? cannotKnow : willNot)(PART, name, {
        reason,
        place,
      }),
    ];
  });
  return steps.length > 0 || architecture === undefined
    ? steps
    : [will(PART, `${name}, which are ${architecture}`)];
}

/** GRUB takes its files from the volume with this label: the medium itself, or one that is not there. */
const rehearseRoot = (
  menus: readonly BootMenu[],
  { volume: { volumeId } }: IsoImage,
): readonly RehearsedStep[] =>
  unlessAny(
    PART,
    'the boot loader finds the volume of its files',
    menus.flatMap(({ path, volumes }) =>
      volumes
        .filter((volume) => volume !== volumeId)
        .map((volume) => ({ place: path, reason: `it looks for the volume "${volume}"` })),
    ),
  );

/** The kernel arguments of each menu entry, of which the areas of kernel arguments are a part. */
async function rehearseVolume(
  iso: IsoImage,
  entries: readonly Placed[],
): Promise<readonly RehearsedStep[]> {
  const { volumeId } = iso.volume;
  const problems = entries.flatMap(({ path, entry: { kargs } }) => {
    const labels = kargs.split(' ').filter((word) => word.startsWith('coreos.liveiso='));
    const other = labels.find((word) => word !== `coreos.liveiso=${volumeId}`);
    if (other !== undefined) return [{ place: path, reason: `the kernel gets ${other}` }];
    return labels.length > 0
      ? []
      : [{ place: path, reason: 'the kernel does not get coreos.liveiso=' }];
  });
  // Areas that were moved only keep tools from customizing the medium.
  const { value: live } = await attempt(() => readCoreosLive(iso));
  const missing = entries.flatMap(({ path, entry: { kargs } }) =>
    findMissingKargs({ text: kargs, default: live?.kargs.default ?? IGNITION_KARGS }).map(
      (word) => ({
        place: path,
        reason: `the kernel does not get ${word}`,
      }),
    ),
  );
  return [
    ...unlessAny(PART, `the live system finds the volume "${volumeId}"`, problems),
    ...unlessAny(
      PART,
      'the kernel gets the arguments with which Ignition runs',
      missing.filter(({ reason }) => !reason.includes('coreos.liveiso')),
    ),
  ];
}

const IGNITION_KARGS = 'ignition.firstboot ignition.platform.id=metal';
