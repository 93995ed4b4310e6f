import pLimit from 'p-limit';
import { type Digest, hexOf } from '../../base/digest.ts';
import { SealiftError } from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { findReleaseImage } from '../../openshift/agent/live-system.ts';
import {
  createLeftOutTest,
  createShelfLookup,
  type NamedImage,
  type Shelf,
} from '../../openshift/mirror/closure.ts';
import { readStartedRegistry } from '../../openshift/node/read-registry.ts';
import { createKeyReader, judgeAttached } from '../../openshift/release/attached-signature.ts';
import { platformOf } from '../../openshift/release/bundle.ts';
import type { ImagePolicy } from '../../openshift/release/image-policy.ts';
import { TOLD_IMAGE_SET } from '../../openshift/installer/made-for.ts';
import { ADDITIONAL_IMAGES } from '../../openshift/mirror/sets.ts';
import {
  formatReference,
  readReference,
  type Reference,
  resolveCandidates,
} from '../../registry/index.ts';
import { archOf, readShelf } from '../named-images.ts';
import { attempt } from '../open.ts';
import type { CarriedImages, PlayedMedium } from './played-medium.ts';
import { describePolicies, listPullers, type Puller } from './pullers.ts';
import type { PlayedRelease } from './release.ts';
import { createStore, type PulledImage, type Store } from './store.ts';
import { cannotKnow, type RehearsedStep, unlessAny, willNot } from './step.ts';

const PART = 'pulls';

type Playing = {
  readonly store: Store;
  /** Host and port. */
  readonly served: string;
};

/**
 * Pulls of the live system by its registries.conf, of nodes and operators by the mirror sets and the policies
 * of the cluster, each to a manifest, its blobs, and its signature if a policy asks for one.
 */
export async function rehearsePulls(
  medium: PlayedMedium,
  release: PlayedRelease | undefined,
  carried: CarriedImages | undefined,
): Promise<readonly RehearsedStep[]> {
  const { live, registry, files, index } = medium;
  if (!registry || !carried) return [cannotKnow(PART, 'hosts find images', { reason: NO_IMAGES })];
  const { named, unread } = carried;
  const steps = unread.map(({ name, problem }) =>
    willNot(PART, `${name} can be read`, { reason: problem }),
  );
  const store = createStore(registry.tree, platformOf(archOf(index)));
  const all = [...listReleaseImage(medium), ...named];
  if (live === undefined) {
    const shelf = await readShelf(registry.tree);
    return [...steps, ...(await playAttached(all, { store, shelf })), ...UPGRADE];
  }
  const started = readStartedRegistry(live, files);
  const playing = {
    store,
    served: `${started.domain ?? ''}:${started.port ?? ''}`,
  };
  const isLeftOut = createLeftOutTest(index?.leftOut ?? []);
  const wanted = all.filter(({ image }) => !isLeftOut(formatReference(image)));
  const { pullers, problems } = listPullers(medium, release);
  const groups = [...groupBy(wanted, groupOf)];
  return [
    ...steps,
    ...problems,
    ...describeLeftOut(all.length - wanted.length),
    ...describePolicies(medium, release),
    ...(await playAll(pullers, groups, playing)),
  ];
}

const NO_IMAGES = 'the medium carries no images: hosts pull from registries on their network';

/** Mirror sets that are not on the medium may lead to any repository. */
async function playAttached(
  named: readonly NamedImage[],
  { store, shelf }: { readonly store: Store; readonly shelf: Shelf },
): Promise<readonly RehearsedStep[]> {
  const look = createShelfLookup(shelf);
  const problems: { reason: string }[] = [];
  for (const one of uniqueImages(named)) {
    const { digest } = one.image;
    if (digest === undefined) continue;
    const found = await Promise.all(
      look(one.image).map((repository) => store.pull(repository, digest)),
    );
    const [first = 'no repository of the medium has it'] = found;
    const isWhole = found.some((image) => typeof image !== 'string');
    if (!isWhole && typeof first === 'string')
      problems.push({ reason: `${describe(one)}: ${first}` });
  }
  return unlessAny(
    PART,
    'the medium has every image that its releases and catalogs name',
    problems,
  );
}

const UPGRADE: readonly RehearsedStep[] = [
  cannotKnow(PART, 'nodes find the images of the medium', {
    reason: 'the mirror sets are in the resources that the cluster gets, not on the medium',
  }),
];

const describeLeftOut = (left: number): readonly RehearsedStep[] =>
  left === 0
    ? []
    : [
        cannotKnow(PART, 'operators do without the images that were left out on purpose', {
          reason: `the index of the medium names ${left} of them`,
        }),
      ];

/** The release image by the name that the hosts pull. */
function listReleaseImage({ index, files }: PlayedMedium): readonly NamedImage[] {
  const told = files.get(TOLD_IMAGE_SET);
  const image = (told && findReleaseImage(told)) ?? index?.release.reference;
  const parsed = image === undefined ? undefined : readReference(image);
  return parsed ? [{ image: parsed, neededBy: { part: RELEASE } }] : [];
}

