import pLimit from 'p-limit';
import { hexOf, type Digest } from '../../base/digest.ts';
import { SealiftError, type PulledProblem } from '../../base/errors.ts';
import type { Stage, StageContext } from '../../engine/index.ts';
import { fetchBlob, readManifest, type ImageTools } from '../../openshift/images.ts';
import { shelfOf } from '../../openshift/mirror/closure.ts';
import type { MirrorPlan, PlannedImage } from '../../openshift/mirror/plan.ts';
import { createNodeLookup } from '../../openshift/node/lookup.ts';
import {
  createPolicyFinder,
  disablesImagePolicy,
  type ImagePolicy,
  listApplied,
} from '../../openshift/release/image-policy.ts';
import type { Release } from '../../openshift/release/release.ts';
import { createKeyReader, judgeAttached } from '../../openshift/release/attached-signature.ts';
import { BUNDLE_PREFIX, isBundleFor, type Signed } from '../../openshift/release/signature.ts';
import {
  formatReference,
  MEDIA_TYPE,
  type Reference,
  type RegistryClient,
} from '../../registry/index.ts';

export type CheckImagePolicyInput = {
  readonly release: Release;
  readonly plan: MirrorPlan;
  /** Absent: the media decide for themselves; see `disablesImagePolicy`. */
  readonly disableImagePolicy?: boolean;
};

/** The answer of nodes to the images of OpenShift on a medium. Plain JSON. */
export type ImagePolicyCheck = {
  /** Names of the policies of the release that ask for a key. */
  readonly policies: readonly string[];
  /** Names of the policies that ask for something else, and were not checked. */
  readonly unchecked: readonly string[];
  /** True if the medium switches the policies off. */
  readonly isDisabled: boolean;
  /** Number of images that the policies apply to. */
  readonly images: number;
  readonly refused: readonly PulledProblem[];
};

export type CheckImagePolicyTools = Pick<ImageTools, 'cache'> & {
  readonly client: ImageTools['client'] & Pick<RegistryClient, 'fetchReferrers'>;
};

type Tools = CheckImagePolicyTools & StageContext;

/**
 * Finds the images that a node of a release refuses to pull, because no signature on the medium is by the key
 * that a ClusterImagePolicy of the payload names. Nodes read signatures only under the tag `sha256-HEX.sig`,
 * of the manifest of their own platform; if there is no such tag, a bundle of cosign 3 is looked for.
 */
export const checkImagePolicy: Stage<
  CheckImagePolicyInput,
  ImagePolicyCheck,
  CheckImagePolicyTools
> = {
  name: 'check image policy',
  async run({ release, plan, disableImagePolicy }, tools, context) {
    const policies = listApplied(release);
    const isDisabled = disablesImagePolicy(release.version, disableImagePolicy);
    const candidates = isDisabled ? [] : listCandidates(policies, plan);
    const limit = pLimit(CONCURRENCY);
    const findAttached = createAttachedFinder(plan);
    const findings = await Promise.all(
      candidates.map((one) =>
        limit(() => findProblem(one, findAttached, { ...tools, ...context })),
      ),
    );
    return {
      policies: policies.filter(({ key }) => key !== undefined).map(({ name }) => name),
      unchecked: policies.filter(({ key }) => key === undefined).map(({ name }) => name),
      isDisabled,
      images: new Set(candidates.map(({ image }) => image)).size,
      refused: findings.flat(),
    };
  },
};

const CONCURRENCY = 8;

/** A manifest that a node pulls and that a policy applies to. */
type Candidate = {
  readonly image: PlannedImage;
  readonly digest: Digest;
  readonly signed: Signed;
};

function listCandidates(policies: readonly ImagePolicy[], plan: MirrorPlan): Candidate[] {
  const findPolicies = createPolicyFinder(policies);
  const keyOf = createKeyReader();
  return plan.images
    .filter(({ kind }) => kind !== 'signature')
    .flatMap((image) => findPolicies(image.origin).map((policy) => ({ image, policy })))
    .flatMap(({ image, policy: { key: pem, identity } }) => {
      if (pem === undefined) return [];
      const key = keyOf(pem);
      return image.manifests
        .filter(({ mediaType }) => !INDEXES.includes(mediaType))
        .map(({ digest }) => ({
          image,
          digest,
          signed: { digest, image: image.origin, key, identity },
        }));
    });
}

