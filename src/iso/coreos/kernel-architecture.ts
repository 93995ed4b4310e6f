import type { IsoImage } from '../open-iso.ts';

/** RPM's names of those that can be told. */
export type KernelArchitecture = 'x86_64' | 'aarch64';

const KERNEL = '/images/pxeboot/vmlinuz';

/** PE/COFF 3.3.1: machine types. */
const MACHINES: Readonly<Record<number, KernelArchitecture>> = {
  0x8664: 'x86_64',
  0xaa64: 'aarch64',
};

/**
 * What the kernel of a live ISO runs on, by its header; undefined where that does not say so.
 *
 * | offset | what | by |
 * |---|---|---|
 * | 0x202 | `HdrS` | Linux/x86 boot protocol 2.00 |
 * | 56 | `ARM\x64` | Linux/arm64 boot protocol |
 * | 0x3c | offset of `PE\0\0` and the machine type | UEFI 2.10, 2.1.1 |
 */
export async function readKernelArchitecture(
  iso: IsoImage,
): Promise<KernelArchitecture | undefined> {
  const node = await iso.find(KERNEL);
  const [extent] = node?.kind === 'file' ? node.extents : [];
  if (extent === undefined) return undefined;
  const head = Buffer.alloc(4096);
  head.set(await iso.readBytes(extent.offset, Math.min(extent.size, head.length)));
  if (head.toString('latin1', 0x202, 0x206) === 'HdrS') return 'x86_64';
  if (head.toString('latin1', 56, 60) === 'ARMd') return 'aarch64';
  const pe = head.readUInt32LE(0x3c);
  const isPe = pe <= head.length - 6 && head.toString('latin1', pe, pe + 4) === 'PE\0\0';
  return isPe ? MACHINES[head.readUInt16LE(pe + 4)] : undefined;
}
