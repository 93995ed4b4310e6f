import { join } from 'node:path';
import {
  isWithinDevice,
  listUses,
  type BlockDevice,
  type DeviceUse,
} from '../base/disk/block-device.ts';
import { DiskError, UsageError } from '../base/errors.ts';
import { formatSize } from '../base/text/words.ts';

/** Replaces an output that is a device: the names of its journal, lock and report begin with it. */
export const standInFor = (device: BlockDevice, workDir: string): string =>
  join(workDir, 'devices', `${device.name}-${nameSerial(device)}`);

const nameSerial = ({ serial, size }: BlockDevice): string =>
  serial === '' ? String(size) : serial.replaceAll(/[^A-Za-z0-9.-]+/g, '_').slice(-64);

/** Mount points of the files that a running system needs. */
const OF_SYSTEM: ReadonlySet<string> = new Set([
  '/',
  '/boot',
  '/boot/efi',
  '/usr',
  '/var',
  '/sysroot',
]);

/** `force` overwrites a device, unless it is in use or is one that the build reads. */
export async function claimDevice(
  device: BlockDevice,
  { inputs, force }: { readonly inputs: readonly string[]; readonly force: boolean },
): Promise<void> {
  const what = describeDevice(device);
  if (device.partOf !== undefined) {
    throw new UsageError('device.partition', `${device.path} is a partition, which does not boot`, {
      expected: 'a whole disk',
      found: `a partition of ${device.partOf}`,
      hint: `name the disk, /dev/${device.partOf}`,
    });
  }
  if (device.isReadOnly) {
    throw new DiskError('device.read-only', `${what} is read-only`, {
      hint: 'unlock it, or name another device',
    });
  }
  const input = inputs.find((path) => isWithinDevice(device, path));
  if (input !== undefined) {
    throw new UsageError('device.is-input', `${what} is an input of this run`, {
      expected: 'a device that is not read',
      found: input,
      hint: 'name another device',
    });
  }
  refuseUses(what, await listUses(device));
  if (force) return;
  throw new UsageError('device.force', `${what} would be overwritten`, {
    expected: '--force',
    found: 'no --force',
    hint: 'check that it is the right device, and add --force',
  });
}

function refuseUses(what: string, uses: readonly DeviceUse[]): void {
  const system = uses.find(({ kind, where }) => kind === 'mounted' && OF_SYSTEM.has(where));
  const use = system ?? uses[0];
  if (!use) return;
  const { kind, by, where } = use;
  if (system) {
    throw new DiskError('device.system', `${what} is a disk of this system: ${by} is ${where}`, {
      found: `${by} is mounted at ${where}`,
      hint: 'name another device',
    });
  }
  const said = {
    mounted: ['device.mounted', `is mounted at ${where}`, `unmount it: umount ${where}`],
    swap: ['device.swap', 'is used as swap', `stop it: swapoff /dev/${by}`],
    held: [
      'device.held',
      `is part of ${where}`,
      'remove it from its volume group, array or mapping',
    ],
  } as const;
  const [code, problem, hint] = said[kind];
  throw new DiskError(code, `${what} is in use: ${by} ${problem}`, {
    found: `${by} ${problem}`,
    hint,
  });
}

const describeDevice = ({ path, serial, size }: BlockDevice): string =>
  `${path} (${serial === '' ? 'no serial number' : serial}, ${formatSize(size)})`;
