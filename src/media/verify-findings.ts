import type { Digest } from '../base/digest.ts';
import type { ImageProblem } from '../base/errors.ts';
import { sumSizes, withoutUndefined } from '../base/lists.ts';
import { formatSize } from '../base/text/words.ts';
import { type Coverage, createDelivered } from './coverage.ts';
import type { DeltaDescription } from './delta/describe.ts';
import { type JudgedArea, summarizeAreas } from './judge-areas.ts';
import type { MediaIndex } from './media-index.ts';
import { NewerFormatError } from './newer.ts';
import { describeDamage } from './open.ts';
import type { ReportFinding, Unproven, Verification } from './verify-contents.ts';
import type { Sample } from './sample-extents.ts';

export type Findings = {
  readonly problems: ImageProblem[];
  readonly oddities: string[];
  readonly report: ReportFinding;
  readonly coverage: Coverage;
  readonly areas: JudgedArea[];
  checked: Verification['checked'];
  size: number;
  /** True if an index, a proof or a given digest says what the bytes should be. */
  hasProof: boolean;
  /** Sentence of a proof that a newer version of sealift wrote. */
  newer?: string;
  sample?: Sample;
  delta?: DeltaDescription;
  /** Digest over index and areas; absent on media without an index that names its own digest. */
  mediumDigest?: Digest;
  index?: MediaIndex;
};

/** Maximum number of problems of a kind. A medium truncated at its start has lost every file. */
export const MAX_PROBLEMS = 10_000;
const MORE = `there are more than ${MAX_PROBLEMS} problems of this kind; the others are omitted`;

const CODES: Readonly<Record<ImageProblem['kind'], string>> = {
  structure: 'verify.structure',
  index: 'verify.index',
  proof: 'verify.proof',
  content: 'verify.content',
  lost: 'verify.lost',
  registry: 'verify.registry',
  bundle: 'verify.bundle',
  missing: 'verify.missing',
};

export function createFindings(): Findings {
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
    coverage: createDelivered(),
    areas: [],
    checked: { extents: 0, bytes: 0, images: 0 },
    size: 0,
    hasProof: false,
  };
}

/** Reports damage as a finding, so that the other checks still run. */
export async function guard<Result>(
  kind: ImageProblem['kind'],
  findings: Findings,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NewerFormatError) {
      findings.newer = error.message;
      return undefined;
    }
    const problem = describeDamage(error);
    if (problem === undefined) throw error;
    const { problems, report } = findings;
    // The damage that made the image unreadable at first may be found again.
    if (!problems.some((known) => known.problem.endsWith(problem))) report({ kind, problem });
    return undefined;
  }
}

/** Reports areas that keep the medium from installing; bytes that no checksum covers are not compared. */
export function takeAreas(
  judged: readonly JudgedArea[],
  { areas, coverage, report }: Findings,
): void {
  for (const area of judged) {
    const { offset, size, problem, isProven } = area;
    areas.push(area);
    if (!isProven) coverage.except([area]);
    if (problem !== undefined) report({ kind: 'content', problem, offset, size });
  }
}

/** The verdict: a medium is whole only if every byte was compared and no finding is left. */
export function conclude(findings: Findings): Verification {
  const { problems, oddities, checked, sample, areas, size, delta, mediumDigest } = findings;
  const harmed = problems.filter(({ kind }) => kind === 'content' || kind === 'lost');
  const images = new Set(harmed.flatMap(({ images = [] }) => images));
  const missing = findings.coverage.missing(size);
  const ok = problems.length === 0;
  const state = !ok ? 'damaged' : missing.length === 0 ? 'whole' : 'not provable';
  const because = state === 'not provable' ? explain(findings) : undefined;
  const wouldProve = because === 'no proof' ? adviseProof(findings) : undefined;
  const notCompared = missing.length === 0 ? undefined : describeMissing(findings);
  return {
    state,
    ...withoutUndefined({ because }),
    compared: { bytes: size - sumSizes(missing), of: size },
    ...withoutUndefined({ notCompared, wouldProve }),
    ok,
    problems,
    oddities,
    checked,
    damagedImages: [...images].sort(),
    ...(areas.length > 0 && { ...describeValues(areas), areas }),
    ...withoutUndefined({ mediumDigest, sample, delta }),
  };
}

const describeValues = (
  areas: readonly JudgedArea[],
): Pick<Verification, 'customised' | 'bare'> => {
  const summary = summarizeAreas(areas);
  return { customised: summary === 'customised', ...(summary === 'bare' && { bare: true }) };
};

const adviseProof = ({ newer }: Findings): string =>
  (newer === undefined ? '' : 'use that version of sealift, or ') +
  'compare it with the checksum of its maker: --sha256 FILE or --sha256 DIGEST, or a .sha256 file beside it';

/** A medium without any proof is told from one whose proof does not reach some bytes. */
function explain({ hasProof, sample, areas }: Findings): Unproven {
  if (!hasProof) return 'no proof';
  if (sample) return 'sample';
  return areas.some(({ isProven }) => !isProven) ? 'area' : 'no proof';
}

const NAMES: Readonly<Record<JudgedArea['kind'], string>> = {
  'ignition': 'the Ignition area',
  'kernel-arguments': 'the kernel arguments',
  'built': 'the copy of what the build left',
  'config-image': 'the configuration image',
};

function describeMissing(findings: Findings): readonly string[] {
  const { hasProof, newer, areas, coverage, size, sample } = findings;
  const missing = sumSizes(coverage.missing(size));
  if (!hasProof) return [`all ${formatSize(size)}: ${newer ?? 'it has no index and no proof'}`];
  const unproven = areas.filter(({ isProven }) => !isProven);
  const others = missing - sumSizes(unproven);
  return [
    ...unproven.map(
      ({ kind, offset, size }) =>
        `${NAMES[kind]} at byte ${offset} (${formatSize(size)}), ` +
        'whose values no checksum covers',
    ),
    ...(others > 0
      ? [
          `${formatSize(others)} ${sample ? 'outside of the sample' : 'that the index does not prove'}`,
        ]
      : []),
  ];
}
