import { withoutUndefined } from '../../base/lists.ts';
import { toPrintable } from '../../base/text/words.ts';
import { hasDisabledPolicy } from '../../openshift/node/read-registry.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { listGatedUpdates } from '../../openshift/release/gated-path.ts';
import {
  type Gate,
  type GatedBundle,
  type GatedUpdate,
  listGates,
} from '../../openshift/release/gates.ts';
import { hasPolicyOverride } from '../../openshift/release/image-policy.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import { minorOf } from '../../openshift/release/version.ts';
import { parseReference, readReference } from '../../registry/index.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { list, optional, record, refine, TEXT } from '../../shape/shape.ts';
import { attempt } from '../open.ts';
import { openImageOf } from '../payload.ts';
import type { PlayedMedium } from './played-medium.ts';
import { type PlayedRelease, readPayloadLayers } from './release.ts';
import { cannotKnow, type Step, will, willNot } from './step.ts';

const PART = 'upgrade';

/** The cluster that the medium meets, as far as it is given. */
export type MetCluster = {
  /** Version that it has. */
  readonly from?: string | undefined;
  /** That release, with what its payload asks for. */
  readonly left?: GatedUpdate['from'] | undefined;
};

type Met = MetCluster & {
  /** Bundles in the catalogs of the medium. */
  readonly bundles: readonly GatedBundle[];
  readonly signal: AbortSignal;
};

/**
 * Plays the updates that a medium is for: an upgrade ISO leads a cluster through its path, and the
 * cluster of a live ISO meets the gates of its own payload later. A person opens gates, so a medium
 * never decides them.
 */
export async function rehearseGates(
  medium: PlayedMedium,
  release: PlayedRelease | undefined,
  cluster: Met,
): Promise<readonly Step[]> {
  const product = medium.index?.product;
  if (release === undefined) return [];
  if (product === 'live-iso') return rehearseLater(medium, release);
  return product === 'upgrade-iso' ? rehearsePath(medium, release, cluster) : [];
}

/** The gates that every cluster of the release has before its next minor version. */
function rehearseLater(medium: PlayedMedium, release: PlayedRelease): readonly Step[] {
  const { version } = release.metadata;
  const [major = '', minor = ''] = (minorOf(version) ?? '').split('.');
  const gates = listGates({
    updates: [
      {
        from: { version, adminGates: release.adminGates },
        to: { version: `${major}.${Number(minor) + 1}`, image: '', risks: [] },
      },
    ],
    arch: archOf(medium),
    bundles: [],
    hasOverrides: hasDisabledPolicy(medium.files) && hasPolicyOverride(version),
  });
  return gates.filter(({ certainty }) => certainty === 'certain').map(toStep);
}

async function rehearsePath(
  medium: PlayedMedium,
  release: PlayedRelease,
  cluster: Met,
): Promise<readonly Step[]> {
  const { value: root, problem = 'the file is missing, or does not name them' } = await attempt(
    () => readRoot(medium),
  );
  if (root === undefined) {
    return [willNot(PART, 'the ISO names its updates', { place: ROOT, reason: problem })];
  }
  const start = findStart(root, release, cluster);
  if ('reason' in start) {
    return [
      willNot(PART, `a cluster of ${start.from} is updated`, {
        reason: start.reason,
        place: ROOT,
      }),
    ];
  }
  const { path } = start;
  const passed = await readPassed(medium, root, cluster.signal);
  const unread = passed.flatMap(({ problem: reason }, at) =>
    reason === undefined
      ? []
      : [willNot(PART, `release ${root.hops[at]?.version ?? ''} can be read`, { reason })],
  );
  if (unread.length > 0) return unread;
  const carried = [...passed.flatMap(({ value }) => value ?? []), release].map(describe);
  const releases = carried.slice(-path.hops.length);
  const left = cluster.left ?? findLeft(path, carried);
  const gates = listGates({
    updates: listGatedUpdates({ path, releases, ...withoutUndefined({ left }) }),
    arch: archOf(medium),
    bundles: cluster.bundles,
    hasOverrides: false,
  });
  return gates.length === 0
    ? [will(PART, 'nothing that is known stops the cluster')]
    : gates.map(toStep);
}

