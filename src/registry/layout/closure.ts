import { digestFromHex, isDigest, type Digest } from '../../base/digest.ts';
import { SealiftError } from '../../base/errors.ts';
import { type Descriptor, blobsOf, parseManifest, type ImageIndex } from '../manifest.ts';
import { pathTo } from './distribution.ts';
import {
  hasLink,
  listRepositories,
  listTags,
  readLink,
  readManifestBytes,
  type RegistryTree,
} from './tree.ts';

/** A problem on which a pull from this tree would fail. */
export type ClosureProblem = {
  readonly repository: string;
  /** The tag or digest whose pull would fail. */
  readonly reference: string;
  /** The file that is missing or wrong. */
  readonly path: string;
  /** The problem, as a sentence without its subject. */
  readonly problem: string;
};

type Report = (path: string, problem: string) => void;
type Place = {
  readonly tree: RegistryTree;
  readonly repository: string;
  /** Places are numbered in the order in which their problems are reported. */
  readonly turn: number;
  readonly report: Report;
};

type Need = Pick<Descriptor, 'digest' | 'size'> & { readonly place: Place };

/** Findings to check when all repositories have been read. */
type Found = {
  readonly revisions: { readonly place: Place; readonly digest: Digest }[];
  readonly layers: Need[];
  readonly sizes: Need[];
};

/**
 * Checks that every image of a registry tree can be pulled whole: tag to revision to children to config and
 * layers, with the links that make them visible in their repository. Manifests are checked against their
 * digest, blobs by size alone. An index may be sparse, but not without any children.
 *
 * Repositories are read one by one, and blobs by digest: a registry has 60,000 of them, and a
 * medium reads adjacent files together.
 *
 * Problems are sorted by repository, then by tag or digest.
 */
export async function checkClosure(tree: RegistryTree): Promise<ClosureProblem[]> {
  const problems: { readonly turn: number; readonly problem: ClosureProblem }[] = [];
  const found: Found = { revisions: [], layers: [], sizes: [] };
  let turns = 0;
  const placeFor = (repository: string, reference: string): Place => {
    const turn = turns++;
    return {
      tree,
      repository,
      turn,
      report: (path, problem) =>
        problems.push({ turn, problem: { repository, reference, path, problem } }),
    };
  };
  for (const repository of (await listRepositories(tree)).sort()) {
    for (const tag of (await listTags(tree, repository)).sort()) {
      const place = placeFor(repository, tag);
      await guard(place, pathTo.tagLink(repository, tag), () => checkTag(place, tag));
    }
    for (const hex of ((await tree.list(pathTo.revisions(repository))) ?? []).toSorted()) {
      const place = placeFor(repository, `sha256:${hex}`);
      const path = `${pathTo.revisions(repository)}/${hex}`;
      if (!isDigest(`sha256:${hex}`)) place.report(path, 'is not named by 64 hex digits');
      else await guard(place, path, () => findRevision(place, digestFromHex(hex), found));
    }
  }
  await checkFound(found, tree);
  return problems.sort((a, b) => a.turn - b.turn).map(({ problem }) => problem);
}

async function checkFound(found: Found, tree: RegistryTree): Promise<void> {
  for (const { place, digest } of found.revisions.sort(byDigest)) {
    await guard(place, pathTo.blob(digest), () => checkRevision(place, digest, found));
  }
  for (const { place, digest } of found.layers.sort((a, b) => a.place.turn - b.place.turn)) {
    await checkLink(place, pathTo.layerLink(place.repository, digest), digest);
  }
  tree.begin?.(); // the directories of all blobs are read again
  for (const { place, digest, size } of found.sizes.sort(byDigest)) {
    const path = pathTo.blob(digest);
    await guard(place, path, async () => {
      const actual = await place.tree.size(path);
      if (actual === undefined) place.report(path, 'is missing');
      else if (actual !== size)
        place.report(path, `should be ${size} bytes, but is ${actual} bytes`);
    });
  }
}

type Named = { readonly digest: Digest };

const byDigest = (a: Named, b: Named): number =>
  a.digest === b.digest ? 0 : a.digest < b.digest ? -1 : 1;

async function checkTag(place: Place, tag: string): Promise<void> {
  const { tree, repository } = place;
  const path = pathTo.tagLink(repository, tag);
  const digest = await readLink(tree, path);
  if (digest === undefined) {
    place.report(path, 'is missing');
    return;
  }
  await checkLink(place, pathTo.tagIndexLink({ repository, tag, digest }), digest);
  await checkLink(place, pathTo.revisionLink(repository, digest), digest);
}

async function findRevision(place: Place, digest: Digest, { revisions }: Found): Promise<void> {
  await checkLink(place, pathTo.revisionLink(place.repository, digest), digest);
  revisions.push({ place, digest });
}

async function checkRevision(place: Place, digest: Digest, found: Found): Promise<void> {
  const bytes = await readManifestBytes(place.tree, digest);
  if (bytes === undefined) {
    place.report(pathTo.blob(digest), 'is missing');
    return;
  }
  const manifest = parseManifest(bytes);
  if (manifest.kind === 'index') await checkChildren(place, { digest, manifest }, found);
  for (const { digest, size } of blobsOf(manifest)) {
    const need = { place, digest, size };
    found.layers.push(need);
    found.sizes.push(need);
  }
}

/** A child without a revision link was not selected; one with a link is checked by itself. */
async function checkChildren(
  place: Place,
  { digest, manifest }: { readonly digest: Digest; readonly manifest: ImageIndex },
  { sizes }: Found,
): Promise<void> {
  let present = 0;
  for (const child of manifest.manifests) {
    const path = pathTo.revisionLink(place.repository, child.digest);
    if ((await place.tree.size(path)) === undefined) continue;
    present++;
    sizes.push({ place, digest: child.digest, size: child.size });
  }
  if (present > 0 || manifest.manifests.length === 0) return;
  place.report(
    pathTo.blob(digest),
    `names ${manifest.manifests.length} manifests, but the repository has none of them`,
  );
}

async function checkLink(place: Place, path: string, digest: Digest): Promise<void> {
  await guard(place, path, async () => {
    if (!(await hasLink(place.tree, path, digest))) place.report(path, 'is missing');
  });
}

/** A file whose content is wrong is a problem to report; a tree that cannot be read is thrown. */
async function guard(
  { report }: Pick<Place, 'report'>,
  path: string,
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    report(path, error.message);
  }
}
