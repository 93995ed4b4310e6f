import { homedir } from 'node:os';
import { join } from 'node:path';
import { hasTool, requireTool } from '../support/tools.ts';

const TOOLS: readonly string[] = [
  ...['qemu-system-x86_64', 'debootstrap', 'mksquashfs', 'cpio', 'depmod', 'busybox', 'mformat'],
  ...['genisoimage', 'isohybrid', 'grub-mkstandalone', 'xorriso', 'skopeo', 'docker-registry'],
  ...['ignition-validate', 'openssl', 'apt-get', 'dpkg-deb'],
];

/** Where the parts of the base ISO are kept between runs. */
export const BOOT_CACHE =
  process.env['SEALIFT_BOOT_CACHE'] ?? join(homedir(), '.cache/sealift-boot');

/** What this machine lacks to make and boot the world, in words. */
export const listMissing = (): readonly string[] => [
  ...TOOLS.filter((tool) => !hasTool(tool)),
  ...(process.getuid?.() === 0 ? [] : ['root, for debootstrap']),
];

/** Whether this machine can make and boot the world: its programs, and root for debootstrap. */
export function hasBootHost(): boolean {
  const hasTools = TOOLS.map(requireTool).every(Boolean);
  if (process.getuid?.() === 0) return hasTools;
  if (process.env['CI'] === 'true') throw new Error('CI needs root for the boot tests');
  console.warn('boot tests are skipped: debootstrap needs root');
  return false;
}