/** The release that the cluster leaves is on the medium if the cluster has gone a part of the path. */
const findLeft = (
  { from }: UpgradePath,
  carried: readonly ReturnType<typeof describe>[],
): GatedUpdate['from'] | undefined =>
  from === undefined
    ? undefined
    : (carried.find(({ version }) => version === from) ?? {
        version: from,
        problem: 'its payload is not on the medium',
      });

const IMAGE = refine(TEXT, (image) =>
  readReference(image)?.digest === undefined ? 'is not a reference by digest' : undefined,
);

/** The part of `release.json` that is played; `path` has the release of the ISO at its end. */
const UPGRADE_ROOT = record(
  {
    from: optional(TEXT),
    path: list(record({ version: TEXT, image: IMAGE }, { others: 'left-out' })),
  },
  { others: 'left-out' },
);
const ROOT = '/release.json';
/** Bytes. */
const ROOT_LIMIT = 1 << 20;

async function readRoot({ iso }: PlayedMedium): Promise<UpgradePath | undefined> {
  const node = await iso.find(ROOT);
  if (node?.kind !== 'file') return undefined;
  const text = await iso.readFile(node, ROOT_LIMIT);
  const root = ifFaultless(decodeJson(UPGRADE_ROOT, text));
  if (root === undefined) return undefined;
  const { from, path } = root;
  const hops = path.map((hop) => ({ ...hop, risks: [] }));
  return { hops, ...withoutUndefined({ from }) };
}

/** The rest of the path from the version of the cluster; without one, the path as it was built. */
function findStart(
  path: UpgradePath,
  { metadata }: PlayedRelease,
  { from = path.from }: MetCluster,
): { readonly path: UpgradePath } | { readonly from: string; readonly reason: string } {
  if (from === undefined || from === path.from) return { path };
  const at = path.hops.findIndex(({ version }) => version === from);
  if (at >= 0 && at < path.hops.length - 1) {
    return { path: { from, hops: path.hops.slice(at + 1) } };
  }
  const isDirect = path.hops.length === 1 && metadata.previous.includes(from);
  if (isDirect) return { path: { ...path, from } };
  const built = path.from ?? `any of ${metadata.previous.length} releases`;
  return { from, reason: `the ISO is for a cluster of ${built}` };
}

/** Payloads between, by the digests of the path. */
const readPassed = (
  medium: PlayedMedium,
  { hops }: UpgradePath,
  signal: AbortSignal,
): Promise<readonly { readonly value?: PlayedRelease; readonly problem?: string }[]> =>
  Promise.all(
    hops.slice(0, -1).map(({ version, image }) =>
      attempt(async () => {
        const reference = parseReference(image);
        const named = { name: `release ${version}`, reference, arch: archOf(medium) };
        return readPayloadLayers(await openImageOf(medium.iso, named, signal), reference, signal);
      }),
    ),
  );

const describe = ({ metadata, adminGates }: PlayedRelease) => ({
  version: metadata.version,
  metadata,
  adminGates,
});

const archOf = ({ index }: PlayedMedium): RpmArchitecture =>
  (index?.release.architecture ?? 'x86_64') as RpmArchitecture;

const NAMES: Readonly<Record<Gate['kind'], string>> = {
  acknowledgement: 'have acknowledged',
  overrides: 'have no override',
  operator: 'have updated the operator',
  conditional: 'have accepted',
  runc: 'do not use runc',
  unknown: 'have acknowledged everything else',
};

/** Texts of payloads must not control the terminal. */
function toStep({ kind, key, from, to, text, command }: Gate): Step {
  const what = key === undefined ? NAMES[kind] : `${NAMES[kind]} ${key}`;
  const reason = `${text.replaceAll(/\s+/g, ' ')} Command: ${command}`;
  const name = `clusters of ${from} ${what} before ${to}`;
  return cannotKnow(PART, toPrintable(name), { reason: toPrintable(reason) });
}
