import pLimit from 'p-limit';
import { boot, BOOT_FAILURES, type Boot, type BootOptions, type Drive } from './qemu.ts';

export type MatrixEntry = Pick<BootOptions, 'firmware' | 'until'> & { readonly as: Drive };

/**
 * Every path that firmware takes into the medium: the MBR and the El Torito boot record on BIOS, the EFI
 * system partition and the El Torito boot record on UEFI. The proof runs to its end where the boot is
 * fastest: past the mount of the registry data nothing depends on the firmware or the drive.
 */
const PATHS: readonly MatrixEntry[] = [
  { firmware: 'seabios', as: 'disk', until: /PROOF done/ },
  { firmware: 'ovmf', as: 'usb-esp', until: /PROOF agentdata ok/ },
  { firmware: 'seabios', as: 'cdrom', until: /PROOF agentdata ok/ },
  { firmware: 'ovmf', as: 'cdrom', until: /PROOF agentdata ok/ },
];

/** The same paths from other drives. */
const DRIVES: readonly MatrixEntry[] = [
  { firmware: 'seabios', as: 'usb-esp', until: /PROOF agentdata ok/ },
  { firmware: 'ovmf', as: 'disk', until: /PROOF agentdata ok/ },
];

/** Where time is short, each path once. */
export const MATRIX = process.env['CI'] === undefined ? [...PATHS, ...DRIVES] : PATHS;

export type MatrixResult = MatrixEntry & Boot & { readonly proofs: readonly string[] };

/**
 * Boots one ISO in every way and returns what each proved. One machine at a time, or as many as
 * SEALIFT_BOOT_MACHINES says: each keeps a core busy and takes 2.5 GiB.
 */
export async function bootMatrix(
  iso: string,
  entries: readonly MatrixEntry[] = MATRIX,
): Promise<readonly MatrixResult[]> {
  const limit = pLimit(Number(process.env['SEALIFT_BOOT_MACHINES'] ?? 1));
  return await Promise.all(
    entries.map((entry) =>
      limit(async () => {
        const result = await boot({ ...entry, iso, fail: BOOT_FAILURES });
        const proofs = result.lines.filter((line) => line.startsWith('PROOF '));
        return { ...entry, ...result, proofs };
      }),
    ),
  );
}
