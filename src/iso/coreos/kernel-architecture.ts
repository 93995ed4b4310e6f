import { ConfigError } from '../../base/errors.ts';
import type { IsoImage } from '../open-iso.ts';

/** RPM's names of those that can be told. */
type KernelArchitecture = 'x86_64' | 'aarch64' | 'ppc64le';

const KERNEL = '/images/pxeboot/vmlinuz';

/** PE/COFF 3.3.1: machine types. */
const MACHINES: Readonly<Record<number, KernelArchitecture>> = {
  0x8664: 'x86_64',
  0xaa64: 'aarch64',
};

/** The magic number, class 2, encoding 1. */
const ELF_64_LE = '7f454c460201';
const ELF_PPC64 = 21;

/**
 * A live ISO for other machines would only be found out when none of them starts.
 *
 * @param hint what to do where it is for another
 * @throws ConfigError `base-iso.architecture`
 */
export async function requireArchitecture(
  iso: IsoImage,
  expected: KernelArchitecture,
  hint: string,
): Promise<void> {
  const found = await readKernelArchitecture(iso);
  if (found === undefined || found === expected) return;
  throw new ConfigError(
    'base-iso.architecture',
    `base ISO ${iso.path} is for ${found}, but the medium is for ${expected}`,
    { expected, found, hint },
  );
}

/**
 * What the kernel of a live ISO runs on, by its header; undefined where that does not say so.
 *
 * | offset | what | by |
 * |---|---|---|
 * | 0x202 | `HdrS` | Linux/x86 boot protocol 2.00 |
 * | 56 | `ARM\x64` | Linux/arm64 boot protocol |
 * | 0 | ELF header of 64 bits, little-endian, `e_machine` 21 at 18 | System V ABI, gABI 4.1 |
 * | 0x3c | offset of `PE\0\0` and the machine type | UEFI 2.10, 2.1.1 |
 */
async function readKernelArchitecture(iso: IsoImage): Promise<KernelArchitecture | undefined> {
  const node = await iso.find(KERNEL);
  const [extent] = node?.kind === 'file' ? node.extents : [];
  if (extent === undefined) return undefined;
  const head = Buffer.alloc(4096);
  head.set(await iso.readBytes(extent.offset, Math.min(extent.size, head.length)));
  if (head.toString('latin1', 0x202, 0x206) === 'HdrS') return 'x86_64';
  if (head.toString('latin1', 56, 60) === 'ARMd') return 'aarch64';
  if (head.toString('hex', 0, 6) === ELF_64_LE) {
    return head.readUInt16LE(18) === ELF_PPC64 ? 'ppc64le' : undefined;
  }
  const pe = head.readUInt32LE(0x3c);
  const isPe = pe <= head.length - 6 && head.toString('latin1', pe, pe + 4) === 'PE\0\0';
  return isPe ? MACHINES[head.readUInt16LE(pe + 4)] : undefined;
}