const RELEASE = 'release';

/** The use of the images of a group, in the words of a step. */
function groupOf({ neededBy: { part, component, bundle } }: NamedImage): string {
  if (part === RELEASE || component !== undefined) return 'the release';
  if (bundle !== undefined) return 'the operators';
  return part === ADDITIONAL_IMAGES ? 'the additional images' : 'the catalogs';
}

type Group = readonly [string, readonly NamedImage[]];

/** Lookups in the directories of the medium at a time. */
const LANES = 8;

async function playAll(
  pullers: readonly Puller[],
  groups: readonly Group[],
  playing: Playing,
): Promise<readonly RehearsedStep[]> {
  const limit = pLimit(LANES);
  const keyOf = createKeyReader();
  const steps = pullers.flatMap((puller) =>
    groups
      .filter(([group]) => puller.who === 'nodes' || group === 'the release')
      .map(async ([group, named]) => {
        const images = uniqueImages(named);
        const problems = await Promise.all(
          images.map((one) =>
            limit(async () => ({
              one,
              reason: await explainPull(one.image, puller, { ...playing, keyOf }),
            })),
          ),
        );
        const wrong = problems.flatMap(({ one, reason }) =>
          reason === undefined ? [] : [{ reason: `${describe(one)}: ${reason}` }],
        );
        return unlessAny(PART, `${puller.who} pull ${count(images.length)} of ${group}`, wrong);
      }),
  );
  return (await Promise.all(steps)).flat();
}

const count = (images: number): string => (images === 1 ? 'the image' : `all ${images} images`);

const uniqueImages = (named: readonly NamedImage[]): readonly NamedImage[] => [
  ...new Map(named.map((one) => [formatReference(one.image), one])).values(),
];

const describe = ({ image, neededBy: { part, component, bundle } }: NamedImage): string =>
  `${formatReference(image)} (${component ?? bundle ?? part})`;

type Judging = Playing & { readonly keyOf: ReturnType<typeof createKeyReader> };

/** The reason why a pull fails; undefined if it succeeds. */
async function explainPull(
  image: Reference,
  { conf, policiesOf }: Puller,
  judging: Judging,
): Promise<string | undefined> {
  const { store, served } = judging;
  const asked = listAsked(conf, image);
  if (typeof asked === 'string') return asked;
  for (const reference of asked.filter(({ registry }) => registry === served)) {
    const { value: digest } = await attempt(() => store.resolve(reference));
    if (digest === undefined) continue; // the next mirror is asked
    const found = await store.pull(reference.repository, digest);
    if (typeof found === 'string') return found;
    return explainSignatures(image, found, { policies: policiesOf(image), ...judging });
  }
  return explainAbsent(asked, served);
}

/** The places that are asked, or the reason why a mirror of them makes no reference, which ends the pull. */
function listAsked(conf: Puller['conf'], image: Reference): readonly Reference[] | string {
  try {
    return resolveCandidates(conf, image).map(({ reference }) => reference);
  } catch (error) {
    if (error instanceof SealiftError) return error.message;
    throw error;
  }
}

function explainAbsent(asked: readonly Reference[], served: string): string {
  const own = asked.filter(({ registry }) => registry === served);
  if (own.length > 0) {
    return `the registry of the medium has it in none of ${own.map(({ repository }) => repository).join(', ')}`;
  }
  return asked.length === 0
    ? 'no registry may be asked'
    : `only ${[...new Set(asked.map(({ registry }) => registry))].join(', ')} is asked, which is not on the medium`;
}

type Signing = Judging & { readonly policies: readonly ImagePolicy[] };

/** Nodes look for the signature in the repository that gave them the image, and in no other. */
async function explainSignatures(
  image: Reference,
  found: PulledImage,
  { policies, store, keyOf }: Signing,
): Promise<string | undefined> {
  for (const { key, identity, name } of policies) {
    if (key === undefined) continue;
    const { value: digest } = await attempt(() => findAttached(found, store));
    if (digest === undefined) {
      return `policy ${name} asks for a signature, and ${found.repository} has none of it`;
    }
    const signed = { digest: found.digest, image, key: keyOf(key), identity };
    const { value, problem } = await attempt(async () => {
      const manifest = await store.readManifest(digest);
      return manifest
        ? { reason: await judgeAttached(manifest, signed, readPayload(store)) }
        : { reason: 'the manifest of its signature has no file' };
    });
    const reason = problem ?? value?.reason;
    if (reason !== undefined) return `policy ${name}: ${reason}`;
  }
  return undefined;
}

const readPayload =
  (store: Store) =>
  async ({ digest }: { readonly digest: Digest }): Promise<Uint8Array> =>
    (await store.readBlob(digest)) ?? new Uint8Array();

const findAttached = (
  { repository, digest }: PulledImage,
  store: Store,
): Promise<Digest | undefined> =>
  store.resolve({ registry: '', repository, tag: `sha256-${hexOf(digest)}.sig` });
