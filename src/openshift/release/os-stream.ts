import { buffer } from 'node:stream/consumers';
import { findCpioMember } from '../../ignition/index.ts';
import type { IsoImage } from '../../iso/index.ts';

/**
 * Such as `rhel-9`; undefined if the volume is not named as Red Hat does: `rhcos-9.6.20250523-0`, and before
 * OpenShift 4.19 `rhcos-418.94.202410090804-0`, with the release first.
 */
export function osStreamOf(volumeId: string): string | undefined {
  const [, first = '', second = ''] = VOLUME.exec(volumeId) ?? [];
  const major = isRelease(first) ? second.slice(0, -1) : first;
  return major === '' ? undefined : `rhel-${major}`;
}

/** The OpenShift minor version that a live ISO is named after, such as `4.18`. */
export function openshiftOf(volumeId: string): string | undefined {
  const [, first = ''] = VOLUME.exec(volumeId) ?? [];
  return isRelease(first) ? `${first.slice(0, 1)}.${first.slice(1)}` : undefined;
}

const VOLUME = /^rhcos-(\d+)\.(\d+)\.\d+/;

/** 49 is OpenShift 4.9 and 418 is 4.18; RHEL is far from 40. */
const isRelease = (first: string): boolean => Number(first) >= 40;

const ROOTFS = '/images/pxeboot/rootfs.img';

/** File of the archive around the root file system, with the version that the initramfs compares with its own. */
const VERSION_FILE = 'etc/coreos-live-rootfs';

/**
 * The name that Red Hat's volume has for the system, which a copy under another name keeps; the volume's name
 * if the system is not known, or not Red Hat's.
 */
export async function readSystemName(
  iso: Pick<IsoImage, 'find' | 'stream'> & { readonly volume: { readonly volumeId: string } },
): Promise<string> {
  const { volumeId } = iso.volume;
  if (volumeId.startsWith('fedora')) return volumeId;
  const node = await iso.find(ROOTFS);
  if (node?.kind !== 'file') return volumeId;
  const found = await findCpioMember(VERSION_FILE, ({ start: offset, size }) =>
    buffer(iso.stream(node, { offset, size })),
  );
  const version = Buffer.from(found ?? [])
    .toString('utf8')
    .trim();
  return /^\d+\.\d+\.\d+-\d+$/.test(version) ? `rhcos-${version}` : volumeId;
}
