import { homedir } from 'node:os';
import { join } from 'node:path';

/** Foreign programs of the boot tests; the README's package list brings them. */
export const BOOT_TOOLS: readonly string[] = [
  ...['qemu-system-x86_64', 'debootstrap', 'mksquashfs', 'cpio', 'depmod', 'busybox', 'mformat'],
  ...['genisoimage', 'isohybrid', 'grub-mkstandalone', 'xorriso', 'skopeo', 'docker-registry'],
];

/** Where the parts of the base ISO are kept between runs. */
export const BOOT_CACHE =
  process.env['SEALIFT_BOOT_CACHE'] ?? join(homedir(), '.cache/sealift-boot');
