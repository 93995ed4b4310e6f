import { digestOf, type Digest } from '../base/digest.ts';
import type { ImageProblem } from '../base/errors.ts';
import { withoutUndefined, sumSizes } from '../base/lists.ts';
import type { ByteRange } from '../base/random-access.ts';
import type { DeltaDescription } from './delta/describe.ts';
import { withPristineDigests } from './areas.ts';
import type { Coverage } from './coverage.ts';
import { readImageContents } from './contents.ts';
import type { JudgedArea } from './judge-areas.ts';
import { findOverlaps } from './index-rules.ts';
import { DEPLOYED_DISK_PATH, type IndexExtent, type MediaIndex } from './media-index.ts';
import type { IsoFiles } from './open.ts';
import { sampleExtents, type Sample, type SampleOptions } from './sample-extents.ts';
import { verifyExtents, type DamagedExtent } from './verify-extents.ts';

/* Checks of a medium against its index: directories, extents, gaps, and files that a truncation lost. */

/**
 * - `whole`: every byte was compared, and is right.
 * - `damaged`: something is wrong.
 * - `not provable`: nothing is wrong in what was compared, and not every byte could be compared.
 */
export type MediumState = 'whole' | 'damaged' | 'not provable';

/** A medium has no proof, a sample was asked for, or a program without digests wrote an area. */
export type Unproven = 'no proof' | 'sample' | 'area';

export type Verification = {
  readonly state: MediumState;
  /** Absent unless the state is `not provable`. */
  readonly because?: Unproven;
  /** Bytes that were compared with a digest, with zeros or by checksums, of all bytes of the medium. */
  readonly compared: { readonly bytes: number; readonly of: number };
  /** Parts that were not compared, in words; absent if every byte was compared. */
  readonly notCompared?: readonly string[];
  /** Advice that would prove the medium; absent unless `because` is `no proof`. */
  readonly wouldProve?: string;
  /** True if nothing is wrong in what was compared. */
  readonly ok: boolean;
  readonly problems: readonly ImageProblem[];
  /** Names of all images that need damaged or lost bytes, sorted. */
  readonly damagedImages: readonly string[];
  /** Harmless deviations from the standard or from our own media, as sentences. */
  readonly oddities: readonly string[];
  /** Numbers of extents checked, of their bytes, and of images in the index. */
  readonly checked: { readonly extents: number; readonly bytes: number; readonly images: number };
  /** True if the medium has other values than the build left; absent if it has no mutable areas. */
  readonly customised?: boolean;
  /** True if the values of the build were taken off; absent otherwise. */
  readonly bare?: boolean;
  /** Areas that may be changed after the build; absent if there are no such areas. */
  readonly areas?: readonly JudgedArea[];
  /** Digest over the index, and over the areas if they have changed. Absent if the index names no digest. */
  readonly mediumDigest?: Digest;
  /** Confidence of a sampled check; absent if every byte was checked. */
  readonly sample?: Sample;
  /** Absent unless a delta, or a part of one, was verified. */
  readonly delta?: DeltaDescription;
};

/** A problem that is reported as an error with the code `verify.KIND`. */
export type ContentFinding = Omit<ImageProblem, 'severity' | 'code'>;

export type ReportFinding = (finding: ContentFinding) => void;

export type VerifyOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
  /** Default: every byte is checked. */
  readonly quick?: SampleOptions | undefined;
};

/** Compares the directories with the index, and reports files that only one has or that differ in place. */
export async function compareTree(
  iso: Pick<IsoFiles, 'walk'>,
  extents: readonly IndexExtent[],
  report: ReportFinding,
): Promise<void> {
  const listed = new Map(
    extents.flatMap((extent) => extent.paths.map((path) => [path, extent] as const)),
  );
  for await (const { path, node } of iso.walk()) {
    if (node.kind !== 'file' || node.size === 0) continue;
    const place = { offset: node.extents[0]?.offset ?? 0, size: node.size };
    const problem = compareFile({ ...place, path }, listed.get(path));
    listed.delete(path);
    if (problem !== undefined) report({ kind: 'index', problem, path, ...place });
  }
  for (const [path, { offset, size }] of listed) {
    report({ kind: 'index', problem: 'is in the index only', path, offset, size });
  }
}

