import { readFile } from 'node:fs/promises';
import type { Stats } from 'node:fs';

/** Where the kernel describes a block device, whatever name it was opened by. */
const describedAt = ({ rdev }: Pick<Stats, 'rdev'>): string => {
  // gnu_dev_major(3): 12 bits of the major number above 8 of the minor number, the others above them.
  const device = BigInt(rdev);
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffff_ff00n);
  return `/sys/dev/block/${major}:${minor}`;
};

/** sysfs-block: the size of a device is in blocks of 512 bytes, whatever its own blocks are. */
const BLOCK = 512;

/** Bytes of a block device, whose size stat(2) does not have. */
export async function readDeviceSize(stats: Pick<Stats, 'rdev'>): Promise<number> {
  return Number(await readFile(`${describedAt(stats)}/size`, 'utf8')) * BLOCK;
}
