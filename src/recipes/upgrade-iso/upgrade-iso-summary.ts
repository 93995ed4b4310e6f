import { basename } from 'node:path';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import { describeOutput, type DescribedOutput } from '../../outputs/file.ts';
import type { MadeIso } from '../made-iso.ts';
import { describeSignatures } from '../verified-release.ts';
import { summarizePayload, type PayloadSummary } from '../live-iso/live-iso-summary.ts';
import { formatUpgradeLabel } from '../../media/tree/upgrade-medium.ts';
import { listSideFiles } from './side-files.ts';
import type { PreparedUpgradeIso, SideFile, UpgradeIsoRequest } from './upgrade-iso-request.ts';

/** What `sealift plan upgrade-iso` tells. Sizes are bytes. */
export type UpgradeIsoPlan = PayloadSummary & {
  readonly product: 'upgrade-iso';
  readonly volumeId: string;
  readonly path: UpgradePath;
  /** Paths of the files beside the ISO. */
  readonly files: readonly string[];
  /** What a person runs before, so that hosts can take the ISO. */
  readonly preparation: readonly string[];
  /** What a person runs when every host has the ISO, in order. */
  readonly commands: readonly string[];
};

/** What is known of an upgrade ISO before it is poured. */
type Announced = UpgradeIsoPlan &
  DescribedOutput & {
    readonly unverifiedTls: readonly string[];
    /** What stays on disk for the next build. */
    readonly cache: string;
  };

export type UpgradeIsoReport = Announced & MadeIso;

export const summarizeUpgradePlan = (prepared: PreparedUpgradeIso): UpgradeIsoPlan => ({
  ...summarizePayload(prepared),
  product: 'upgrade-iso',
  path: prepared.path,
  signatures: describeSignatures(prepared.releases),
  volumeId: formatUpgradeLabel(prepared.release),
  files: listSideFiles(prepared.sideFiles).map(({ path }) => path),
  preparation: [prepared.sideFiles.hosts].flatMap((file) => (file ? [formatApply(file)] : [])),
  commands: listCommands(prepared),
});

export const describeUpgradeIso = (
  request: UpgradeIsoRequest,
  prepared: PreparedUpgradeIso,
): Announced => ({
  ...summarizeUpgradePlan(prepared),
  ...describeOutput(request),
  unverifiedTls: request.config.build.insecureRegistries,
  cache: request.workDir,
});

/** A MachineConfig holds the resources and requests each update by itself. */
function listCommands({
  path,
  sideFiles: { resources, machineConfig },
}: PreparedUpgradeIso): readonly string[] {
  if (machineConfig) return [formatApply(machineConfig)];
  return [
    formatApply(resources),
    ...path.hops.map(({ image }) => `oc adm upgrade --allow-explicit-upgrade --to-image ${image}`),
  ];
}

const formatApply = ({ path }: SideFile): string => `oc apply -f ${basename(path)}`;