function compareFile(
  { path, offset, size }: ByteRange & { readonly path: string },
  extent: IndexExtent | undefined,
): string | undefined {
  if (!extent) return 'is not in the index';
  // A disk image has many extents; its size is in the directory, which has a digest of its own.
  const hasSize = extent.size === size || path === DEPLOYED_DISK_PATH;
  const isSame = extent.offset === offset && hasSize;
  return isSame ? undefined : ELSEWHERE;
}

/** Problem of a file that has another place or size. */
export const ELSEWHERE = 'is not where the index says';

/** Numbers of extents that were hashed, valid or damaged, and of their bytes. */
type CheckedExtents = {
  readonly extents: number;
  readonly bytes: number;
  /** Absent if all extents were checked. */
  readonly sample?: Sample;
};

/** Extents by digest, gaps against zeros; reports extents that the file does not have completely. */
export async function checkContents(
  iso: IsoFiles,
  index: MediaIndex,
  { signal, onProgress, report, quick, size, coverage }: CheckOptions,
): Promise<CheckedExtents> {
  const present: IndexExtent[] = [];
  const lost: IndexExtent[] = [];
  const extents = withPristineDigests(index);
  const overlaps = findOverlaps(extents);
  for (const extent of extents) {
    if (overlaps.has(extent)) report(describeOverlap(extent));
    else if (endOf(extent) <= iso.fileSize) present.push(extent);
    else lost.push(extent);
  }
  const digested = present.filter(({ digest }) => digest !== undefined);
  const gaps = new Set(listGaps([...present, ...lost, endAt(size)], iso.fileSize));
  const { checked, sample } = choose(digested, [...gaps], { quick, identity: index.digest ?? '' });
  const total = sumSizes(checked);
  const image = { read: iso.readBytes, size: iso.fileSize };
  const damaged = await verifyExtents(image, checked, {
    signal,
    onProgress: (done) => {
      onProgress(done, total);
    },
  });
  coverage.add(checked);
  const harmed = new Set([...lost, ...damaged.map(({ extent }) => extent)]);
  const usersOf = await createUserLookup(iso, index, harmed);
  for (const extent of lost) {
    for (const found of describeLost(extent, iso.fileSize, usersOf(extent))) report(found);
  }
  for (const found of damaged) {
    const isGap = gaps.has(found.extent);
    report(isGap ? describeGap(found) : describeDamaged(found, usersOf(found.extent)));
  }
  const counted = sample ? checked : digested;
  return { extents: counted.length, bytes: sumSizes(counted), ...withoutUndefined({ sample }) };
}

type CheckOptions = VerifyOptions & {
  readonly report: ReportFinding;
  /** Bytes of the medium; a device has more. */
  readonly size: number;
  /** Takes the bytes that were compared. */
  readonly coverage: Coverage;
};

type Chosen = { readonly checked: readonly IndexExtent[]; readonly sample?: Sample };

/** A sample always includes everything except files: directories, path tables, descriptors. */
function choose(
  digested: readonly IndexExtent[],
  gaps: readonly IndexExtent[],
  { quick, identity }: { readonly quick: SampleOptions | undefined; readonly identity: string },
): Chosen {
  if (!quick) return { checked: [...digested, ...gaps] };
  const isFile = ({ paths }: IndexExtent): boolean => paths.length > 0;
  const always = digested.filter((extent) => !isFile(extent));
  return sampleExtents({ always, others: [...digested.filter(isFile), ...gaps] }, quick, identity);
}

/** Longer gaps are split: the digest of zeros is computed once for each size. */
const LONGEST_GAP = 4 * 1024 * 1024;

