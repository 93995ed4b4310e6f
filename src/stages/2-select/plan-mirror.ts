import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Stage } from '../../engine/index.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import { type ImageTools, extractComponentFile } from '../../openshift/images.ts';
import {
  fetchImages,
  type FetchTools,
  type Selection,
  fetchSignatures,
} from '../../openshift/mirror/fetch.ts';
import { planOperatorSet } from '../../openshift/mirror/operator-set.ts';
import {
  mergeMirrorPlan,
  planImage,
  type FetchedImage,
  type MirrorPlan,
} from '../../openshift/mirror/plan.ts';
import {
  blockImages,
  compileBlocked,
  mergeSets,
  planAdditionalSet,
  planPassedSet,
  planReleaseSet,
  type AdditionalImage,
  type ImageSet,
  type WantedImage,
} from '../../openshift/mirror/sets.ts';
import { platformOf, type RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { Release } from '../../openshift/release/release.ts';
import { planWorkspaceSet, type SurveyedWorkspace } from '../../openshift/workspace/set.ts';
import { parseReference, type Reference } from '../../registry/index.ts';

/*
 * The plan of all images on a medium, with every manifest and without a layer, and the list of
 * images that a seed precaches.
 */

export type PlanMirrorInput = {
  /** Absent if no release is carried. */
  readonly release?: Release;
  /** Releases that an upgrade passes on its way: carried by digest, without tags. */
  readonly passed?: readonly Release[];
  readonly catalogs: readonly SelectedCatalog[];
  readonly additionalImages: readonly AdditionalImage[];
  /** Regular expressions, matched anywhere in the source or the destination. */
  readonly blockedImages: readonly string[];
  /** If false, an index is carried with the images of `arch` only. */
  readonly allArchitectures: boolean;
  readonly arch: RpmArchitecture;
  /** Copies cosign's `.sig` tags, if there are any. */
  readonly includeSignatures: boolean;
  /** Hosts whose images are known to have no signatures, or whose answers about them are wrong. */
  readonly noSignaturesFrom?: readonly string[];
  /** The oc-mirror workspace that images come from, if there is one: everything in it is carried. */
  readonly workspace?: SurveyedWorkspace;
  readonly registryImage?: Reference;
};

export type PlanMirrorTools = Pick<ImageTools, 'client' | 'cache'> & {
  /** Manifests asked for at a time; default 16. */
  readonly concurrency?: number;
};

/** Fetches every manifest that is wanted, and no layer. Everything that is missing is reported at once. */
export const planMirror: Stage<PlanMirrorInput, MirrorPlan, PlanMirrorTools> = {
  name: 'plan mirror',
  run: (input, { client, cache, concurrency = 16 }, { signal, onProgress }) =>
    plan(input, {
      client,
      cache,
      signal,
      limit: pLimit(concurrency),
      onProgress: (done, total) => {
        onProgress(0, undefined, { note: `${done} of ${total} images` });
      },
    }),
};

async function plan(input: PlanMirrorInput, tools: FetchTools): Promise<MirrorPlan> {
  const findBlocking = compileBlocked(input.blockedImages);
  const operators = planOperatorSet(input.catalogs, findBlocking);
  const { workspace } = input;
  const named = mergeSets([
    ...(input.release ? [planReleaseSet(input.release)] : []),
    ...(input.passed ?? []).map(planPassedSet),
    operators.set,
    planAdditionalSet(input.additionalImages),
  ]);
  const { sets, blocked } = blockImages(
    workspace ? [...named, planWorkspaceSet(workspace, named)] : named,
    findBlocking,
  );
  const selection: Selection = input.allArchitectures ? 'all' : platformOf(input.arch);
  const fetched = await fetchImages([...sets, ...planRegistrySet(input)], selection, tools);
  const carried = fetched.filter(({ set }) => set !== REGISTRY_SET);
  const signatures = await findSignatures(carried, input, tools);
  const registryImage = fetched.find(({ set }) => set === REGISTRY_SET);
  return mergeMirrorPlan({
    images: [...carried, ...signatures].map(planImage),
    ...(registryImage && { registryImage: planImage(registryImage) }),
    blocked: [...operators.blocked, ...blocked],
    ...(workspace && { mirrors: workspace.mirrors }),
  });
}

/** Signatures of a workspace's other images are images of the workspace themselves. */
async function findSignatures(
  carried: readonly FetchedImage[],
  { includeSignatures, noSignaturesFrom }: PlanMirrorInput,
  tools: FetchTools,
): Promise<FetchedImage[]> {
  if (!includeSignatures) return [];
  const unsigned = new Set(noSignaturesFrom);
  const candidates = carried.filter(
    ({ wanted, set }) => set !== 'workspace' && !unsigned.has(wanted.source.registry),
  );
  const found = await fetchSignatures(candidates, tools);
  const places = new Set(carried.flatMap(({ wanted }) => listPlaces(wanted)));
  return found.filter(({ wanted }) => !listPlaces(wanted).every((place) => places.has(place)));
}

const listPlaces = ({ destination: { repository, tags } }: WantedImage): readonly string[] =>
  tags.map((tag) => `${repository}:${tag}`);

const REGISTRY_SET = 'registry';

/** Set of the registry server's image, which has no place in the registry that it serves. */
const planRegistrySet = ({ registryImage }: PlanMirrorInput): ImageSet[] =>
  registryImage === undefined
    ? []
    : [
        {
          name: REGISTRY_SET,
          images: [
            {
              name: 'registry-image',
              source: registryImage,
              destination: { repository: '', tags: [] },
              neededBy: [{ part: 'registry image' }],
            },
          ],
        },
      ];

/** The file that the program in a seed image reads to know which images to pull. */
const LIST = 'containers.list';

export type PrecacheInput = { readonly seedImage: string; readonly arch: RpmArchitecture };

export type PrecacheTools = Pick<ImageTools, 'client' | 'cache'> & { readonly workDir: string };

/**
 * Reads the images that an installation pulls besides the seed, as the seed names them. Its layers
 * stay in the cache: they are poured from there.
 */
export const readPrecacheList: Stage<PrecacheInput, readonly string[], PrecacheTools> = {
  name: 'read precache list',
  async run({ seedImage, arch }, { client, cache, workDir }, { signal, onProgress }) {
    const directory = join(workDir, 'cache', 'seed');
    const reference = parseReference(seedImage);
    const { path } = await extractComponentFile(
      { reference, arch, path: LIST, directory, suffix: '.list' },
      { client, cache, signal, onProgress },
    );
    const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
    return [...new Set(lines.filter((line) => line !== ''))];
  },
};
