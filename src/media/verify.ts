import type { Digest } from '../base/digest.ts';
import { isError } from '../base/errors.ts';
import { maxOf, withoutUndefined } from '../base/lists.ts';
import type { RandomAccess } from '../base/random-access.ts';
import {
  checkStructure,
  type IsoImage,
  openIso,
  readCoreosLive,
  roundUp,
  SECTOR_SIZE,
} from '../iso/index.ts';
import { identifyIso, overlayRead, type OverlayPart } from './areas.ts';
import { openGivenIso } from './delta/describe.ts';
import { isDelta } from './delta/file.ts';
import { verifyDelta } from './delta/verify.ts';
import { findCarriedDisk, openDisk } from './disk-image.ts';
import { judgeAreas } from './judge-areas.ts';
import {
  type MediaIndex,
  readDamagedIndex,
  type DamagedIndex,
  INDEX_PATH,
  readIndex,
  ROOTFS_PATH,
} from './media-index.ts';
import { planContents } from './area-values.ts';
import { readAreas } from './medium.ts';
import { openDamaged, type IsoFiles, useImage, type IsoSource } from './open.ts';
import {
  type Verification,
  type VerifyOptions,
  checkContents,
  compareTree,
  findLostFiles,
} from './verify-contents.ts';
import {
  conclude,
  createFindings,
  type Findings,
  guard,
  MAX_PROBLEMS,
  takeAreas,
} from './verify-findings.ts';
import { pickNaming, verifyBundle, verifyComplete, verifyRegistry } from './verify-images.ts';
import { verifyByDigest, verifyByProof } from './verify-proof.ts';

/**
 * Verifies the structure of the ISO, every byte by index, proof or given digest, the rules that decide
 * whether it boots and installs, and that every image of its registry is complete and listed. Without a
 * proof, it is checked as far as possible; if it is damaged, intact and lost parts are reported. A delta, or
 * a part of one, is compared with its head.
 *
 * @throws ConfigError `iso.unreadable`; the signal's reason
 */
export async function verifyIso(
  medium: IsoSource,
  { published, isGiven = false, ...options }: VerifyOptions & Published & Named,
): Promise<Verification> {
  const findings = createFindings();
  const comparePublished = async (image: RandomAccess): Promise<void> => {
    const sha256 = isGiven || !findings.hasProof ? await published?.() : undefined;
    if (sha256) await verifyByDigest(image, sha256, { findings, options });
  };
  await useImage(medium, async (image) => {
    if (await isDelta(image)) {
      findings.size = image.size;
      await verifyDelta(image, { findings, options });
      return comparePublished(image);
    }
    const iso = await guard('structure', findings, () => openGivenIso(image));
    const files = iso ?? (await guard('structure', findings, () => openDamaged(image)));
    findings.size = image.isDevice === true && iso ? sizeOfVolume(iso) : image.size;
    if (iso) await verifyStructure(iso, findings);
    await verifyBytes({ image, iso, files }, { findings, options });
    await comparePublished(image);
    if (iso) await verifyOpened(iso, { findings, options });
    if (iso) await verifyCarried(iso, { findings, options });
  });
  requireMediumDigest(findings, options);
  return conclude(findings);
}

type OpenedMedium = {
  readonly image: RandomAccess;
  readonly iso: IsoImage | undefined;
  readonly files: IsoFiles | undefined;
};

/** Compares the bytes with the index, else with the proof; without both, lists the files that are lost. */
async function verifyBytes({ image, iso, files }: OpenedMedium, work: Work): Promise<void> {
  const { findings } = work;
  const read = files && (await guard('index', findings, () => readDamagedIndex(files)));
  if (files && read) return verifyByIndex(files, read, work);
  await guard('proof', findings, () => verifyByProof(image, iso, work));
  if (files) await guard('structure', findings, () => findLostFiles(files, findings.report));
}

type Published = {
  /** Finds the SHA-256 of the whole medium as its maker published it. */
  readonly published?: () => Promise<Digest | undefined>;
  /** True if the digest is compared in any case; else only on a medium without a proof. */
  readonly isGiven?: boolean;
};

type Named = {
  /** Digest by `identifyIso` that the medium should have. */
  readonly mediumDigest?: Digest | undefined;
};

/** Reports a medium that has no digest to compare with the expected one. */
function requireMediumDigest(
  { mediumDigest: found, problems, report }: Findings,
  { mediumDigest: expected }: Named,
): void {
  if (expected === undefined || found !== undefined || problems.length > 0) return;
  const problem = 'has no index, and so no medium digest to compare';
  report({ kind: 'index', problem, expected, found: 'no index' });
}

async function verifyOpened(iso: IsoImage, { findings, options }: Work): Promise<void> {
  const { budget } = iso.structure;
  budget.reset();
  await guard('structure', findings, () => verifyBoot(iso));
  await guard('bundle', findings, () => verifyBundle(iso, findings));
  const naming = findings.index && pickNaming(findings.index);
  delete findings.index; // frees memory for the registry of a large medium
  budget.reset();
  await guard('registry', findings, () => verifyRegistry(iso, findings));
  budget.reset();
  await guard('missing', findings, () =>
    verifyComplete(iso, naming, { findings, signal: options.signal }),
  );
}