const listGaps = (extents: readonly IndexExtent[], fileSize: number): readonly IndexExtent[] =>
  [...findGaps(extents)].filter((gap) => endOf(gap) <= fileSize);

/** An extent without bytes, up to which `findGaps` looks. */
const endAt = (offset: number): IndexExtent => ({ offset, size: 0, paths: [] });

/** Finds bytes before the last extent that the index does not name: zeros between files. */
export function* findGaps(extents: readonly IndexExtent[]): Generator<IndexExtent> {
  const digests = new Map<number, Digest>();
  const digestOfZeros = (size: number): Digest => {
    const digest = digests.get(size) ?? digestOf(new Uint8Array(size));
    digests.set(size, digest);
    return digest;
  };
  let end = 0;
  for (const extent of extents.toSorted((a, b) => a.offset - b.offset)) {
    for (let offset = end; offset < extent.offset; offset += LONGEST_GAP) {
      const size = Math.min(LONGEST_GAP, extent.offset - offset);
      yield { offset, size, digest: digestOfZeros(size), paths: [] };
    }
    end = Math.max(end, endOf(extent));
  }
}

/** An extent is an image's manifest, or its manifests name it. */
async function createUserLookup(
  iso: IsoFiles,
  index: MediaIndex,
  harmed: ReadonlySet<IndexExtent>,
): Promise<(extent: IndexExtent) => readonly string[]> {
  const users = new Map<IndexExtent, Set<string>>();
  if (harmed.size === 0) return () => [];
  for await (const { image, extents } of readImageContents(iso, index)) {
    for (const extent of extents) {
      if (!harmed.has(extent)) continue;
      users.set(extent, (users.get(extent) ?? new Set()).add(image.name));
    }
  }
  return (extent) => [...(users.get(extent) ?? [])];
}

const describeOverlap = ({ offset, size, paths: [path] }: IndexExtent): ContentFinding => ({
  kind: 'index',
  problem: 'overlaps another extent of the index',
  offset,
  size,
  ...withoutUndefined({ path }),
});

/** One problem for each path, so that the result lists the lost files. */
function describeLost(
  { offset, size, paths }: IndexExtent,
  fileSize: number,
  images: readonly string[],
): ContentFinding[] {
  const problem = describeCut(offset, fileSize);
  const about = { kind: 'lost', problem, offset, size } as const;
  const needed = images.length > 0 && { images };
  if (paths.length === 0) return [{ ...about, ...needed }];
  return paths.map((path) => ({ ...about, ...needed, path }));
}

const describeGap = ({ extent: { offset, size }, unreadable }: DamagedExtent): ContentFinding => ({
  kind: 'content',
  problem: unreadable ?? 'is not all zeros, but the index names no extent here',
  offset,
  size,
});

function describeDamaged(
  { extent, found, unreadable }: DamagedExtent,
  images: readonly string[],
): ContentFinding {
  const { offset, size, digest, paths } = extent;
  return {
    kind: 'content',
    problem: unreadable ?? 'does not match its digest in the index',
    offset,
    size,
    ...withoutUndefined({ found, path: paths[0], expected: digest }),
    ...(images.length > 0 && { images }),
  };
}

const describeCut = (offset: number, fileSize: number): string =>
  offset >= fileSize ? 'is past the end of the file' : 'continues past the end of the file';

/** Finds files that the directories of an image without an index name and the file lacks. */
export async function findLostFiles(iso: IsoFiles, report: ReportFinding): Promise<void> {
  for await (const { path, node } of iso.walk()) {
    if (node.kind !== 'file') continue;
    const lost = node.extents.find((extent) => endOf(extent) > iso.fileSize);
    if (!lost) continue;
    const { offset, size } = lost;
    report({ kind: 'lost', problem: describeCut(offset, iso.fileSize), path, offset, size });
  }
}

const endOf = ({ offset, size }: { readonly offset: number; readonly size: number }): number =>
  offset + size;
