import type { Release } from '../../openshift/release/release.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { IsoRequest } from '../build-iso.ts';
import type { LiveIsoRequest, PreparedIso } from '../live-iso/live-iso-request.ts';
import type { View } from '../../shape/document.ts';
import type { ConfigRule } from '../../config/load.ts';
import { LIVE_ISO_RULES } from '../live-iso/live-iso-rules.ts';

/** Everything an upgrade ISO is made from: what of an appliance's configuration it can carry. */
export type UpgradeIsoRequest = IsoRequest &
  Pick<LiveIsoRequest, 'config' | 'signatures' | 'epoch'> & {
    /** Where the other files are written: beside the ISO, or of a device or an object in the working directory. */
    readonly folder: string;
    /** The version of the cluster; absent: the release alone is carried. */
    readonly from?: string;
    /** Whether a MachineConfig is written that upgrades the cluster by itself. */
    readonly machineConfig: boolean;
    /** Whether MachineConfigs are written that bring hosts what they need to take the ISO. */
    readonly prepareHosts: boolean;
  };

/** A file that is written beside the ISO. */
export type SideFile = {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
};

/** The files that are written beside the ISO. */
export type SideFiles = {
  /** `upgrade-VERSION.yaml` */
  readonly resources: SideFile;
  /** `upgrade-machine-config-VERSION.yaml` */
  readonly machineConfig?: SideFile;
  /** `upgrade-hosts.yaml` */
  readonly hosts?: SideFile;
};

export type PreparedUpgradeIso = PreparedIso & {
  readonly path: UpgradePath;
  readonly sideFiles: SideFiles;
  /** All on the medium, in the order of the path. */
  readonly releases: readonly Release[];
};

/** What makes hosts that no upgrade ISO can reach, and why. */
const REFUSED = [
  {
    path: 'enableInteractiveFlow',
    problem: 'clusters of interactive media cannot be upgraded from an upgrade ISO',
    reason: 'their hosts know no registry but localhost:22625; use a mirror registry of the site',
  },
  {
    path: 'skipLocalRegistry',
    problem: 'hosts without the local registry cannot be upgraded from an upgrade ISO',
    reason: 'they have neither the registry image nor the name of the registry',
  },
  {
    path: 'stopLocalRegistry',
    problem: 'hosts that stop the local registry cannot be upgraded from an upgrade ISO',
    reason: 'their clusters have no mirrors that lead to it any more',
  },
] as const;

/** Everything that the stages of an upgrade ISO would refuse without having asked the network. */
export const UPGRADE_ISO_RULES: readonly ConfigRule[] = [
  ...LIVE_ISO_RULES,
  refuseUnreachable,
  refuseMirrorPath,
];

function refuseUnreachable(view: View): ReturnType<ConfigRule> {
  const problems = REFUSED.filter(({ path }) => view.flag(path) === true).map(
    ({ path, problem, reason }) => view.report(path, problem, { hint: reason }),
  );
  return { problems, notes: [] };
}

function refuseMirrorPath({ text, report }: View): ReturnType<ConfigRule> {
  if (text('mirrorPath') === undefined) return { problems: [], notes: [] };
  const problem = 'an upgrade ISO cannot be built from an existing mirror yet';
  const hint = 'remove "mirrorPath"; images are fetched from their registries';
  return { problems: [report('mirrorPath', problem, { hint })], notes: [] };
}
