import { IntegrityError } from '../base/errors.ts';
import { checkStructure } from '../iso/check/check-structure.ts';
import { openIso, type IsoImage } from '../iso/open-iso.ts';
import { formatCauses } from '../iso/reading-context.ts';
import type { IndexExtent, MediaIndex } from '../openshift/media/media-index.ts';
import { checkClosure } from '../registry/closure.ts';
import { isoRegistryTree } from '../stages/iso-registry-tree.ts';
import { readIndex } from '../stages/read-index.ts';
import { verifyExtents } from '../stages/verify-extents.ts';

/** Something on the medium that is not as it should be. */
export type VerifyProblem = {
  readonly kind: 'structure' | 'index' | 'content' | 'registry';
  readonly problem: string;
  readonly path?: string;
  /** Names of the images that need the damaged bytes. */
  readonly images?: readonly string[];
  readonly offset?: number;
  readonly size?: number;
  readonly expected?: string;
  readonly found?: string;
};

export type Verification = {
  readonly ok: boolean;
  readonly problems: readonly VerifyProblem[];
  /** Unusual, but harmless. */
  readonly oddities: readonly string[];
  readonly checked: { readonly extents: number; readonly bytes: number; readonly images: number };
};

export type VerifyOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

/**
 * Checks a medium against itself: the structure of the ISO, every extent of its index by digest, and
 * that every image of its registry can be pulled whole. On an image without an index, what there is.
 */
export async function verifyIso(path: string, options: VerifyOptions): Promise<Verification> {
  let iso: IsoImage;
  try {
    iso = await openIso(path);
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    return conclude([{ kind: 'structure', problem: formatCauses(error) }], [], undefined);
  }
  try {
    return await verifyOpen(iso, options);
  } finally {
    await iso.close();
  }
}

async function verifyOpen(iso: IsoImage, options: VerifyOptions): Promise<Verification> {
  const problems: VerifyProblem[] = [];
  const oddities: string[] = [];
  for await (const found of checkStructure(iso)) {
    const { problem, path, range } = found;
    if (found.severity === 'damage') {
      problems.push({ kind: 'structure', problem, ...(path !== undefined && { path }), ...range });
    } else oddities.push(path === undefined ? problem : `${path}: ${problem}`);
  }
  const index = await guard('index', problems, () => readIndex(iso));
  if (index) {
    problems.push(...((await guard('index', problems, () => compareTree(iso, index))) ?? []));
    problems.push(...(await verifyContent(iso, index, options)));
  }
  const registry = await guard('registry', problems, () => verifyRegistry(iso));
  problems.push(...(registry ?? []));
  return conclude(problems, oddities, index);
}

/** Damage may make a part unreadable: that is a finding, and the other parts are checked all the same. */
async function guard<Result>(
  kind: VerifyProblem['kind'],
  problems: VerifyProblem[],
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    problems.push({ kind, problem: formatCauses(error) });
    return undefined;
  }
}

async function verifyContent(
  iso: IsoImage,
  index: MediaIndex,
  { signal, onProgress }: VerifyOptions,
): Promise<VerifyProblem[]> {
  const problems: VerifyProblem[] = [];
  const total = sizeOf(index.extents);
  const usersOf = await createUserLookup(iso, index);
  const damaged = verifyExtents(iso.path, index.extents, {
    signal,
    onProgress: (bytes) => {
      onProgress(bytes, total);
    },
  });
  for await (const { extent, found } of damaged) {
    const { offset, size, digest, paths } = extent;
    const images = usersOf(extent);
    problems.push({
      kind: 'content',
      problem: 'has other bytes than the index says',
      ...{ offset, size, found },
      ...(paths[0] !== undefined && { path: paths[0] }),
      ...(digest !== undefined && { expected: digest }),
      ...(images.length > 0 && { images }),
    });
  }
  return problems;
}

/** The directories and the index must tell the same: a wrong one of them shows here. */
async function compareTree(iso: IsoImage, index: MediaIndex): Promise<VerifyProblem[]> {
  const listed = new Map(
    index.extents.flatMap((extent) => extent.paths.map((path) => [path, extent] as const)),
  );
  const problems: VerifyProblem[] = [];
  for await (const { path, node } of iso.walk()) {
    if (node.kind !== 'file' || node.size === 0) continue;
    const place = { offset: node.extents[0]?.offset ?? 0, size: node.size };
    const problem = compareFile(place, listed.get(path));
    listed.delete(path);
    if (problem !== undefined) problems.push({ kind: 'index', problem, path, ...place });
  }
  for (const [path, { offset, size }] of listed) {
    problems.push({ kind: 'index', problem: 'is in the index only', path, offset, size });
  }
  return problems;
}

function compareFile(
  place: { readonly offset: number; readonly size: number },
  extent: IndexExtent | undefined,
): string | undefined {
  if (!extent) return 'is not in the index';
  const isSame = extent.offset === place.offset && extent.size === place.size;
  return isSame ? undefined : 'stands elsewhere than the index says';
}

/** Which images need an extent: those whose manifest it is, or whose manifests name it. */
async function createUserLookup(
  iso: IsoImage,
  index: MediaIndex,
): Promise<(extent: IndexExtent) => readonly string[]> {
  const users = new Map<string, Set<string>>();
  const note = (digest: string, name: string): void => {
    users.set(digest, (users.get(digest) ?? new Set()).add(name));
  };
  const tree = isoRegistryTree(iso);
  for (const { name, manifests } of index.images) {
    for (const manifest of manifests) {
      note(manifest, name);
      const hex = manifest.slice('sha256:'.length);
      const bytes = await tree
        .read(`/docker/registry/v2/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`)
        .catch(() => undefined); // damaged: reported as such, here only names are missing
      const text = bytes === undefined ? '' : Buffer.from(bytes).toString('latin1');
      for (const [digest] of text.matchAll(/sha256:[0-9a-f]{64}/g)) note(digest, name);
    }
  }
  return ({ digest }) => [...(users.get(digest ?? '') ?? [])];
}

async function verifyRegistry(iso: IsoImage): Promise<VerifyProblem[]> {
  if ((await iso.find('/registry/docker/registry/v2'))?.kind !== 'directory') return [];
  const problems = await checkClosure(isoRegistryTree(iso));
  return problems.map(({ repository, reference, path, problem }) => ({
    kind: 'registry',
    problem,
    path: `/registry${path}`,
    images: [`${repository}${reference.startsWith('sha256:') ? '@' : ':'}${reference}`],
  }));
}

function conclude(
  problems: readonly VerifyProblem[],
  oddities: readonly string[],
  index: MediaIndex | undefined,
): Verification {
  const extents = (index?.extents ?? []).filter(({ digest }) => digest !== undefined);
  const images = index?.images.length ?? 0;
  return {
    ok: problems.length === 0,
    problems,
    oddities,
    checked: { extents: extents.length, bytes: sizeOf(extents), images },
  };
}

const sizeOf = (extents: readonly IndexExtent[]): number =>
  extents.reduce((sum, { size }) => sum + size, 0);
