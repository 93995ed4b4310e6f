import { readdirSync, readFileSync, realpathSync, statSync, type Stats } from 'node:fs';
import { readFile, type FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isErrno } from '../errors.ts';
import { unlessAbsent } from './files.ts';

/** A whole disk or a part of one, as the kernel describes it. */
export type BlockDevice = {
  /** `/dev/sdb`, regardless of the name it was found by. */
  readonly path: string;
  /** `sdb` */
  readonly name: string;
  /** Serial number given by its maker; for a loop device, the file behind it. Empty if nothing is known. */
  readonly serial: string;
  /** A number that differs for each disk since the machine started; empty if the kernel does not count. */
  readonly sequence: string;
  /** Bytes. */
  readonly size: number;
  readonly partOf?: string;
  readonly isReadOnly: boolean;
};

export type DeviceUse = {
  /** Name of the device, `sdb1`. */
  readonly by: string;
  readonly kind: 'mounted' | 'swap' | 'held';
  /** Its mount point, or the holder: `/media/usb`, `dm-0`. */
  readonly where: string;
};

/** sysfs-block: the size of a device is in blocks of 512 bytes, regardless of the device's own blocks. */
const BLOCK = 512;
const CLASS = '/sys/class/block';

/** The block device of a path, also through a link; undefined if it leads to something else, or nothing. */
export function findDevice(path: string): BlockDevice | undefined {
  const stats = unlessUnreadable(() => statSync(path));
  return stats && describeDevice(stats, () => realpathSync(path));
}

/** The block device of an open file; undefined if it is not a block device. */
export async function findOpenDevice(
  file: FileHandle,
  path: string,
): Promise<BlockDevice | undefined> {
  return describeDevice(await file.stat(), () => path);
}

function describeDevice(stats: Stats, realPath: () => string): BlockDevice | undefined {
  if (!stats.isBlockDevice()) return undefined;
  const described = unlessUnreadable(() => realpathSync(describedAt(stats)));
  if (described === undefined) return undefined; // a node of a device that the kernel does not have
  const name = basename(described);
  const isPart = read(join(described, 'partition')) !== undefined;
  const disk = isPart ? join(described, '..') : described;
  return {
    path: realPath(),
    name,
    serial: readSerial(disk),
    sequence: read(join(disk, 'diskseq')) ?? '',
    size: Number(read(join(described, 'size')) ?? 0) * BLOCK,
    isReadOnly: read(join(described, 'ro')) === '1',
    ...(isPart && { partOf: basename(disk) }),
  };
}

/**
 * Files with a serial number, the best first: NVMe and virtio; SCSI and USB (page 0x80 of the vital
 * product data); the world-wide name.
 */
const SERIALS = ['serial', 'device/serial', 'device/vpd_pg80', 'device/wwid', 'wwid'] as const;

function readSerial(disk: string): string {
  const texts = [...SERIALS, 'loop/backing_file'].map((name) => read(join(disk, name)));
  return texts.find((text) => text !== undefined && text !== '') ?? '';
}

/** Bytes of a block device; stat(2) does not report its size. */
export async function readDeviceSize(stats: Pick<Stats, 'rdev'>): Promise<number> {
  return Number(await readFile(`${describedAt(stats)}/size`, 'utf8')) * BLOCK;
}

/** The path at which the kernel describes a device, regardless of the name it was opened by. */
function describedAt({ rdev }: Pick<Stats, 'rdev'>): string {
  // gnu_dev_major(3): 12 bits of the major number above 8 of the minor number, the others above them.
  const device = BigInt(rdev);
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffff_ff00n);
  return `/sys/dev/block/${major}:${minor}`;
}

/** True if a path is a disk, a partition of it, or the file behind a loop device. */
export function isWithinDevice({ name }: BlockDevice, path: string): boolean {
  const found = findDevice(path);
  if (found) return (found.partOf ?? found.name) === name;
  const behind = unlessUnreadable(() => readFileSync(join(CLASS, name, 'loop/backing_file')));
  if (!behind) return false;
  const real = unlessUnreadable(() => realpathSync(behind.toString().replace(/\n$/, '')));
  return real !== undefined && real === unlessUnreadable(() => realpathSync(path));
}

/** Uses of a disk, of its partitions, and of the devices made of them (LVM, RAID, encryption). */
export async function listUses({ name }: BlockDevice): Promise<readonly DeviceUse[]> {
  const own = [name, ...listPartitions(name)];
  const held = own.flatMap((by) =>
    list(join(CLASS, by, 'holders')).map((where) => ({ by, kind: 'held', where }) as const),
  );
  const above = listHolders(own);
  const all = new Set([...own, ...above]);
  const mounts = parseMounts(await readFile('/proc/self/mountinfo', 'utf8'));
  const swaps = (await readFile('/proc/swaps', 'utf8')).split('\n').slice(1);
  return [
    ...mounts
      .filter(({ by }) => all.has(by))
      .map(({ by, where }) => ({ by, kind: 'mounted', where }) as const),
    ...swaps
      .map((line) => nameOf(line.split(/\s/)[0] ?? ''))
      .filter((by) => all.has(by))
      .map((by) => ({ by, kind: 'swap', where: 'swap' }) as const),
    ...held,
  ];
}

function listHolders(names: readonly string[]): readonly string[] {
  const holders = names.flatMap((name) => list(join(CLASS, name, 'holders')));
  if (holders.length === 0) return [];
  const all = holders.flatMap((name) => [name, ...listPartitions(name)]);
  return [...all, ...listHolders(all)];
}

const list = (directory: string): readonly string[] =>
  unlessUnreadable(() => readdirSync(directory)) ?? [];

const listPartitions = (name: string): readonly string[] =>
  list(join(CLASS, name)).filter(
    (entry) => read(join(CLASS, name, entry, 'partition')) !== undefined,
  );

/**
 * proc_pid_mountinfo(5): the device by its number, or by its name if the number belongs to the file system.
 */
function parseMounts(text: string): readonly { readonly by: string; readonly where: string }[] {
  return text.split('\n').flatMap((line) => {
    const [, , number, , where] = line.split(' ');
    const source = line.split(' - ')[1]?.split(' ')[1];
    if (number === undefined || where === undefined || source === undefined) return [];
    const named = unlessUnreadable(() => basename(realpathSync(`/sys/dev/block/${number}`)));
    return [{ by: named ?? nameOf(source), where: unescape(where) }];
  });
}

/** `sdb1` for `/dev/disk/by-label/usb`; an empty name if the path is not below `/dev`. */
function nameOf(path: string): string {
  if (!path.startsWith('/dev/')) return '';
  return basename(unlessUnreadable(() => realpathSync(path)) ?? path);
}

const unescape = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));

/** The text of a file of sysfs, without unprintable characters. */
function read(path: string): string | undefined {
  const bytes = unlessUnreadable(() => readFileSync(path));
  return bytes
    ?.toString('latin1')
    .replaceAll(/[^\x20-\x7e]/g, '')
    .trim();
}

/** Runs a read; a device may lack an attribute, or refuse it. */
function unlessUnreadable<Value>(work: () => Value): Value | undefined {
  try {
    return unlessAbsent(work);
  } catch (error) {
    if (isErrno(error, 'EACCES', 'EIO', 'EINVAL', 'ENODEV', 'ENXIO')) return undefined;
    throw error;
  }
}
