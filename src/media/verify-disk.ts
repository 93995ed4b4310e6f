import { append, withoutUndefined } from '../base/lists.ts';
import type { ByteRange, RandomAccess } from '../base/random-access.ts';
import {
  BACKUP_TABLES_SIZE,
  BLOCK_SIZE,
  locateBackupGpt,
  openIso,
  readBackupGpt,
  readPartitionTables,
  SYSTEM_AREA_SIZE,
  TABLES_SIZE,
} from '../iso/index.ts';
import { createDelivered } from './coverage.ts';
import {
  describeMisplaced,
  DISK_PATH,
  openDisk,
  parseDiskList,
  type DiskImage,
  type IsoPartition,
} from './disk-image.ts';
import { useImage, type IsoSource } from './open.ts';
import type { Verification, VerifyOptions } from './verify-contents.ts';
import { verifyExtents } from './verify-extents.ts';
import { conclude, createFindings, guard, type Findings } from './verify-findings.ts';
import { verifyByDigest } from './verify-proof.ts';
import { verifyIso } from './verify.ts';

/*
 * The check of a disk image: its tables and CoreOS's part by the list on the data ISO, each ISO by
 * its own index, and everything else, which is zeros.
 */

type MediumOptions = Parameters<typeof verifyIso>[1];

/** Verifies a medium of any kind. */
export const verifyMedium = (medium: IsoSource, options: MediumOptions): Promise<Verification> =>
  useImage(medium, async (image) => {
    const disk = await openDisk(image);
    return disk ? verifyDisk(image, disk, options) : verifyIso(image, options);
  });

type Work = { readonly findings: Findings; readonly options: VerifyOptions };

async function verifyDisk(
  medium: RandomAccess,
  disk: DiskImage,
  { published, isGiven = false, ...options }: MediumOptions,
): Promise<Verification> {
  const findings = createFindings();
  const work = { findings, options };
  findings.hasProof = true;
  const image = (await guard('structure', findings, () => verifyTables(medium, work))) ?? medium;
  findings.size = image.size;
  const end = await guard('content', findings, () => verifyStart(image, disk, work));
  for (const partition of [disk.recovery, disk.data]) {
    await verifyPartition(image, partition, { findings, options });
  }
  const sha256 = isGiven ? await published?.() : undefined;
  if (sha256) await verifyByDigest(image, sha256, work);
  else if (end !== undefined && !options.quick) {
    await verifyHoles(image, [{ offset: 0, size: end }, disk.recovery, disk.data], work);
  }
  return conclude(findings);
}

/** The ISO in a partition, as far as the disk has it, and zeros behind it. */
async function verifyPartition(
  image: RandomAccess,
  partition: IsoPartition,
  { findings, options }: { readonly findings: Findings; readonly options: MediumOptions },
): Promise<void> {
  const problem = describeMisplaced(partition, image.size);
  if (problem !== undefined) findings.report({ kind: 'structure', problem });
  const { access, offset } = partition;
  if (access.size === 0) return;
  const part = await guard('structure', findings, () => verifyIso(access, options));
  if (!part) return;
  takePart(partition, part, findings);
  if (problem !== undefined) return; // bytes behind its ISO may be those of other parts
  const used = part.compared.of;
  await verifyZeros(
    image,
    { offset: offset + used, size: access.size - used },
    { findings, options },
  );
}

/**
 * UEFI 2.10, 5.3.2: both copies are valid, and name the same partitions.
 *
 * @returns the image without the rest of a larger disk that it was written to
 */
async function verifyTables(image: RandomAccess, { findings }: Work): Promise<RandomAccess> {
  const { gpt } = readPartitionTables(await image.read(0, SYSTEM_AREA_SIZE));
  const report = (problem: string): void => {
    findings.report({ kind: 'structure', problem });
  };
  if (!gpt?.crcOk) {
    report('the partition table has a wrong CRC');
    return image;
  }
  const range = locateBackupGpt(gpt, image.size);
  const backup = range && readBackupGpt(gpt, await image.read(range.offset, range.size));
  if (!range || !backup?.crcOk) report('the backup partition table is missing or has a wrong CRC');
  const size = range ? range.offset + range.size : image.size;
  if (size === image.size) return image;
  if (image.size % BLOCK_SIZE !== 0) {
    report(`has ${image.size} bytes, and its tables are for ${size} bytes`); // no disk has this size
    return image;
  }
  findings.oddities.push(
    `the disk has ${image.size} bytes and the image on it ${size}; what is behind was not compared, and ` +
      'the backup partition table is not at the end of the disk',
  );
  return { ...image, size, isDevice: false };
}

