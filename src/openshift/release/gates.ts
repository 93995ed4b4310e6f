import { groupBy, objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import type { RpmArchitecture } from './bundle.ts';
import { readManifests } from './manifests.ts';
import type { UpgradeRisk } from './update-graph.ts';
import { compareVersions, minorAfter, minorOf } from './version.ts';

/*
 * The reasons for which a cluster refuses an update, or waits for a person first, as far as they are known
 * before the visit. In: the releases on the path and the contents of the medium. Out: plain JSON.
 */

/** A reason for which a cluster does not begin an update. Plain JSON. */
export type Gate = {
  readonly kind: 'acknowledgement' | 'overrides' | 'operator' | 'conditional' | 'runc' | 'unknown';
  /**
   * `certain`: every cluster on this path has it. `possible`: see `text`. `unknown`: the cluster must be
   * asked.
   */
  readonly certainty: 'certain' | 'possible' | 'unknown';
  /** The key in `admin-acks` that opens it, or the name of a risk. */
  readonly key?: string;
  /** Version that the cluster leaves; `X.Y` if it may be any release of that minor version. */
  readonly from: string;
  readonly to: string;
  /** The reason. Gates of a payload have the payload's own words. */
  readonly text: string;
  readonly url?: string;
  readonly command: string;
};

/** Data of the ConfigMap `admin-gates` of a payload: reasons by key. Plain JSON. */
export type AdminGates = Readonly<Record<string, string>>;

/** One update on the path of a cluster. */
export type GatedUpdate = {
  readonly from: {
    /** `X.Y.Z`, or `X.Y` for any release of a minor version. */
    readonly version: string;
    /** Absent if the payload of this release is not known. */
    readonly adminGates?: AdminGates;
    /** The reason why it is not known. */
    readonly problem?: string;
  };
  readonly to: {
    readonly version: string;
    /** Reference by digest. */
    readonly image: string;
    readonly risks: readonly UpgradeRisk[];
  };
};

/** A bundle of an operator that clusters may have installed. */
export type GatedBundle = {
  readonly package: string;
  readonly name: string;
  /** Value of its property `olm.maxOpenShiftVersion`, as written. */
  readonly maxOpenShiftVersion?: string;
};

export type GateInput = {
  /** In the order of the path. */
  readonly updates: readonly GatedUpdate[];
  readonly arch: RpmArchitecture;
  readonly bundles: readonly GatedBundle[];
  /** True if the cluster was installed without the image policy, which leaves an override. */
  readonly hasOverrides: boolean;
};

/** Gates that the cluster version operator regards (`pkg/risk/adminack`), for ConfigMap keys; POSIX ERE. */
export const ADMIN_GATE_PATTERN = '^ack-([4-5][.][0-9]+)-[._a-zA-Z0-9][-._a-zA-Z0-9]*$';

/** The minor version whose clusters a key stops; undefined for a key without effect. */
export const minorOfGate = (key: string): string | undefined =>
  new RegExp(ADMIN_GATE_PATTERN).exec(key)?.[1];

/** Command that shows what a cluster asks for. */
const ASK_FOR_GATES = 'oc -n openshift-config-managed get cm admin-gates -o yaml';

const LOOK = "oc get clusterversion version -o jsonpath='{.spec.overrides}'";
const REMOVE = `oc patch clusterversion version --type=json -p '[{"op":"remove","path":"/spec/overrides"}]'`;
const COST =
  'while ClusterVersion has an override, its cluster refuses updates to another minor version';

/** The override of a cluster without image policy: the command that removes it, and what it costs. */
export const OVERRIDES = {
  remove: REMOVE,
  reason: `The cluster was installed without its image policy, which leaves an override: ${COST}. Look at the list first (${LOOK}). Once it is removed, nodes ask for signatures of OpenShift's images.`,
  warning: `the image policy is left out by an override: ${COST}. Before such an update, look at the list (${LOOK}), and remove it: ${REMOVE}`,
};

/** By key, for self-managed clusters. */
export function readAdminGates(files: ReadonlyMap<string, Uint8Array>): AdminGates {
  const named = [...files].filter(([, bytes]) => Buffer.from(bytes).includes(ADMIN_GATES));
  const texts = readManifests(new Map(named), ['ConfigMap'])
    .filter(({ document }) => objectOrEmpty(document['metadata'])['name'] === ADMIN_GATES)
    .flatMap(({ document }) => Object.entries(objectOrEmpty(document['data'])));
  return Object.fromEntries(
    texts.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

const ADMIN_GATES = 'admin-gates';

/**
 * In the order of the path. The cluster version operator looks at gates before updates to another minor
 * version only; the risks of the update graph count for every update.
 */
export function listGates(input: GateInput): readonly Gate[] {
  const passed: string[] = [];
  return input.updates.flatMap((update) => {
    const isMinor = minorOf(update.from.version) !== minorOf(update.to.version);
    const gates = isMinor ? listOfMinor(update, input, passed) : [];
    if (isMinor) passed.push(update.from.version);
    return [...gates, ...listRisks(update)];
  });
}

/** @param passed versions that clusters have left before, by updates to another minor version */
function listOfMinor(
  update: GatedUpdate,
  input: GateInput,
  passed: readonly string[],
): readonly Gate[] {
  return [
    ...listAcknowledgements(update, input),
    ...(input.hasOverrides && passed.length === 0 ? [overridesOf(update)] : []),
    ...listOperators(update, input, passed),
    ...(majorOf(update.from.version) < 5 && majorOf(update.to.version) >= 5
      ? [runcOf(update)]
      : []),
  ];
}

const majorOf = (version: string): number => Number(version.split('.')[0]);

const between = ({ from, to }: GatedUpdate): Pick<Gate, 'from' | 'to'> => ({
  from: from.version,
  to: to.version,
});

/** Keys of the payload, then those that the machine config operator adds on a running cluster. */
function listAcknowledgements(update: GatedUpdate, { arch }: GateInput): readonly Gate[] {
  const { version, adminGates, problem } = update.from;
  const minor = minorOf(version);
  const listed = Object.entries(adminGates ?? {})
    .filter(([key, text]) => minorOfGate(key) === minor && text !== '')
    .map(([key, text]) => acknowledge(update, { key, text: text.trim(), certainty: 'certain' }));
  const added = RUN_TIME_GATES.filter(({ key }) => minorOfGate(key) === minor)
    .filter(({ key, onlyOn = arch }) => onlyOn === arch && !Object.hasOwn(adminGates ?? {}, key))
    .map(({ key, text, certainty }) => acknowledge(update, { key, text, certainty }));
  return [...listed, ...added, ...(adminGates ? [] : [unknownOf(update, problem)])];
}

const acknowledge = (
  update: GatedUpdate,
  gate: Required<Pick<Gate, 'key' | 'text' | 'certainty'>>,
): Gate => ({
  kind: 'acknowledgement',
  ...between(update),
  ...gate,
  ...withoutUndefined({ url: /https:\/\/\S*[^\s.,;)]/.exec(gate.text)?.[0] }),
  command: `oc -n openshift-config patch cm admin-acks --type=merge --patch '{"data":{"${gate.key}":"true"}}'`,
});

/** The reason is shown, because another registry or network may know the payload. */
const unknownOf = (update: GatedUpdate, problem = 'its payload is not known'): Gate => ({
  kind: 'unknown',
  certainty: 'unknown',
  ...between(update),
  text: `what release ${update.from.version} asks to acknowledge cannot be known: ${problem}`,
  command: ASK_FOR_GATES,
});

/**
 * Added by the machine config operator at run time, by its branches; no payload has them. A cluster has
 * mirrors if its hosts have used a medium of ours.
 */
const RUN_TIME_GATES: readonly (Required<Pick<Gate, 'key' | 'text' | 'certainty'>> & {
  readonly onlyOn?: RpmArchitecture;
})[] = [
  {
    key: 'ack-4.18-boot-image-opt-out-in-4.19',
    certainty: 'possible',
    text: '4.19 begins to update the boot images of machine sets. Asked on AWS and Google Cloud, unless a MachineConfiguration says whether to.',
  },
  {
    key: 'ack-4.18-aarch64-bootloader-4.19',
    certainty: 'certain',
    onlyOn: 'aarch64',
    text: 'Boot images of aarch64 nodes may be too old for 4.19, see https://access.redhat.com/solutions/7119697',
  },
  {
    key: 'ack-4.20-sigstore-in-4.21',
    certainty: 'certain',
    text: 'From 4.21 on, nodes take release images only with a sigstore signature, also from mirrors. The registry that they pull from must have them, see https://docs.redhat.com/en/documentation/openshift_container_platform/4.20/html/nodes/nodes-sigstore-using.html',
  },
  {
    key: 'ack-4.21-boot-image-opt-out-in-4.22',
    certainty: 'possible',
    text: '4.22 begins to update the boot images of machine sets. Asked on Azure and vSphere, unless a MachineConfiguration says whether to.',
  },
];

const overridesOf = (update: GatedUpdate): Gate => ({
  kind: 'overrides',
  certainty: 'certain',
  ...between(update),
  text: OVERRIDES.reason,
  command: OVERRIDES.remove,
});

/** The gate in front of the first release of which the nodes have no runc. */
export const runcOf = (update: GatedUpdate): Gate => ({
  kind: 'runc',
  certainty: 'possible',
  ...between(update),
  text: 'RHEL CoreOS 10 has no runc: a pool that uses it is refused. Change each ContainerRuntimeConfig with defaultRuntime runc to crun, and remove default_runtime = "runc" from MachineConfigs for /etc/crio/crio.conf.d.',
  command:
    'oc get containerruntimeconfigs -o custom-columns=NAME:.metadata.name,RUNTIME:.spec.containerRuntimeConfig.defaultRuntime',
});

/**
 * One for each package with bundles that OLM stops. A bundle stopped earlier on the path is updated by then.
 */
function listOperators(
  update: GatedUpdate,
  { bundles }: GateInput,
  passed: readonly string[],
): readonly Gate[] {
  const stops = (bundle: GatedBundle): boolean => isStopped(bundle, update.from.version);
  return [...groupBy(bundles, (bundle) => bundle.package)].flatMap(([name, all]) => {
    const stopped = all
      .filter(stops)
      .filter((bundle) => !passed.some((version) => isStopped(bundle, version)));
    if (stopped.length === 0) return [];
    const way = all.find((bundle) => !stops(bundle))?.name;
    return [operatorOf(update, { name, stopped, ...withoutUndefined({ way }) })];
  });
}

const MOST_NAMED = 3;

function operatorOf(
  update: GatedUpdate,
  found: { readonly name: string; readonly stopped: readonly GatedBundle[]; readonly way?: string },
): Gate {
  const { name, stopped, way } = found;
  const named = stopped
    .slice(0, MOST_NAMED)
    .map((bundle) => `${bundle.name} (up to ${bundle.maxOpenShiftVersion ?? ''})`)
    .join(', ');
  const more = stopped.length > MOST_NAMED ? ` and ${stopped.length - MOST_NAMED} more` : '';
  const hint =
    way === undefined
      ? 'No bundle on the medium goes further: find one in a later catalog, or remove the operator.'
      : `Update the operator first: ${way} goes further and is on the medium.`;
  return {
    kind: 'operator',
    certainty: 'possible',
    ...between(update),
    text: `Operator ${name} stops the update if one of these bundles is installed: ${named}${more}. ${hint}`,
    command: 'oc get subscriptions.operators.coreos.com,clusterserviceversions --all-namespaces',
  };
}

/**
 * OLM compares with the minor version after the cluster's, and stops for a value that it cannot read
 * (operator-lifecycle-manager, `pkg/controller/operators/openshift`).
 */
function isStopped({ maxOpenShiftVersion: most }: GatedBundle, version: string): boolean {
  if (most === undefined) return false;
  const [, major, minor = '0'] = /^v?(\d+)(?:\.(\d+))?(?:\.0+)?$/.exec(most) ?? [];
  if (major === undefined) return true;
  return (
    compareVersions(`${Number(major)}.${Number(minor)}.0`, `${minorAfter(version) ?? ''}.0`) < 0
  );
}

const listRisks = (update: GatedUpdate): readonly Gate[] =>
  update.to.risks.map(({ name, message, url }) => ({
    kind: 'conditional',
    certainty: 'possible',
    key: name,
    ...between(update),
    text: `${message} A cluster that has an update service refuses the update until this risk is accepted; others do not ask.`,
    ...(url !== '' && { url }),
    command: `oc adm upgrade --allow-explicit-upgrade --allow-not-recommended --to-image ${update.to.image}`,
  }));
