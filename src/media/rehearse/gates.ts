import { withoutUndefined } from '../../base/lists.ts';
import { hasDisabledPolicy } from '../../openshift/node/read-registry.ts';
import { listGatedUpdates } from '../../openshift/release/gated-path.ts';
import { type Gate, type GatedUpdate, listGates, runcOf } from '../../openshift/release/gates.ts';
import { leavesOverrides } from '../../openshift/release/image-policy.ts';
import { explainRefused } from '../../openshift/release/preconditions.ts';
import { compareVersions, isAtLeast, minorAfter } from '../../openshift/release/version.ts';
import { archOf, type CarriedCatalog } from '../named-images.ts';
import type { PlayedMedium } from './played-medium.ts';
import type { PlayedRelease } from './release.ts';
import { cannotKnow, type RehearsedStep, will, willNot } from './step.ts';

const PART = 'upgrade';

/** The release that a cluster leaves, with the requests of its payload as far as they are known. */
export type LeftRelease = GatedUpdate['from'];

type Known = {
  /** Absent if it is not known. */
  readonly left?: LeftRelease | undefined;
  /** All releases of the medium, as far as they can be read. */
  readonly releases: readonly PlayedRelease[];
  readonly catalogs: readonly CarriedCatalog[];
};

/**
 * Updates that an upgrade ISO is for, and the next one of a cluster that a live ISO installs. A person opens
 * each gate on the cluster, so none of them makes a rehearsal fail.
 */
export function rehearseGates(medium: PlayedMedium, known: Known): readonly RehearsedStep[] {
  const { index } = medium;
  if (index?.product === 'upgrade-iso') return rehearsePath(medium, known);
  return index?.product === 'live-iso' ? rehearseNext(medium, known) : [];
}

const byVersion = (a: PlayedRelease, b: PlayedRelease): number =>
  compareVersions(a.metadata.version, b.metadata.version);

function rehearsePath(medium: PlayedMedium, { left, releases, catalogs }: Known) {
  const all = releases.toSorted(byVersion).map(({ metadata, adminGates }) => ({
    version: metadata.version,
    metadata,
    adminGates,
  }));
  // A cluster passes only what is ahead of it; if that is nothing, the step to the last one says so.
  const ahead = all.filter(({ version }) => !left || compareVersions(version, left.version) > 0);
  const passed = ahead.length === 0 ? all.slice(-1) : ahead;
  const hops = passed.map(({ version }) => ({ version, image: '', risks: [] }));
  const updates = listGatedUpdates({
    path: { hops },
    releases: passed,
    ...withoutUndefined({ left }),
  });
  const hasOverrides = leavesOverrides(left?.version, undefined);
  return [
    ...rehearseUpdates(updates, listOf(medium, { updates, catalogs, hasOverrides })),
    cannotKnow(PART, 'the update graph has no risk for the cluster', {
      reason: 'the medium has no update graph: "sealift plan upgrade-iso" asks it',
    }),
  ];
}

/** The cluster leaves the release of the medium, whose payload is there. */
function rehearseNext(
  medium: PlayedMedium,
  { releases, catalogs }: Known,
): readonly RehearsedStep[] {
  const [release] = releases;
  const { files, index } = medium;
  const next = index && minorAfter(index.release.version);
  if (!release || next === undefined) return [];
  const { version } = release.metadata;
  const from = { version, adminGates: release.adminGates };
  const updates = [{ from, to: { version: next, image: '', risks: [] } }];
  const hasOverrides = hasDisabledPolicy(files) && isAtLeast(version, '4.21.0');
  const gates = listOf(medium, { updates, catalogs, hasOverrides });
  return [...rehearseUpdates(updates, gates), ...rehearseMajor(version)];
}

/** From 4.22 on, the next release may be 5.0: it asks for what the next minor version asks for, and for this. */
const rehearseMajor = (version: string): readonly RehearsedStep[] =>
  isAtLeast(version, '4.22.0') && !isAtLeast(version, '5.0.0')
    ? [describeGate(runcOf({ from: { version }, to: { version: '5.0', image: '', risks: [] } }))]
    : [];

const listOf = (
  { index }: PlayedMedium,
  {
    catalogs,
    ...input
  }: Pick<Known, 'catalogs'> & {
    readonly updates: readonly GatedUpdate[];
    readonly hasOverrides: boolean;
  },
): readonly Gate[] =>
  listGates({
    ...input,
    arch: archOf(index),
    bundles: catalogs.flatMap(({ catalog }) => catalog.bundles),
  });

function rehearseUpdates(
  updates: readonly GatedUpdate[],
  gates: readonly Gate[],
): readonly RehearsedStep[] {
  const isGated = ({ from, to }: GatedUpdate): boolean =>
    gates.some((gate) => gate.from === from.version && gate.to === to.version);
  return [
    ...gates.map(describeGate),
    ...updates.flatMap((update): readonly RehearsedStep[] => {
      const { from, to } = update;
      const name = `a cluster begins the update from ${from.version} to ${to.version}`;
      const refused = explainRefused(from.version, to.version);
      if (refused !== undefined) return [willNot(PART, name, { reason: refused })];
      return isGated(update) ? [] : [will(PART, name, { reason: 'no gate is known' })];
    }),
  ];
}

function describeGate(gate: Gate): RehearsedStep {
  const { from, to, text, command, certainty } = gate;
  const reason = `${text.replaceAll(/\s+/g, ' ')} ${certainty === 'unknown' ? 'Ask' : 'Command'}: ${command}`;
  return cannotKnow(PART, `${nameOpen(gate)} before the update from ${from} to ${to}`, { reason });
}

/** A sentence that is true where the gate is open. */
function nameOpen({ kind, key = '' }: Gate): string {
  switch (kind) {
    case 'acknowledgement':
      return `${key} is acknowledged`;
    case 'overrides':
      return 'ClusterVersion has no override';
    case 'operator':
      return 'no operator is installed that stops the cluster';
    case 'conditional':
      return `risk ${key} is accepted`;
    case 'runc':
      return 'no pool uses runc';
    case 'unknown':
      return 'everything that the cluster asks for is acknowledged';
  }
}
