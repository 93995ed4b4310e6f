import { statSync } from 'node:fs';
import type { Digest } from '../base/digest.ts';
import { unlessAbsent } from '../base/disk/files.ts';
import type { Redaction } from '../base/text/redact.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { ConfigRule } from '../config/load.ts';
import type { EventListener } from '../engine/index.ts';
import type { HostNetwork, NetworkTool } from '../nmstate/index.ts';
import type { SelectedCatalog } from '../openshift/catalog/selected.ts';
import type { SeedCluster } from '../openshift/installation/seed.ts';
import type { Overrides } from '../openshift/installer/overrides.ts';
import type { MirrorPlan } from '../openshift/mirror/plan.ts';
import type { RegistryImageChoice } from '../openshift/mirror/server.ts';
import type { UserManifests } from '../openshift/node/manifests.ts';
import type { BaseIso, GivenBaseIso } from '../openshift/release/base-iso.ts';
import type { Gate } from '../openshift/release/gates.ts';
import type { Release } from '../openshift/release/release.ts';
import type { UpgradePath } from '../openshift/release/upgrade-path.ts';
import { type View } from '../shape/document.ts';
import type { FactKind } from '../sites/facts.ts';
import type { Keys } from '../sites/identity/keys.ts';
import type { SiteFlow } from '../sites/resources/shape.ts';
import type { InstallationConfig } from '../sites/installation-rules.ts';
import type { CoreosStream } from './1-resolve/fetch-base-iso.ts';
import type { ImagePolicyCheck } from './2-select/check-image-policy.ts';
import type { LiveLayout } from './4-lay-out/lay-out-live-iso.ts';
import type { Decided } from './build.ts';
import type { AskedIso } from './resolved/describe-asked.ts';
import { LIVE_ISO_RULES } from './rules.ts';

/*
 * The requests of all products, the types of their prepared results, and the rules that refuse an
 * upgrade ISO without asking the network.
 */

export type LiveIsoRequest = AskedIso & {
  readonly config: ApplianceConfig;
  readonly manifests: UserManifests;
  readonly overrides: Overrides;
  readonly hosts?: readonly HostNetwork[];
  readonly ignition: 'installer' | 'embedded';
  readonly baseIso?: GivenBaseIso;
  /** True if the cluster accepts images of OpenShift without a signature; absent: as its release needs. */
  readonly disableImagePolicy?: boolean;
  /** True if a medium from a workspace may lack images that its catalogs name. */
  readonly allowIncomplete: boolean;
};

export type PreparedIso = Decided & {
  readonly release: Release;
  readonly plan: MirrorPlan;
  readonly imagePolicy: ImagePolicyCheck;
  readonly catalogs: readonly SelectedCatalog[];
  /** The files with mirrors that were read, in order: a later one replaces entries. */
  readonly registriesConf: readonly string[];
};

export type PreparedLiveIso = PreparedIso & {
  readonly layout: LiveLayout;
  readonly base: BaseIso;
  /** Warnings about manifests that the cluster cannot take as they are. */
  readonly warnings: readonly string[];
};

export type InstallationIsoRequest = AskedIso & {
  readonly config: InstallationConfig;
  /** Notes on values that could not be checked. */
  readonly notes: readonly string[];
  /** post.sh next to the configuration. */
  readonly postScript?: Uint8Array;
  /** The live ISO to build on, or the CoreOS stream that names it; default: the live ISO of the release. */
  readonly base?: GivenBaseIso | CoreosStream;
  /** Pullspec of a release payload, which has a live ISO, a registry server and the release images. */
  readonly release?: string;
  /** Refuses a release or a live ISO unlike the seed. */
  readonly isStrict?: boolean;
  readonly embed: EmbedRequest;
  readonly build: {
    readonly caBundle?: string;
    readonly registriesConf?: string;
    readonly insecureRegistries: readonly string[];
    /** Milliseconds without a byte after which a host is given up. */
    readonly retryFor?: number;
  };
  /** Extents poured at a time. */
  readonly lanes: number;
};

export type EmbedRequest = {
  readonly seed: boolean;
  /** The images of the release, for precaching. */
  readonly release: boolean;
  /** The images that the seed names for precaching. */
  readonly precached: boolean;
  /** Further images, by tag or digest. */
  readonly images: readonly string[];
  /** The registry server; default: the server of the release. */
  readonly registryImage?: string;
};

export type EmbeddedImages = { readonly plan: MirrorPlan; readonly server: RegistryImageChoice };

