import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { BLOCK_SIZE, readGpt, type Gpt, type GptPartition } from '../boot/gpt.ts';
import { viewOf } from '../extent.ts';
import { TABLE_BLOCKS } from './table.ts';

/* Reads and judges the raw image that CoreOS publishes for disks of 512-byte blocks (platform metal, x86_64). */

/** The part of a metal image that a disk image takes over. Offsets and sizes are bytes. */
export type MetalImage = {
  /** The partition tables, with the boot code. */
  readonly head: Uint8Array;
  /** Boot code of the BIOS, EFI system partition, boot file system: partitions 1 to 3, in order. */
  readonly kept: readonly GptPartition[];
  readonly boot: ByteRange;
  /** End of the boot file system. */
  readonly end: number;
};

const LINUX = '0fc63daf-8483-4772-8e79-3d69d8477de4';

/** Partitions of coreos-assembler's x86_64 image, 1 to 4. */
const PARTITIONS = [
  { name: 'BIOS-BOOT', type: '21686148-6449-6e6f-744e-656564454649' },
  { name: 'EFI-SYSTEM', type: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b' },
  { name: 'boot', type: LINUX },
  { name: 'root', type: LINUX },
];

/** Names of first partitions in the images of other architectures. */
const OTHER_ARCHITECTURES = ['PReP', 'reserved', 'ipl'];

const HINT = 'give the "metal" image of CoreOS for x86_64, which coreos-stream.json names';

/**
 * Reads the tables and the super block, and refuses any other image than CoreOS's own.
 *
 * @throws IntegrityError `metal-image.truncated`, `metal-image.no-gpt`, `metal-image.block-size`,
 * `metal-image.malformed-gpt`, `metal-image.architecture`, `metal-image.partitions`,
 * `metal-image.boot-filesystem`, `metal-image.dirty-journal`
 */
export async function readMetalImage(image: RandomAccess): Promise<MetalImage> {
  const size = TABLE_BLOCKS * BLOCK_SIZE;
  if (image.size < size) throw truncated(image, size);
  const head = Uint8Array.from(await image.read(0, size));
  const gpt = readGpt(head, 1, 0) ?? (await refuseTable(image));
  requireWhole(gpt);
  const kept = requirePartitions(gpt);
  const [boot] = kept.slice(-1).map(rangeOf);
  if (!boot) throw new Error('a metal image has partitions');
  const end = boot.offset + boot.size;
  const needed = Math.max(end, (gpt.otherBlock + 1) * BLOCK_SIZE);
  if (needed > image.size) throw truncated(image, needed);
  await requireCleanBoot(image, boot);
  return { head, kept, boot, end };
}

const rangeOf = ({ firstBlock, lastBlock }: GptPartition): ByteRange => ({
  offset: firstBlock * BLOCK_SIZE,
  size: (lastBlock - firstBlock + 1) * BLOCK_SIZE,
});

const truncated = ({ path, size }: RandomAccess, expected: number): IntegrityError =>
  new IntegrityError('metal-image.truncated', `metal image ${path} is cut off`, {
    expected: `at least ${expected} bytes`,
    found: `${size} bytes`,
    hint: 'fetch it again',
  });

const LARGE_BLOCK = 4096;

async function refuseTable(image: RandomAccess): Promise<never> {
  const bytes = await image.read(LARGE_BLOCK, 8);
  if (bytes.toString('latin1') === 'EFI PART') {
    throw new IntegrityError(
      'metal-image.block-size',
      `metal image ${image.path} is for disks of 4096-byte blocks`,
      { expected: '512-byte blocks', found: '4096-byte blocks', hint: HINT },
    );
  }
  throw new IntegrityError(
    'metal-image.no-gpt',
    `metal image ${image.path} has no GUID partition table`,
    { hint: HINT },
  );
}

function requireWhole(gpt: Gpt): void {
  const { crcOk, entriesBlock, entryCount, entrySize, block } = gpt;
  const found = `header at ${block}, ${entryCount} entries of ${entrySize} bytes at ${entriesBlock}`;
  const isUsual = [block, entriesBlock, entryCount, entrySize].join() === '1,2,128,128';
  if (crcOk && isUsual) return;
  const form = { expected: 'header at 1, 128 entries of 128 bytes at 2', found };
  throw new IntegrityError(
    'metal-image.malformed-gpt',
    `the GUID partition table of the metal image has ${isUsual ? 'a wrong CRC' : 'an unusual form'}`,
    { ...(!isUsual && form), hint: HINT },
  );
}

function requirePartitions({ partitions }: Gpt): readonly GptPartition[] {
  const names = partitions.map(({ number, name }) => `${number} ${name}`).join(', ');
  const [first] = partitions;
  const refuse = (code: string, problem: string): IntegrityError =>
    new IntegrityError(code, `the metal image ${problem}`, {
      expected: PARTITIONS.map(({ name }, index) => `${index + 1} ${name}`).join(', '),
      found: names === '' ? 'no partitions' : names,
      hint: HINT,
    });
  if (first && OTHER_ARCHITECTURES.includes(first.name)) {
    throw refuse('metal-image.architecture', 'is for another architecture than x86_64');
  }
  const areUsual =
    partitions.length === PARTITIONS.length &&
    PARTITIONS.every(
      ({ name, type }, index) =>
        partitions[index]?.number === index + 1 &&
        partitions[index].name === name &&
        partitions[index].type === type,
    );
  if (!areUsual) throw refuse('metal-image.partitions', 'has other partitions than CoreOS');
  let free = TABLE_BLOCKS;
  for (const { firstBlock, lastBlock } of partitions) {
    if (firstBlock < free || lastBlock < firstBlock || !Number.isSafeInteger(lastBlock * 512)) {
      throw refuse('metal-image.partitions', 'has partitions that overlap or are out of order');
    }
    free = lastBlock + 1;
  }
  return partitions.slice(0, -1);
}

/** Offset and fields of an ext4 super block (Linux, Documentation/filesystems/ext4/super.rst). */
const SUPER_BLOCK = { offset: 1024, size: 1024, magic: 56, incompatible: 96, label: 120 };
const NEEDS_RECOVERY = 0x4;

async function requireCleanBoot(image: RandomAccess, boot: ByteRange): Promise<void> {
  const refuse = (code: string, problem: string): IntegrityError =>
    new IntegrityError(code, `partition "boot" of the metal image ${problem}`, { hint: HINT });
  if (boot.size < SUPER_BLOCK.offset + SUPER_BLOCK.size) {
    throw refuse('metal-image.boot-filesystem', 'is too small for a file system');
  }
  const bytes = await image.read(boot.offset + SUPER_BLOCK.offset, SUPER_BLOCK.size);
  const view = viewOf(bytes, { at: 0, size: SUPER_BLOCK.size });
  const label = bytes.toString('latin1', SUPER_BLOCK.label, SUPER_BLOCK.label + 16);
  if (view.getUint16(SUPER_BLOCK.magic, true) !== 0xef53 || label.replace(/\0.*$/s, '') !== 'boot')
    throw refuse('metal-image.boot-filesystem', 'is not an ext4 file system with the label "boot"');
  if ((view.getUint32(SUPER_BLOCK.incompatible, true) & NEEDS_RECOVERY) !== 0)
    throw refuse('metal-image.dirty-journal', 'was not unmounted: its journal must be replayed');
}
