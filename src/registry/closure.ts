import { digestFromHex, isDigest, type Digest } from '../base/digest.ts';
import { SealiftError } from '../base/errors.ts';
import type { Descriptor } from './descriptor.ts';
import { pathTo } from './layout/distribution-layout.ts';
import { blobsOf } from './foreign-layer.ts';
import { parseManifest, type ImageIndex } from './manifest.ts';
import {
  hasLink,
  listRepositories,
  listTags,
  readLink,
  readManifestBytes,
} from './layout/stored.ts';
import type { RegistryTree } from './layout/store.ts';

/** Something a pull from this tree would fail on. */
export type ClosureProblem = {
  readonly repository: string;
  /** The tag or digest whose pull would fail. */
  readonly reference: string;
  /** The file that is missing or wrong. */
  readonly path: string;
  /** What is wrong with it, as a sentence without its subject. */
  readonly problem: string;
};

type Report = (path: string, problem: string) => void;
type Place = { readonly tree: RegistryTree; readonly repository: string; readonly report: Report };

/**
 * Whether every image of a registry tree can be pulled whole: tag to revision to children to config
 * and layers, with the links that make them visible in their repository. Manifests are checked
 * against their digest, blobs by size alone. An index may be sparse, but not empty-handed.
 *
 * Problems come sorted by repository, then in the order of a pull.
 */
export async function checkClosure(tree: RegistryTree): Promise<ClosureProblem[]> {
  const problems: ClosureProblem[] = [];
  for (const repository of (await listRepositories(tree)).sort()) {
    const placeFor = (reference: string): Place => ({
      tree,
      repository,
      report: (path, problem) => problems.push({ repository, reference, path, problem }),
    });
    for (const tag of (await listTags(tree, repository)).sort()) {
      const path = pathTo.tagLink(repository, tag);
      await guard(placeFor(tag), path, () => checkTag(placeFor(tag), tag));
    }
    for (const hex of ((await tree.list(pathTo.revisions(repository))) ?? []).toSorted()) {
      const place = placeFor(`sha256:${hex}`);
      const path = `${pathTo.revisions(repository)}/${hex}`;
      if (!isDigest(`sha256:${hex}`)) place.report(path, 'is not named by 64 hex digits');
      else await guard(place, path, () => checkRevision(place, digestFromHex(hex)));
    }
  }
  return problems;
}

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

async function checkRevision(place: Place, digest: Digest): Promise<void> {
  await checkLink(place, pathTo.revisionLink(place.repository, digest), digest);
  const path = pathTo.blob(digest);
  await guard(place, path, async () => {
    const bytes = await readManifestBytes(place.tree, digest);
    if (bytes === undefined) {
      place.report(path, 'is missing');
      return;
    }
    const manifest = parseManifest(bytes);
    if (manifest.kind === 'index') await checkChildren(place, digest, manifest);
    for (const blob of blobsOf(manifest)) await checkBlob(place, blob);
  });
}

/** A child without a revision link was not selected; one with a link is checked by itself. */
async function checkChildren(place: Place, digest: Digest, index: ImageIndex): Promise<void> {
  let present = 0;
  for (const child of index.manifests) {
    const path = pathTo.revisionLink(place.repository, child.digest);
    if ((await place.tree.size(path)) === undefined) continue;
    present++;
    await checkSize(place, child);
  }
  if (present > 0 || index.manifests.length === 0) return;
  place.report(pathTo.blob(digest), `names ${index.manifests.length} manifests, none of them here`);
}

async function checkBlob(place: Place, blob: Descriptor): Promise<void> {
  await checkLink(place, pathTo.layerLink(place.repository, blob.digest), blob.digest);
  await checkSize(place, blob);
}

async function checkSize({ tree, report }: Place, { digest, size }: Descriptor): Promise<void> {
  const path = pathTo.blob(digest);
  const found = await tree.size(path);
  if (found === undefined) report(path, 'is missing');
  else if (found !== size) report(path, `should be ${size} bytes, but is ${found} bytes`);
}

async function checkLink(place: Place, path: string, digest: Digest): Promise<void> {
  await guard(place, path, async () => {
    if (!(await hasLink(place.tree, path, digest))) place.report(path, 'is missing');
  });
}

/** A file whose content is wrong is a problem to report; a tree that cannot be read is thrown. */
async function guard({ report }: Place, path: string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    report(path, error.message);
  }
}
