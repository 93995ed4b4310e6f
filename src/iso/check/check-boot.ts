import { SECTOR_SIZE } from '../extent.ts';
import { BLOCK_SIZE, type Gpt } from '../boot/gpt.ts';
import {
  locateBackupGpt,
  readBackupGpt,
  readPartitionTables,
  SYSTEM_AREA_SIZE,
} from '../boot/hybrid.ts';
import type { MbrPartition } from '../boot/mbr.ts';
import type { IsoImage } from '../open-iso.ts';
import { damage, oddity, type StructureProblem } from './structure-problem.ts';

/** A firmware that sees a protective MBR looks at the GPT; its size may be "to the end of the disk". */
const PROTECTIVE = 0xee;

/** Checks that what firmware starts from is inside the image: El Torito, MBR, both copies of the GPT. */
export async function* checkBoot(iso: IsoImage): AsyncGenerator<StructureProblem> {
  yield* checkBootEntries(iso);
  const { mbr, gpt } = readPartitionTables(await iso.readBytes(0, SYSTEM_AREA_SIZE));
  for (const partition of mbr ?? []) yield* checkMbrPartition(partition, iso.fileSize);
  if (gpt) yield* checkGpt(iso, gpt);
}

function* checkBootEntries(iso: IsoImage): Generator<StructureProblem> {
  const { volumeSpaceSize } = iso.volume;
  for (const [index, { sector, loadSectors, platform }] of iso.bootEntries.entries()) {
    const size = loadSectors * BLOCK_SIZE;
    const end = sector + Math.max(1, Math.ceil(size / SECTOR_SIZE));
    if (sector > 0 && end <= volumeSpaceSize) continue;
    yield damage(
      `boot entry ${index + 1} (${platform}) ends at sector ${end}, the volume at ${volumeSpaceSize}`,
      { range: { offset: sector * SECTOR_SIZE, size } },
    );
  }
}

function* checkMbrPartition(
  partition: MbrPartition,
  fileSize: number,
): Generator<StructureProblem> {
  const end = (partition.start + partition.blocks) * BLOCK_SIZE;
  if (end <= fileSize || partition.type === PROTECTIVE) return;
  yield damage(
    `MBR partition ${partition.number} ends at byte ${end}, the image has ${fileSize} bytes`,
    { range: { offset: 446 + (partition.number - 1) * 16, size: 16 } },
  );
}

async function* checkGpt(iso: IsoImage, gpt: Gpt): AsyncGenerator<StructureProblem> {
  const range = { offset: gpt.block * BLOCK_SIZE, size: BLOCK_SIZE };
  if (gpt.block !== 1) yield damage(`GPT header at block 1 says it is at ${gpt.block}`, { range });
  yield* checkCrcs('primary', gpt);
  for (const { number, firstBlock, lastBlock } of gpt.partitions) {
    const end = (lastBlock + 1) * BLOCK_SIZE;
    if (firstBlock <= lastBlock && end <= iso.fileSize) continue;
    yield damage(
      `GPT partition ${number} is bytes ${firstBlock * BLOCK_SIZE} to ${end} of an image of ${iso.fileSize}`,
      { range },
    );
  }
  yield* checkBackup(iso, gpt);
}

async function* checkBackup(iso: IsoImage, gpt: Gpt): AsyncGenerator<StructureProblem> {
  const located = locateBackupGpt(gpt, iso.fileSize);
  if (!located) {
    yield damage(`backup GPT at block ${gpt.otherBlock} is outside of the image`);
    return;
  }
  const backup = readBackupGpt(gpt, await iso.readBytes(located.offset, located.size));
  if (!backup) {
    yield damage(`no backup GPT is at block ${gpt.otherBlock}`, { range: located });
    return;
  }
  yield* checkCrcs('backup', backup);
  if (JSON.stringify(backup.partitions) !== JSON.stringify(gpt.partitions)) {
    yield damage('primary and backup GPT list different partitions', { range: located });
  }
  if (located.offset + located.size !== iso.fileSize) {
    yield oddity(`backup GPT ends at ${located.offset + located.size}, not at the image's end`, {
      range: located,
    });
  }
}

function* checkCrcs(name: string, gpt: Gpt): Generator<StructureProblem> {
  const header = { offset: gpt.block * BLOCK_SIZE, size: BLOCK_SIZE };
  const entries = {
    offset: gpt.entriesBlock * BLOCK_SIZE,
    size: gpt.entryCount * gpt.entrySize,
  };
  if (!gpt.headerCrcOk) {
    yield damage(`CRC of the ${name} GPT header does not match its bytes`, { range: header });
  }
  if (!gpt.entriesCrcOk) {
    yield damage(`CRC of the ${name} GPT entries does not match their bytes`, { range: entries });
  }
}
