import { isError, type ImageProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { checkStructure, type IsoImage, openIso, readKargAreas } from '../iso/index.ts';
import { checkClosure } from '../registry/index.ts';
import { overlayRead, type OverlayPart, explainArea, isCustomised, planPristine } from './areas.ts';
import { compareBundleFile, compareBundleImage, readBundleFile } from './describe.ts';
import {
  type MediaIndex,
  readDamagedIndex,
  BUNDLE_PATH,
  INDEX_PATH,
  REGISTRY_ROOT,
} from './media-index.ts';
import { openDamaged, type IsoFiles, describeDamage, useImage, type Medium } from './open.ts';
import { findRegistryRoot, isoRegistryTree } from './tree.ts';
import {
  type Report,
  type Verification,
  type VerifyOptions,
  checkContents,
  compareTree,
  findLostFiles,
} from './verify-contents.ts';
import type { Sample } from './verify-extents.ts';

type Findings = {
  readonly problems: ImageProblem[];
  readonly oddities: string[];
  readonly report: Report;
  checked: Verification['checked'];
  sample?: Sample;
  index?: MediaIndex;
  customised?: boolean;
};

/**
 * Verifies a medium: the structure of the ISO, every extent of its index by digest, and that every image
 * of its registry is complete and in the list of images. An image without an index is checked as far as
 * possible; on a truncated or damaged one, the intact and the lost parts are reported.
 *
 * @throws ConfigError `iso.unreadable`; the signal's reason
 */
export async function verifyIso(medium: Medium, options: VerifyOptions): Promise<Verification> {
  const findings = createFindings();
  await useImage(medium, async (image) => {
    const iso = await guard('structure', findings, () => openIso(image));
    const files = iso ?? (await guard('structure', findings, () => openDamaged(image)));
    if (iso) await guard('structure', findings, () => verifyStructure(iso, findings));
    iso?.structure.budget.reset(); // all directories are read again
    if (files) await verifyFiles(files, findings, options);
    iso?.structure.budget.reset();
    if (iso) await guard('bundle', findings, () => verifyBundle(iso, findings));
    delete findings.index; // frees memory for the registry of a large medium
    iso?.structure.budget.reset();
    if (iso) await guard('registry', findings, () => verifyRegistry(iso, findings));
  });
  return conclude(findings);
}

/** Maximum number of problems of a kind. A medium truncated at its start has lost every file. */
const MAX_PROBLEMS = 10_000;
const MORE = `there are more than ${MAX_PROBLEMS} problems of this kind; the others are omitted`;

const CODES: Readonly<Record<ImageProblem['kind'], string>> = {
  structure: 'verify.structure',
  index: 'verify.index',
  content: 'verify.content',
  lost: 'verify.lost',
  registry: 'verify.registry',
  bundle: 'verify.bundle',
};

function createFindings(): Findings {
  const problems: ImageProblem[] = [];
  const left = new Map<ImageProblem['kind'], number>();
  return {
    problems,
    oddities: [],
    report: (finding) => {
      const { kind } = finding;
      const room = left.get(kind) ?? MAX_PROBLEMS;
      left.set(kind, room - 1);
      if (room < 0) return;
      const shown = room > 0 ? finding : { kind, problem: MORE };
      problems.push({ severity: 'error', code: CODES[kind], ...shown });
    },
    checked: { extents: 0, bytes: 0, images: 0 },
  };
}

/** Runs a check and reports damage as a finding, so that the other checks still run. */
async function guard<Result>(
  kind: ImageProblem['kind'],
  { problems, report }: Findings,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    const problem = describeDamage(error);
    if (problem === undefined) throw error;
    // The damage that made the image unreadable at first may be found again.
    if (!problems.some((known) => known.problem.endsWith(problem))) report({ kind, problem });
    return undefined;
  }
}

async function verifyStructure(iso: IsoImage, { report, oddities }: Findings): Promise<void> {
  for await (const found of checkStructure(iso)) {
    const { path, problem } = found;
    if (isError(found)) report(found);
    else if (oddities.length < MAX_PROBLEMS) {
      oddities.push(path === undefined ? problem : `${path}: ${problem}`);
    }
  }
}

async function verifyFiles(
  iso: IsoFiles,
  findings: Findings,
  options: VerifyOptions,
): Promise<void> {
  const { report, oddities } = findings;
  const read = await guard('index', findings, () => readDamagedIndex(iso));
  if (!read) {
    await guard('structure', findings, () => findLostFiles(iso, report));
    return;
  }
  const { index, damage } = read;
  if (damage) {
    const { message, expected, found } = damage;
    const values = { ...withoutUndefined({ expected }), ...(found && { found }) };
    report({ kind: 'index', problem: message, ...values });
  }
  findings.index = index;
  if (index.digest === undefined) oddities.push(`${INDEX_PATH} does not name its own digest`);
  await guard('index', findings, () => compareTree(iso, index.extents, report));
  const pristine = await guard('content', findings, () => verifyAreas(iso, index, findings));
  // Mutable areas are compared in their original state: no other bytes may differ.
  const files = { ...iso, readBytes: overlayRead(iso.readBytes, pristine ?? []) };
  const { sample, ...checked } = await checkContents(files, index, { ...options, report });
  findings.checked = { ...checked, images: index.images.length };
  if (sample) findings.sample = sample;
}

/**
 * Checks that the live system can still read the mutable areas.
 *
 * @returns the bytes that the areas have without site values
 */
async function verifyAreas(
  iso: IsoFiles,
  { mutable = [] }: MediaIndex,
  findings: Findings,
): Promise<readonly OverlayPart[]> {
  if (mutable.length === 0) return [];
  const pristine = await planPristine(iso, mutable);
  findings.customised = await isCustomised(iso, pristine);
  if (findings.customised) await guard('content', findings, () => readKargAreas(iso));
  for (const { kind, offset, size } of mutable) {
    const problem = kind === 'ignition' && (await explainArea(await iso.readBytes(offset, size)));
    if (problem) findings.report({ kind: 'content', problem, offset, size });
  }
  return pristine;
}

async function verifyRegistry(iso: IsoImage, { report }: Findings): Promise<void> {
  const root = await findRegistryRoot(iso);
  if (root === undefined) return;
  const problems = await checkClosure(isoRegistryTree(iso, root));
  for (const { repository, reference, path, problem } of problems) {
    report({
      kind: 'registry',
      problem,
      path: `${root}${path}`,
      images: [`${repository}${reference.startsWith('sha256:') ? '@' : ':'}${reference}`],
    });
  }
}

/** Checks the list of images against the index, and against the release bundle in the registry. */
async function verifyBundle(iso: IsoImage, { report, index }: Findings): Promise<void> {
  const bundle = await readBundleFile(iso);
  if (bundle === undefined || index === undefined) return;
  const problems = [
    ...compareBundleFile(bundle, index),
    ...(await compareBundleImage(isoRegistryTree(iso, REGISTRY_ROOT), bundle)),
  ];
  for (const problem of problems) report({ kind: 'bundle', problem, path: BUNDLE_PATH });
}

function conclude({ problems, oddities, checked, sample, customised }: Findings): Verification {
  const harmed = problems.filter(({ kind }) => kind === 'content' || kind === 'lost');
  const images = new Set(harmed.flatMap(({ images = [] }) => images));
  return {
    ok: problems.length === 0,
    problems,
    oddities,
    checked,
    damagedImages: [...images].sort(),
    ...withoutUndefined({ customised, sample }),
  };
}