/**
 * The tables, and everything from them to the end of the boot file system.
 *
 * @returns the end of the boot file system; undefined without the list, which alone tells bytes from zeros
 */
async function verifyStart(
  image: RandomAccess,
  disk: DiskImage,
  work: Work,
): Promise<number | undefined> {
  const { findings, options } = work;
  if (disk.data.access.size === 0) return undefined; // reported with its partition
  const iso = await openIso(disk.data.access);
  const file = await iso.find(DISK_PATH);
  if (file?.kind !== 'file') {
    findings.report({ kind: 'index', problem: `partition agentdata has no ${DISK_PATH}` });
    return undefined;
  }
  const { extents, end, backup: digest } = parseDiskList(await iso.readFile(file));
  const backup = { offset: image.size - BACKUP_TABLES_SIZE, size: BACKUP_TABLES_SIZE, digest };
  const indexed = [...extents, backup].map((extent) => ({ ...extent, paths: [] }));
  const damaged = await verifyExtents(image, indexed, {
    signal: options.signal,
    onProgress: options.onProgress,
  });
  for (const { extent, found, unreadable } of damaged) {
    const { offset, size, digest } = extent;
    const problem = unreadable ?? 'differs from the disk image as it was built';
    findings.report({
      kind: 'content',
      problem,
      offset,
      size,
      ...withoutUndefined({ expected: digest, found }),
    });
  }
  findings.coverage.add([...extents, backup]);
  let at = TABLES_SIZE;
  const behind = extents.filter(({ offset }) => offset >= TABLES_SIZE);
  for (const { offset, size } of [...behind, { offset: end, size: 0 }]) {
    await verifyZeros(image, { offset: at, size: offset - at }, work);
    at = offset + size;
  }
  return end;
}

/** Root partition and the gaps around the two ISO images: everything that is not one of the parts. */
async function verifyHoles(
  image: RandomAccess,
  parts: readonly ByteRange[],
  work: Work,
): Promise<void> {
  const used = createDelivered();
  used.add([...parts, { offset: image.size - BACKUP_TABLES_SIZE, size: BACKUP_TABLES_SIZE }]);
  for (const range of used.missing(image.size)) await verifyZeros(image, range, work);
}

const PIECE = 4 << 20;
const ZEROS = Buffer.alloc(PIECE);

async function verifyZeros(
  image: RandomAccess,
  { offset, size }: ByteRange,
  { findings, options: { signal } }: Work,
): Promise<void> {
  if (size <= 0) return;
  // One buffer, since new ones are garbage of many times their cost; shared memory suits direct I/O.
  const buffer = Buffer.from(new SharedArrayBuffer(Math.min(PIECE, size)));
  const read = image.readUncached ?? image.read;
  for (let done = 0; done < size; done += PIECE) {
    signal.throwIfAborted();
    const bytes = await read(offset + done, Math.min(PIECE, size - done), buffer);
    if (bytes.equals(ZEROS.subarray(0, bytes.length))) continue;
    const problem = 'has bytes where the disk image as it was built has zeros';
    findings.report({ kind: 'content', problem, offset: offset + done, size: bytes.length });
  }
  findings.coverage.add([{ offset, size }]);
}

/** Findings of a partition, with offsets on the disk. */
function takePart(
  { name, offset, size }: IsoPartition,
  part: Verification,
  findings: Findings,
): void {
  for (const problem of part.problems) {
    findings.report({
      ...problem,
      problem: `partition ${name}: ${problem.problem}`,
      ...(problem.offset !== undefined && { offset: problem.offset + offset }),
    });
  }
  append(
    findings.oddities,
    part.oddities.map((text) => `partition ${name}: ${text}`),
  );
  const { checked } = findings;
  findings.checked = {
    extents: checked.extents + part.checked.extents,
    bytes: checked.bytes + part.checked.bytes,
    images: checked.images + part.checked.images,
  };
  const all = { offset, size: Math.min(size, part.compared.of) };
  if (part.compared.bytes === part.compared.of) findings.coverage.add([all]);
  const shifted = (part.areas ?? []).map((area) => ({ ...area, offset: area.offset + offset }));
  const unproven = shifted.filter(({ isProven }) => !isProven);
  append(findings.areas, shifted);
  if (part.because === 'area') {
    findings.coverage.add([all]);
    findings.coverage.except(unproven);
  }
  if (part.sample) findings.sample = part.sample;
}