/** The registry in the disk image of a deployment ISO, whose bytes were compared with the index. */
async function verifyCarried(iso: IsoImage, { findings, options }: Work): Promise<void> {
  await guard('registry', findings, async () => {
    const image = await findCarriedDisk(iso);
    const disk = image && (await openDisk(image));
    if (!disk) return;
    const data = await openIso(disk.data.access);
    const index = await readIndex(data);
    if (index) {
      findings.index = index;
      findings.checked = { ...findings.checked, images: index.images.length };
    }
    await verifyOpened(data, { findings, options });
  });
}

/** Bytes of the volume on a device. */
const sizeOfVolume = ({ volume }: IsoImage): number => volume.volumeSpaceSize * SECTOR_SIZE;

async function verifyStructure(iso: IsoImage, findings: Findings): Promise<void> {
  const { report, oddities } = findings;
  await guard('structure', findings, async () => {
    for await (const found of checkStructure(iso)) {
      const { path, problem } = found;
      if (isError(found)) report(found);
      else if (oddities.length < MAX_PROBLEMS) {
        oddities.push(path === undefined ? problem : `${path}: ${problem}`);
      }
    }
  });
  iso.structure.budget.reset(); // all directories are read again
}

type Work = { readonly findings: Findings; readonly options: VerifyOptions & Named };

async function verifyByIndex(
  iso: IsoFiles,
  { index, damage, extents }: DamagedIndex,
  { findings, options }: Work,
): Promise<void> {
  const { report, oddities, coverage } = findings;
  if (damage) {
    const { message, expected, found } = damage;
    report({ kind: 'index', problem: message, ...withoutUndefined({ expected, found }) });
  }
  findings.index = index;
  findings.hasProof = true;
  findings.size = sizeOfMedium(iso, index, findings.size);
  if (index.digest === undefined) oddities.push(`${INDEX_PATH} does not name its own digest`);
  else coverage.add(extents);
  await guard('index', findings, () => compareTree(iso, index.extents, report));
  const isNamed =
    !damage &&
    (await guard('content', findings, () =>
      compareMediumDigest(iso, index, { findings, options }),
    ));
  const pristine = await guard('content', findings, () =>
    verifyAreas(iso, index, { findings, isNamed: isNamed === true }),
  );
  // Mutable areas are compared in their original state: no other bytes may differ.
  const files = { ...iso, readBytes: overlayRead(iso.readBytes, pristine ?? []) };
  const { size } = findings;
  const { sample, ...checked } = await checkContents(files, index, {
    ...options,
    report,
    size,
    coverage,
  });
  findings.checked = { ...checked, images: index.images.length };
  if (sample) findings.sample = sample;
}

/** The backup of a GPT may be after the volume; a device may have other bytes behind the medium. */
const sizeOfMedium = ({ fileSize }: IsoFiles, { extents }: MediaIndex, size: number): number => {
  if (size === fileSize) return size;
  const end = maxOf(
    extents.map((extent) => extent.offset + extent.size),
    size,
  );
  return Math.min(fileSize, roundUp(end, SECTOR_SIZE));
};

/** @returns true if it is the expected one */
async function compareMediumDigest(
  { readBytes }: Pick<IsoFiles, 'readBytes'>,
  index: MediaIndex,
  { findings, options: { mediumDigest: expected } }: Work,
): Promise<boolean> {
  const found = await identifyIso(index, readBytes);
  if (found === undefined) return false;
  findings.mediumDigest = found;
  if (expected === undefined || found === expected) return found === expected;
  const problem =
    'has another medium digest than the given one: it is of another build, or has other values';
  findings.report({ kind: 'content', problem, expected, found });
  return false;
}

/** @returns the bytes without values of any site */
async function verifyAreas(
  iso: IsoFiles,
  index: MediaIndex,
  { findings, isNamed }: { readonly findings: Findings; readonly isNamed: boolean },
): Promise<readonly OverlayPart[]> {
  if (!index.mutable?.length) return [];
  const areas = await readAreas(iso, { index });
  const judged = await judgeAreas(areas);
  // The expected digest names every byte of the areas.
  takeAreas(isNamed ? judged.map((area) => ({ ...area, isProven: true })) : judged, findings);
  return areas.bare ? planContents(areas, areas.bare, 'bare') : [];
}

const KARGS = '/coreos/kargs.json';

/**
 * The areas of a live ISO of CoreOS, and the volume that it waits for. A minimal ISO has no root file system
 * and waits for no volume; images before 2022 have no areas.
 */
async function verifyBoot(iso: IsoImage): Promise<void> {
  for (const path of [ROOTFS_PATH, KARGS]) if ((await iso.find(path)) === undefined) return;
  await readCoreosLive(iso);
}
