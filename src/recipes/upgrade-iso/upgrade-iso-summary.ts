import { basename } from 'node:path';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { PourReport } from '../../stages/pour/pour-iso.ts';
import { summarizePayload, type PayloadSummary } from '../live-iso/live-iso-summary.ts';
import { formatUpgradeLabel } from '../../openshift/media/upgrade-medium.ts';
import type { PreparedUpgradeIso, UpgradeIsoRequest } from './upgrade-iso-request.ts';

/** What `sealift plan upgrade-iso` tells. Sizes are bytes. */
export type UpgradeIsoPlan = PayloadSummary & {
  readonly product: 'upgrade-iso';
  readonly volumeId: string;
  readonly path: UpgradePath;
  /** Releases without a signature: a cluster refuses them unless it is forced. */
  readonly unsigned: readonly string[];
  /** Paths of the files beside the ISO. */
  readonly files: readonly string[];
  /** What a person runs when every host has the ISO, in order. */
  readonly commands: readonly string[];
};

/** What is known of an upgrade ISO before it is poured. */
type Announced = UpgradeIsoPlan & {
  readonly output: string;
  readonly unverifiedTls: readonly string[];
  /** What stays on disk for the next build. */
  readonly cache: string;
};

export type UpgradeIsoReport = Announced & PourReport;

export const summarizeUpgradePlan = (prepared: PreparedUpgradeIso): UpgradeIsoPlan => ({
  ...summarizePayload(prepared),
  ...{ product: 'upgrade-iso', path: prepared.path, unsigned: prepared.unsigned },
  volumeId: formatUpgradeLabel(prepared.release),
  files: prepared.sideFiles.map(({ path }) => path),
  commands: listCommands(prepared),
});

export const describeUpgradeIso = (
  request: UpgradeIsoRequest,
  prepared: PreparedUpgradeIso,
): Announced => ({
  ...summarizeUpgradePlan(prepared),
  output: request.output,
  unverifiedTls: request.config.build.insecureRegistries,
  cache: request.workDir,
});

/** A MachineConfig holds the resources and requests each update by itself. */
function listCommands({ path, sideFiles }: PreparedUpgradeIso): readonly string[] {
  const [resources, machineConfig] = sideFiles;
  if (machineConfig) return [`oc apply -f ${basename(machineConfig.path)}`];
  return [
    `oc apply -f ${basename(resources.path)}`,
    ...path.hops.map(({ image }) => `oc adm upgrade --allow-explicit-upgrade --to-image ${image}`),
  ];
}
