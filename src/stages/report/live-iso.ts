import { withoutUndefined } from '../../base/lists.ts';
import type { AddedBundle } from '../../fbc/index.ts';
import {
  bundleKey,
  planBundleCosts,
  planCosts,
  sizeOfRegistry,
  type BundleCost,
  type PartCost,
} from '../../openshift/mirror/costs.ts';
import type { PlannedImage } from '../../openshift/mirror/plan.ts';
import type { BaseIso } from '../../openshift/release/base-iso.ts';
import {
  findInternalReleaseImage,
  skipsLocalRegistry,
  type ServedKind,
} from '../../openshift/release/manifests.ts';
import {
  describeRelease,
  describeSignatures,
  type DescribedSignature,
} from '../../openshift/release/release.ts';
import { describeOutput, type DescribedOutput } from '../../outputs/place.ts';
import { formatReference } from '../../registry/index.ts';
import type { ImagePolicyCheck } from '../2-select/check-image-policy.ts';
import type { MadeIso } from '../5-pour/pour.ts';
import type { LiveIsoRequest, PreparedIso, PreparedLiveIso } from '../request.ts';
import type { TagDigests } from '../resolved/tags.ts';

/* The plan and the report of a live ISO, and the summary of images and sizes that other media share. */

/** The report of `sealift plan`. Sizes are bytes. */
export type LiveIsoPlan = {
  readonly format: 1;
  readonly product: 'live-iso';
  readonly release: {
    readonly version: string;
    readonly reference: string;
    readonly architecture: string;
  };
  /** Signatures of each release on the medium. */
  readonly signatures: readonly DescribedSignature[];
  readonly imagePolicy: ImagePolicyCheck;
  /** The registry server on the hosts, by digest. */
  readonly registryImage?: string;
  readonly base: Pick<BaseIso, 'digest' | 'from' | 'size'> & { readonly osStream?: string };
  /** Room for the compressed Ignition config with the values of a site, and the part of it that is used. */
  readonly ignitionArea: { readonly size: number; readonly used: number };
  /** Its object on the media; null if there is no object: the flow or the release has no use for it. */
  readonly internalReleaseImage: ServedKind | null;
  readonly isoSize: number;
  /** Bytes; every blob counts once. */
  readonly payloadSize: number;
  readonly bytesToFetch: number;
  readonly bytesReused: number;
  readonly dedupeSaved: number;
  /** Data that installed hosts copy to their disks; absent if they copy nothing. */
  readonly hostCopy?: HostCopy;
  readonly freeBytes: number;
  readonly neededBytes: number;
  readonly images: number;
  readonly blobs: number;
  readonly largestBlobs: readonly {
    readonly digest: string;
    readonly size: number;
    readonly users: readonly string[];
  }[];
  readonly imageSets: readonly {
    readonly name: string;
    readonly images: number;
    readonly bytes: number;
  }[];
  /** The release, each operator, the additional images: what each costs, and what leaving it out saves. */
  readonly parts: readonly PartCost[];
  /** Bundles that are carried because others require them, each with its cost. */
  readonly additions: readonly (AddedBundle & BundleCost & { readonly catalog: string })[];
  readonly catalogs: readonly {
    readonly name: string;
    /** Digest on the media. */
    readonly digest: string;
    readonly isRebuilt: boolean;
    readonly bundles: readonly string[];
    readonly warnings: readonly string[];
  }[];
  readonly registriesConf: readonly string[];
  /** Digests that tags named: `build --plan` takes these digests. */
  readonly tags: TagDigests;
  readonly contents: string;
  readonly secretsOnMedia: readonly string[];
  /** Warnings about manifests that this release cannot take as they are, and about too small disks. */
  readonly warnings: readonly string[];
  readonly blocked: readonly string[];
  /** Images of a mirror on this machine that the configuration does not name. */
  readonly extras: readonly string[];
};

/** Bytes. */
export type HostCopy = {
  readonly size: number;
  /** Size of the disk that a host needs for the copy and for everything else. */
  readonly diskNeeded: number;
};

/** The part of a plan's report that describes images and sizes, for any medium. */
export type PayloadSummary = Omit<
  LiveIsoPlan,
  | 'product'
  | 'base'
  | 'ignitionArea'
  | 'internalReleaseImage'
  | 'hostCopy'
  | 'secretsOnMedia'
  | 'warnings'
>;

export type LiveFacts = LiveIsoPlan &
  DescribedOutput & {
    /** True if a person configures the cluster at the web interface of a host. */
    readonly interactive: boolean;
    readonly fips: boolean;
    readonly ignition: 'installer' | 'embedded';
    readonly unverifiedTls: readonly string[];
    /** Directory that stays on disk for the next build. */
    readonly cache: string;
  };

export type LiveIsoReport = LiveFacts & MadeIso;

export const describeLiveIso = (request: LiveIsoRequest, prepared: PreparedLiveIso): LiveFacts => ({
  ...summarizePlan(request, prepared),
  ...describeOutput(request),
  interactive: request.config.enableInteractiveFlow,
  fips: request.config.enableFips,
  ignition: request.ignition,
  unverifiedTls: request.config.build.insecureRegistries,
  cache: request.workDir,
});

export const summarizePlan = (request: LiveIsoRequest, prepared: PreparedLiveIso): LiveIsoPlan => {
  const { digest, from, size } = prepared.base;
  const { enableInteractiveFlow: interactive } = request.config;
  const { hostCopy, warnings } = planHostCopy(request.config, prepared);
  return {
    product: 'live-iso',
    base: { digest, from, size, ...withoutUndefined({ osStream: prepared.layout.osStream }) },
    ignitionArea: prepared.layout.ignitionArea,
    ...summarizePayload(prepared),
    internalReleaseImage: interactive
      ? (findInternalReleaseImage(prepared.release.definitions) ?? null)
      : null,
    ...(hostCopy && { hostCopy }),
    secretsOnMedia: listSecrets(request),
    warnings: [...prepared.warnings, ...warnings],
  };
};

