import { BOOTSTRAP, type Change, readFromMedium, replaceText } from './alter.ts';
import type { Broken } from './broken.ts';
import type { GoodMedium } from './media.ts';

const BASE = { base: '4.21', part: 'boot' } as const;
const GRUB = '/EFI/redhat/grub.cfg';
const ISOLINUX = '/isolinux/isolinux.cfg';
const SECTOR = 2048;

/** Changes the kernel arguments in every menu. */
const editKargs =
  (from: string, to: string) =>
  ({ path }: GoodMedium): Change => ({
    files: Object.fromEntries(
      [GRUB, ISOLINUX].map((menu) => {
        const text = readFromMedium(path, menu).toString('utf8');
        return [menu, replaceText(text, [from, to.padEnd(from.length)])];
      }),
    ),
  });

const editGrub =
  (change: readonly [string, string]) =>
  ({ path }: GoodMedium): Change => ({
    files: { [GRUB]: replaceText(readFromMedium(path, GRUB).toString('utf8'), change) },
  });

const takeAway = (path: string) => (): Change => ({ files: { [path]: null } });

/** El Torito 2.0: where the boot catalog is, in the second volume descriptor. */
const catalogOf = (iso: Buffer): number => iso.readUInt32LE(17 * SECTOR + 0x47) * SECTOR;

/** Firmware or boot loader does not get to the kernel, or the kernel not to its root. */
export const BROKEN_BOOTS: readonly Broken[] = [
  {
    ...BASE,
    name: 'the kernel looks for another volume',
    change: editKargs('coreos.liveiso=rhcos', 'coreos.liveiso=rhxxx'),
  },
  {
    ...BASE,
    name: 'the kernel looks for no volume',
    change: editKargs('coreos.liveiso=', 'coreos.leviiso='),
  },
  {
    ...BASE,
    name: 'the kernel is not told of the first boot',
    change: editKargs('ignition.firstboot', ''),
  },
  {
    ...BASE,
    name: 'the kernel is not told of its platform',
    change: editKargs('ignition.platform.id=metal', ''),
  },
  {
    ...BASE,
    name: 'the volume has another name',
    change: () => ({
      // ECMA-119 8.4.7: the volume identifier of the primary volume descriptor.
      bytes: (iso) => iso.write('OTHER', 16 * SECTOR + 40, 'latin1'),
    }),
  },
  { ...BASE, name: 'the kernel is gone', change: takeAway('/images/pxeboot/vmlinuz') },
  {
    ...BASE,
    name: 'the kernel is for another machine',
    change: () => {
      const kernel = Buffer.alloc(0x206);
      kernel.write('ARMd', 56, 'latin1');
      return { files: { '/images/pxeboot/vmlinuz': kernel } };
    },
  },
  { ...BASE, name: 'the initrd is gone', change: takeAway('/images/pxeboot/initrd.img') },
  { ...BASE, name: 'the root file system is gone', change: takeAway('/images/pxeboot/rootfs.img') },
  {
    ...BASE,
    name: 'the root file system is cut',
    change: ({ path }) => {
      const rootfs = '/images/pxeboot/rootfs.img';
      return { files: { [rootfs]: readFromMedium(path, rootfs).subarray(0, 60_000) } };
    },
  },
  { ...BASE, name: 'the initrd with the config is gone', change: takeAway(BOOTSTRAP) },
  {
    ...BASE,
    name: 'the menu does not load the initrd with the config',
    change: editGrub([` ${BOOTSTRAP}`, '']),
  },
  {
    ...BASE,
    name: 'the menu loads the kernel from where it is not',
    change: editGrub(['/images/pxeboot/vmlinuz', '/images/vmlinuz']),
  },
  {
    ...BASE,
    name: 'the menu does not load the initrd with the config of the installer',
    change: editGrub([' /images/ignition.img', '']),
  },
  {
    ...BASE,
    name: 'the boot loader looks for another volume',
    change: editGrub(['menuentry', "search --set=root -l 'other'\nmenuentry"]),
  },
  { ...BASE, name: 'a module of ISOLINUX is gone', change: takeAway('/isolinux/ldlinux.c32') },
  {
    ...BASE,
    name: 'the boot image of EFI is empty',
    change: ({ path }) => {
      const image = '/images/efiboot.img';
      return { files: { [image]: Buffer.alloc(readFromMedium(path, image).length) } };
    },
  },
  { ...BASE, name: 'the menu has no entry', change: editGrub(['menuentry', '# menuentry']) },
  { ...BASE, name: 'no menu is there for EFI', change: takeAway(GRUB) },
  { ...BASE, name: 'no menu is there for BIOS', change: takeAway(ISOLINUX) },
  {
    ...BASE,
    name: 'the boot catalog says that BIOS cannot boot it',
    change: () => ({ bytes: (iso) => iso.writeUInt8(0x00, catalogOf(iso) + 32) }),
  },
  {
    ...BASE,
    name: 'the boot catalog leads BIOS behind the end',
    change: () => ({ bytes: (iso) => iso.writeUInt32LE(0x00ff_ffff, catalogOf(iso) + 32 + 8) }),
  },
  {
    ...BASE,
    name: 'the ISO has no boot catalog',
    change: () => ({
      // A boot record becomes a descriptor of a type that nobody reads.
      bytes: (iso) => iso.write('XX TORITO', 17 * SECTOR + 7, 'latin1'),
    }),
  },
  {
    ...BASE,
    name: 'the boot catalog says that EFI cannot boot it',
    // The entry behind the header of the section.
    change: () => ({ bytes: (iso) => iso.writeUInt8(0x00, catalogOf(iso) + 96) }),
  },
];
