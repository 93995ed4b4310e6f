import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/* A small image in the form of CoreOS's metal image: its partitions, file systems and boot entries. */

export type MetalOptions = {
  readonly name?: string;
  /** Text of /grub2/grub.cfg. */
  readonly menu?: string;
  /** Folders that are copied to the boot file system and the EFI system partition. */
  readonly boot?: string;
  readonly efi?: string;
};

const MIB = 2 ** 20;

/** Start and size in MiB of each partition; the first three as CoreOS has them, but smaller. */
export const METAL_PARTITIONS = [
  { name: 'BIOS-BOOT', type: '21686148-6449-6E6F-744E-656564454649', start: 1, size: 1 },
  { name: 'EFI-SYSTEM', type: 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B', start: 2, size: 40 },
  { name: 'boot', type: '0FC63DAF-8483-4772-8E79-3D69D8477DE4', start: 42, size: 64 },
  { name: 'root', type: '0FC63DAF-8483-4772-8E79-3D69D8477DE4', start: 106, size: 8 },
] as const;

const DISK_ID = '00000000-0000-4000-A000-000000000001';

export async function makeMetalImage(
  directory: string,
  { name = 'metal.raw', menu = '# menu of CoreOS\n', boot, efi }: MetalOptions = {},
): Promise<string> {
  const path = join(directory, name);
  const work = await mkdtemp(join(directory, 'metal-'));
  await writeFile(path, '');
  await truncate(path, 115 * MIB);
  execFileSync('sgdisk', [
    ...['-Z', '-U', DISK_ID, '-a', '1'],
    ...METAL_PARTITIONS.flatMap(({ name, type, start, size }, index) => {
      const number = index + 1;
      const first = (start * MIB) / 512;
      return [
        `-n${number}:${first}:${first + (size * MIB) / 512 - 1}`,
        ...[`-c${number}:${name}`, `-t${number}:${type}`],
        `-u${number}:0000000${number}-0000-4000-A000-000000000000`,
      ];
    }),
    ...['-A1:set:2', path],
  ]);
  const tree = join(work, 'tree');
  await mkdir(join(tree, 'grub2'), { recursive: true });
  await mkdir(join(tree, 'loader.0/entries'), { recursive: true });
  await symlink('loader.0', join(tree, 'loader'));
  await symlink('.', join(tree, 'boot'));
  if (boot !== undefined) await cp(boot, tree, { recursive: true });
  await writeFile(join(tree, 'grub2/grub.cfg'), menu);
  await writeFile(join(tree, 'loader.0/entries/ostree-1.conf'), 'title CoreOS\n');
  const [, esp, bootPartition] = METAL_PARTITIONS;
  const bootImage = join(work, 'boot.img');
  execFileSync('mkfs.ext4', [
    ...['-q', '-F', '-L', 'boot', '-O', '^orphan_file', '-d', tree],
    ...[bootImage, `${bootPartition.size}M`],
  ]);
  place(bootImage, path, bootPartition.start);
  const espImage = join(work, 'esp.img');
  await writeFile(espImage, '');
  await truncate(espImage, esp.size * MIB);
  execFileSync('mkfs.vfat', ['-n', 'EFI-SYSTEM', espImage], { stdio: 'ignore' });
  if (efi !== undefined) execFileSync('mcopy', ['-s', '-i', espImage, join(efi, 'EFI'), '::']);
  place(espImage, path, esp.start);
  await rm(work, { recursive: true });
  return path;
}

function place(from: string, to: string, mebibytes: number): void {
  execFileSync('dd', [
    ...[`if=${from}`, `of=${to}`, 'bs=1M', `seek=${mebibytes}`],
    ...['conv=notrunc,sparse', 'status=none'],
  ]);
}
