import { execFileSync } from 'node:child_process';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeMetalImage } from '../support/metal-image.ts';

/* A metal image that starts: the boot code of GRUB for the BIOS and for EFI, which read the menu of partition 3. */

const GRUB = '/usr/lib/grub/i386-pc';
const MODULES = [
  ...['part_gpt', 'ext2', 'iso9660', 'normal', 'configfile', 'linux', 'echo', 'test'],
  ...['search', 'search_label', 'search_fs_file'],
];
const BLOCK = 512;
/** The first block of partition BIOS-BOOT. */
const CORE_BLOCK = 2048;
/** Bytes of the MBR in front of the signature of the disk. */
const CODE_SIZE = 440;
/** Offset in GRUB's boot.img of the block that it loads, and in diskboot.img of the list of those behind it. */
const KERNEL_SECTOR = 0x5c;
const BLOCK_LIST = 500;

/** Makes `metal.raw` in a folder. */
export async function makeBootableMetal(directory: string): Promise<string> {
  const boot = join(directory, 'metal-boot');
  const efi = join(directory, 'metal-efi');
  await mkdir(boot, { recursive: true });
  await mkdir(join(efi, 'EFI/BOOT'), { recursive: true });
  execFileSync('grub-mkimage', [
    ...['-O', 'x86_64-efi', '-p', '(hd0,gpt3)/grub2', '-o', join(efi, 'EFI/BOOT/BOOTX64.EFI')],
    ...MODULES,
  ]);
  const path = await makeMetalImage(directory, { boot, efi });
  const core = join(directory, 'core.img');
  execFileSync('grub-mkimage', [
    ...['-O', 'i386-pc', '-p', '(hd0,gpt3)/grub2', '-o', core, 'biosdisk'],
    ...MODULES,
  ]);
  const code = await readFile(join(GRUB, 'boot.img'));
  code.writeBigUInt64LE(BigInt(CORE_BLOCK), KERNEL_SECTOR);
  const image = await readFile(core);
  image.writeBigUInt64LE(BigInt(CORE_BLOCK + 1), BLOCK_LIST);
  image.writeUInt16LE(Math.ceil(image.length / BLOCK) - 1, BLOCK_LIST + 8);
  const file = await open(path, 'r+');
  await file.write(code, 0, CODE_SIZE, 0);
  await file.write(image, 0, image.length, CORE_BLOCK * BLOCK);
  await file.close();
  return path;
}