/** Everything an upgrade ISO is made from: the parts of an appliance's configuration that it can carry. */
export type UpgradeIsoRequest = AskedIso &
  Pick<LiveIsoRequest, 'config'> & {
    /** Folder of the other files: next to the ISO, or the working directory for a device or an object. */
    readonly folder: string;
    /** The version of the cluster; absent: the release alone is carried. */
    readonly from?: string;
    /** True if a MachineConfig is written that upgrades the cluster automatically. */
    readonly machineConfig: boolean;
    /** True if MachineConfigs are written that bring hosts everything they need to take the ISO. */
    readonly prepareHosts: boolean;
    /** Keys of gates and names of risks that a person accepts for the MachineConfig. */
    readonly acknowledged: readonly string[];
  };

export type SideFile = {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
};

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
  /** Reasons for which clusters refuse an update of the path, or wait for a person. */
  readonly gates: readonly Gate[];
  /** Keys and names that a person has accepted. */
  readonly acknowledged: readonly string[];
  readonly sideFiles: SideFiles;
  /** All on the medium, in the order of the path. */
  readonly releases: readonly Release[];
};

export type SitesRequest = {
  /** Folder, archive or table; absolute. */
  readonly sites: string;
  /** Working directory; paths below it are shown relative to it. */
  readonly cwd: string;
  /** Folder that a table fills; absolute. */
  readonly template?: string;
  /** True if the folder is one site, regardless of its name. */
  readonly dropIn: boolean;
  /** True if that site is a cluster that agents install. */
  readonly isForAgents?: boolean;
  /** Flow of SiteConfigs, and of ClusterInstances whose templates are a team's own. */
  readonly flow?: SiteFlow;
  /** Seconds since 1970: anything that is overdue by then causes a warning. */
  readonly epoch: number;
  /** True if unknown keys of install-config.yaml only cause a warning. */
  readonly isLenient?: boolean;
  /** Version of the seed that the sites are installed from, if it is known. */
  readonly seedVersion?: string;
  /** The cluster that this seed was made from, if it is known. */
  readonly seed?: SeedCluster | undefined;
  /** Environment in which `env:NAME` in inputs is looked up. */
  readonly env?: NodeJS.ProcessEnv;
  /** Masks pull secrets. */
  readonly redaction: Redaction;
  /** Facts that several sites may have in common; they cause a warning. */
  readonly shared?: ReadonlySet<FactKind>;
  /** Files that an earlier producer left: of the only site, or with a folder for each site. */
  readonly retainFrom?: string;
  /** Kubeconfig of the only site, which the earlier producer made. */
  readonly kubeconfig?: string;
};

/** Replaces the name of a site if there is only one. */
export const ONLY_SITE = '';

export type ConfigIsosRequest = SitesRequest & {
  /** Directory of everything that is written; absolute. */
  readonly out: string;
  /** Threads that make keys. */
  readonly jobs: number;
  /** True if every site gets a new generation of keys, ids and password. */
  readonly rotate: boolean;
  /** True if files that no build made are replaced; inputs never are. */
  readonly force?: boolean;
  /** Path of the live ISO that the hosts of sites boot which agents install. */
  readonly medium?: string;
  /** Names of sites that get a new identity, even if the previous one is lost. */
  readonly newIdentities?: ReadonlySet<string>;
  /** Numbers of generations to use again, by the names of sites or `ONLY_SITE`. */
  readonly useGenerations?: ReadonlyMap<string, number>;
};

export type SiteTools = {
  readonly emit: EventListener;
  /** Milliseconds, for durations. */
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Sees every network configuration; without it, a warning says that it did not. */
  readonly nmstate?: NetworkTool | undefined;
};

export type ConfigIsosTools = SiteTools & {
  readonly keys: Keys;
  /** Digest of the running program; default: the digest it was built with. */
  readonly program?: Digest;
  /** True if another build of the output directory is waited for. */
  readonly wait?: boolean;
};

/** Settings that make hosts unreachable for any upgrade ISO, with the reasons. */
const REFUSED = [
  {
    path: 'enableInteractiveFlow',
    problem: 'clusters of interactive media cannot be upgraded from an upgrade ISO',
    reason: 'their hosts only know the registry localhost:22625; use a mirror registry of the site',
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

/** Everything that the stages of an upgrade ISO would refuse without asking the network. */
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

/**
 * Lists the paths that are read and never written. Leaves out the folder of the only site, which
 * is also the output folder, and a folder of earlier outputs: the files in it may be replaced when
 * their identity is in the state.
 */
export const listInputs = ({
  sites,
  template,
  kubeconfig,
  retainFrom,
  dropIn,
}: SitesRequest): readonly string[] =>
  [dropIn ? undefined : sites, template, kubeconfig, ifFile(retainFrom)].filter(
    (path) => path !== undefined,
  );

const ifFile = (path: string | undefined): string | undefined =>
  path !== undefined && unlessAbsent(() => statSync(path))?.isFile() ? path : undefined;
