import { withoutUndefined } from '../base/lists.ts';
import type { IsoImage } from '../iso/index.ts';
import { describeAbsence } from '../openshift/mirror/closure.ts';
import { checkClosure } from '../registry/index.ts';
import { findIncomplete, mayBeLeftOut } from './complete.ts';
import { compareBundleFile, compareBundleImage, readBundleFile } from './describe.ts';
import { BUNDLE_PATH, type MediaIndex, REGISTRY_ROOT } from './media-index.ts';
import { findRegistryRoot, isoRegistryTree } from './tree.ts';
import type { Findings } from './verify-findings.ts';

/* Checks of the images of a medium: its registry is complete, and has what the medium names. */

/** Every blob that the registry's manifests name is there. */
export async function verifyRegistry(iso: IsoImage, { report }: Findings): Promise<void> {
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

/** The members of an index that say what a medium should have; its extents take much memory. */
export type NamingIndex = Pick<
  MediaIndex,
  'product' | 'release' | 'images' | 'leftOut' | 'catalogs' | 'program'
>;

export const pickNaming = ({
  product,
  release,
  images,
  leftOut,
  catalogs,
  program,
}: MediaIndex): NamingIndex => ({
  product,
  release,
  images,
  ...withoutUndefined({ leftOut, catalogs, program }),
});

const EARLIER =
  'the version that made this medium did not record which images were left out on purpose';

/** Products whose registry is all that a cluster has. */
const WHOLE_PRODUCTS: readonly string[] = ['live-iso', 'upgrade-iso', 'data-iso'];

type Checking = { readonly findings: Findings; readonly signal: AbortSignal };

/** Checks that every image which the medium names is where its hosts look for it. */
export async function verifyComplete(
  iso: IsoImage,
  index: NamingIndex | undefined,
  { findings: { report, problems, oddities }, signal }: Checking,
): Promise<void> {
  const root = await findRegistryRoot(iso);
  if (root === undefined || (index && !WHOLE_PRODUCTS.includes(index.product))) return;
  const isDamaged = problems.length > 0;
  const tree = isoRegistryTree(iso, root);
  const { absent, unread } = await findIncomplete(iso, { tree, index }, signal);
  for (const one of absent) {
    if (mayBeLeftOut(one.image, index)) {
      oddities.push(`${one.image} is not where hosts look ${describeAbsence(one)}; ${EARLIER}`);
      continue;
    }
    report({
      kind: 'missing',
      problem: `is not where hosts look ${describeAbsence(one)}`,
      images: [one.image],
    });
  }
  if (isDamaged) return; // the damage that is reported explains what cannot be read
  for (const { name, problem } of unread)
    report({ kind: 'missing', problem: `${name}: ${problem}` });
}

/** Checks the list of images against the index, and against the release bundle in the registry. */
export async function verifyBundle(iso: IsoImage, { report, index }: Findings): Promise<void> {
  const bundle = await readBundleFile(iso);
  if (bundle === undefined || index === undefined) return;
  const problems = [
    ...compareBundleFile(bundle, index),
    ...(await compareBundleImage(isoRegistryTree(iso, REGISTRY_ROOT), bundle)),
  ];
  for (const problem of problems) report({ kind: 'bundle', problem, path: BUNDLE_PATH });
}