/** Nodes ask for the signature of the manifest that they run, not of the list that contains it. */
const INDEXES: readonly string[] = [MEDIA_TYPE.ociIndex, MEDIA_TYPE.dockerList];

async function findProblem(
  { image, digest, signed }: Candidate,
  findAttached: FindAttached,
  tools: Tools,
): Promise<readonly PulledProblem[]> {
  const attached = findAttached(image, digest);
  const problem = attached
    ? await judgePlanned(attached, signed, tools)
    : await explainAbsent(image, signed, tools);
  if (problem === undefined) return [];
  const { registry, repository } = image.origin;
  const reference = formatReference({ registry, repository, digest });
  return [{ ...REFUSED, name: image.name, image: reference, problem }];
}

/** A warning only: the medium is built, because nodes can be configured to accept the image. */
const REFUSED = { severity: 'warning', code: 'signature.image-refused' } as const;

/** The image that cosign attaches to another, where nodes look for it. */
type FindAttached = (image: PlannedImage, digest: Digest) => PlannedImage | undefined;

/** Nodes look in the first repository that has the image, and in no other. */
function createAttachedFinder(plan: MirrorPlan): FindAttached {
  const look = createNodeLookup(plan.mirrors);
  const shelf = shelfOf(plan);
  const attached = new Map(
    plan.images.flatMap((image) =>
      image.destination.tags.map((tag) => [`${image.destination.repository}:${tag}`, image]),
    ),
  );
  return ({ origin, destination }, digest) => {
    const { registry, repository } = origin;
    const asked = look({ registry, repository, digest });
    const place = asked.find((one) => shelf.has(`${one}@${digest}`)) ?? destination.repository;
    return attached.get(`${place}:sha256-${hexOf(digest)}.sig`);
  };
}

async function judgePlanned(
  { source }: PlannedImage,
  signed: Signed,
  tools: Tools,
): Promise<string | undefined> {
  const { manifest } = await readManifest(tools, source);
  return judgeAttached(manifest, signed, (layer) => fetchBlob(tools, source, layer));
}

const MOST_BUNDLES = 16;
const LARGEST_BUNDLE = 64 << 10;

/** A registry that cannot list what is attached has no signature where nodes look for it, either. */
async function explainAbsent(image: PlannedImage, signed: Signed, tools: Tools): Promise<string> {
  try {
    return (await hasBundle(image, signed, tools))
      ? 'its signature is a bundle of cosign 3, which nodes do not read'
      : 'it has no signature';
  } catch (error) {
    tools.signal.throwIfAborted();
    if (!(error instanceof SealiftError)) throw error;
    return `it has no signature, and what is attached to it cannot be listed: ${error.message}`;
  }
}

async function hasBundle(image: PlannedImage, signed: Signed, tools: Tools): Promise<boolean> {
  const { registry, repository } = image.origin;
  const at = (digest: Digest): Reference => ({ registry, repository, digest });
  const referrers = await tools.client.fetchReferrers(at(signed.digest), tools);
  const bundles = referrers.filter(({ artifactType = BUNDLE_PREFIX }) =>
    artifactType.startsWith(BUNDLE_PREFIX),
  );
  for (const { digest } of bundles.slice(0, MOST_BUNDLES)) {
    const { manifest } = await readManifest(tools, at(digest));
    const layers = manifest.kind === 'manifest' ? manifest.layers : [];
    const bundle = layers.find(
      ({ mediaType, size }) => mediaType.startsWith(BUNDLE_PREFIX) && size <= LARGEST_BUNDLE,
    );
    if (bundle && isBundleFor(await fetchBlob(tools, at(digest), bundle), signed)) return true;
  }
  return false;
}