export function summarizePayload(prepared: PreparedIso): PayloadSummary {
  const { release, plan, layout, space } = prepared;
  const largest = [...plan.blobs].sort((a, b) => b.size - a.size || (a.digest < b.digest ? -1 : 1));
  return {
    format: 1,
    tags: prepared.tags,
    contents: prepared.contents,
    release: describeRelease(release),
    signatures: describeSignatures([release]),
    imagePolicy: prepared.imagePolicy,
    ...(plan.registryImage && { registryImage: formatReference(plan.registryImage.source) }),
    isoSize: layout.size,
    payloadSize: plan.blobSize,
    ...space,
    dedupeSaved: plan.dedupeSaved,
    images: plan.images.length + (plan.registryImage ? 1 : 0),
    blobs: plan.blobs.length,
    largestBlobs: largest
      .slice(0, LARGEST)
      .map(({ digest, size, users }) => ({ digest, size, users })),
    imageSets: summarizeSets(prepared),
    parts: planCosts(plan),
    additions: summarizeAdditions(prepared),
    catalogs: prepared.catalogs.map(({ name, digest, rebuilt, bundles, warnings }) => ({
      name,
      digest,
      warnings,
      isRebuilt: rebuilt !== undefined,
      bundles: bundles.map((bundle) => bundle.name),
    })),
    registriesConf: prepared.registriesConf,
    blocked: plan.blocked.map(({ image }) => image),
    extras: listExtras(plan.images),
  };
}

/** The disk size of a host is known only on the host; here, only the smallest accepted size is known. */
export function planHostCopy(
  { enableInteractiveFlow, skipLocalRegistry, build }: LiveIsoRequest['config'],
  { release, plan }: Pick<PreparedLiveIso, 'release' | 'plan'>,
): { readonly hostCopy?: HostCopy; readonly warnings: readonly string[] } {
  const settings = {
    interactive: enableInteractiveFlow,
    ...withoutUndefined({ skipLocalRegistry }),
  };
  if (build.registryData === 'medium' || skipsLocalRegistry(release, settings)) {
    return { warnings: [] };
  }
  const size = sizeOfRegistry(plan);
  const diskNeeded = size + HOST_WITHOUT_COPY;
  if (diskNeeded <= SMALLEST_DISK) return { hostCopy: { size, diskNeeded }, warnings: [] };
  const warning =
    `installed hosts copy ${formatGB(size)} to their disks and need ${formatGB(diskNeeded)}, but ` +
    `disks of ${formatGB(SMALLEST_DISK)} are accepted: on those, leave the medium attached`;
  return { hostCopy: { size, diskNeeded }, warnings: [warning] };
}

const LARGEST = 20;

/** Below a namespace of oc-mirror, images of other sets exist under another name. */
function listExtras(images: readonly PlannedImage[]): readonly string[] {
  const isOfWorkspace = ({ set }: PlannedImage): boolean => set === 'workspace';
  const named = new Set(
    images.filter((image) => !isOfWorkspace(image)).map(({ source }) => source.digest),
  );
  return images
    .filter((image) => isOfWorkspace(image) && image.kind !== 'signature')
    .filter(({ source }) => !named.has(source.digest))
    .map(({ name }) => name);
}

const GB = 1e9;

/** Bytes that a host needs besides the copy: system, container images, logs. */
const HOST_WITHOUT_COPY = 40 * GB;

/** Bytes; the assisted service refuses hosts with a smaller disk. */
const SMALLEST_DISK = 100 * GB;

const formatGB = (bytes: number): string => `${(bytes / GB).toFixed(1)} GB`;

function summarizeAdditions({
  plan,
  catalogs,
}: Pick<PreparedLiveIso, 'plan' | 'catalogs'>): LiveIsoPlan['additions'] {
  const costs = planBundleCosts(plan);
  return catalogs.flatMap(({ name: catalog, additions }) =>
    additions.map((added) => ({
      catalog,
      ...added,
      ...(costs.get(bundleKey(catalog, added.bundle)) ?? { images: 0, size: 0, marginalSize: 0 }),
    })),
  );
}

/** Summarises each set's images and the blobs they need; each blob counts once in a set. */
function summarizeSets({ plan }: Pick<PreparedLiveIso, 'plan'>): LiveIsoPlan['imageSets'] {
  const names = [...new Set(plan.images.map(({ set }) => set))];
  return names.map((name) => {
    const images = plan.images.filter(({ set }) => set === name);
    const blobs = new Map(
      images.flatMap((image) => image.blobs.map(({ digest, size }) => [digest, size] as const)),
    );
    return { name, images: images.length, bytes: [...blobs.values()].reduce((a, b) => a + b, 0) };
  });
}

/** Lists the secrets on the media. The pull secret used for mirroring is never on them. */
export function listSecrets({ config }: Pick<LiveIsoRequest, 'config'>): readonly string[] {
  return [
    ...(config.sshKey === undefined ? [] : ['sshKey (public key of core)']),
    ...(config.userCorePass === undefined ? [] : ['userCorePass (hash of the password of core)']),
    ...(config.build.embed.pullSecret === undefined
      ? []
      : ['build.embed.pullSecret (for the hosts)']),
  ];
}
