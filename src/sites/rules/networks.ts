import semver from 'semver';
import type { DocumentProblem } from '../../base/errors.ts';
import { parseCidr, type Cidr } from '../../base/ip-address.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { type ReportProblem, required } from '../../shape/report.ts';
import type { WrittenInstallConfig } from '../documents.ts';
import type { SiteInstallConfig } from '../site.ts';

/* Owns the networks of a cluster with their defaults, and the rule that a machine network is present. */

export type NetworkEntry = {
  readonly path: string;
  readonly text: string;
  /** Absent if the text is not a valid CIDR. */
  readonly cidr?: Cidr;
  /** Length of a node's prefix; only for cluster networks. */
  readonly hostPrefix?: number;
};

/** The networks that are checked: as written, or the defaults if there are no written ones. */
export type SiteNetworks = {
  readonly networkType: string;
  /** Path of the network type, whether it is written or not. */
  readonly networkTypePath: string;
  readonly machine: readonly NetworkEntry[];
  readonly service: readonly NetworkEntry[];
  readonly cluster: readonly NetworkEntry[];
  /** Join network of OVN-Kubernetes, if the user moved it. */
  readonly join?: NetworkEntry;
};

type Written = NonNullable<WrittenInstallConfig['networking']>;

type Seed = {
  /** `X.Y` or `X.Y.Z`; absent if it was not given. */
  readonly seedVersion?: string;
};

/** Fills in the installer's defaults for networks that are not written; reads deprecated keys too. */
export function resolveNetworks(written: Written = {}): SiteNetworks {
  const machine = listMachineNetworks(written);
  const join = readJoinNetwork(written);
  const { networkType = '', type = '' } = written;
  const [key, kind] =
    networkType === '' && type !== '' ? ['type', type] : ['networkType', networkType];
  return {
    networkType: kind === '' ? 'OVNKubernetes' : kind,
    networkTypePath: `networking.${key}`,
    machine:
      machine.length > 0 ? machine : [createEntry('networking.machineNetwork', '10.0.0.0/16')],
    service: listServiceNetworks(written),
    cluster: listClusterNetworks(written),
    ...(join && { join }),
  };
}

/** Only written networks: an absent list stays absent on the ISO. */
export function listMachineNetworks(written: Written = {}): readonly NetworkEntry[] {
  const { machineNetwork = [], machineCIDR = '' } = written;
  if (machineNetwork.length > 0) {
    return machineNetwork.map((entry, at) =>
      createEntry(`networking.machineNetwork[${at}].cidr`, entry?.cidr ?? ''),
    );
  }
  return machineCIDR === '' ? [] : [createEntry('networking.machineCIDR', machineCIDR)];
}

/** Networks that OVN-Kubernetes reserves for itself; the first can be moved. */
const INTERNAL = [
  '100.64.0.0/16',
  '100.88.0.0/16',
  '169.254.0.0/17',
  'fd98::/64',
  'fd97::/64',
  'fd69::/112',
];

/** `INTERNAL` with the join network in the place that the user chose. */
export function listInternalNetworks({ join }: SiteNetworks): readonly Cidr[] {
  const texts = join ? [join.text, ...INTERNAL.slice(1)] : INTERNAL;
  return texts.map(parseCidr).filter((cidr) => cidr !== undefined);
}

/**
 * The node chooses its addresses by its machine network. Without one it stops if it has a proxy,
 * for which it computes noProxy, and from 4.20 on always (lifecycle-agent, post-pivot).
 */
export function checkMachineNetwork(
  report: ReportProblem,
  written: WrittenInstallConfig,
  seed: Seed,
): readonly DocumentProblem[] {
  const why = explainNeed(written, seed);
  return why === undefined ? [] : [reportMissing(report, required(why))];
}

/** Older nodes take the first address that they find. */
export function warnOfMachineNetwork(
  report: ReportProblem,
  written: WrittenInstallConfig,
  seed: Seed,
): readonly DocumentProblem[] {
  const [first, ignored] = listMachineNetworks(written.networking);
  if (first && ignored && readsOneNetwork(seed)) {
    const why = `nodes of a seed ${seed.seedVersion ?? ''} read only the first machine network`;
    return [report(ignored.path, why)];
  }
  if (first || explainNeed(written, seed) !== undefined) return [];
  const problem =
    'no machineNetwork is given: the node cannot tell which of its addresses to use, ' +
    'and stops if its seed is 4.20 or later';
  return [reportMissing(report, problem)];
}

/** The machine networks that go to the node, without a default. */
export function keepMachineNetworks(
  networking: WrittenInstallConfig['networking'],
  seed: Seed,
): Pick<SiteInstallConfig, 'machineNetwork' | 'machineNetworks'> {
  const [first, ...others] = listMachineNetworks(networking).map(({ text }) => text);
  if (first === undefined) return {};
  return {
    machineNetworks: [first, ...others],
    ...(readsOneNetwork(seed) && { machineNetwork: first }),
  };
}

function listServiceNetworks(written: Written): readonly NetworkEntry[] {
  const { serviceNetwork = [], serviceCIDR = '' } = written;
  if (serviceNetwork.length > 0) {
    return serviceNetwork.map((text = '', at) =>
      createEntry(`networking.serviceNetwork[${at}]`, text),
    );
  }
  if (serviceCIDR !== '') return [createEntry('networking.serviceCIDR', serviceCIDR)];
  return [createEntry('networking.serviceNetwork', '172.30.0.0/16')];
}

function listClusterNetworks(written: Written): readonly NetworkEntry[] {
  const { clusterNetwork = [], clusterNetworks = [] } = written;
  const [list, name] =
    clusterNetwork.length > 0
      ? [clusterNetwork, 'clusterNetwork']
      : [clusterNetworks, 'clusterNetworks'];
  if (list.length === 0) {
    return [{ ...createEntry('networking.clusterNetwork', '10.128.0.0/14'), hostPrefix: 23 }];
  }
  return list.map((entry, at) => {
    const network = createEntry(`networking.${name}[${at}].cidr`, entry?.cidr ?? '');
    const width = network.cidr?.family === 6 ? 128 : 32;
    const { hostPrefix = 0, hostSubnetLength = 0 } = entry ?? {};
    const isOld = hostPrefix === 0 && hostSubnetLength !== 0;
    return { ...network, hostPrefix: isOld ? width - hostSubnetLength : hostPrefix };
  });
}

function createEntry(path: string, text: string): NetworkEntry {
  const cidr = parseCidr(text);
  return { path, text, ...(cidr && { cidr }) };
}

function readJoinNetwork({ ovnKubernetesConfig }: Written): NetworkEntry | undefined {
  const { internalJoinSubnet } = objectOrEmpty(objectOrEmpty(ovnKubernetesConfig)['ipv4']);
  const text = typeof internalJoinSubnet === 'string' ? internalJoinSubnet : '';
  const path = 'networking.ovnKubernetesConfig.ipv4.internalJoinSubnet';
  return text === '' ? undefined : createEntry(path, text);
}

/** The first seed whose node reads several machine networks, and compares them with the seed's. */
const FIRST_COMPARED = '4.20.0-0';

/** True if nodes of the seed read `machine_network` alone; false if the seed is not known. */
export function readsOneNetwork({ seedVersion }: Seed): boolean {
  const seed = semver.coerce(seedVersion ?? '');
  return seed !== null && semver.lt(seed, FIRST_COMPARED);
}

function explainNeed(written: WrittenInstallConfig, { seedVersion }: Seed): string | undefined {
  if (hasNetworks(written)) return undefined;
  if (written.proxy) return 'with a proxy the node stops without machineNetwork';
  const seed = semver.coerce(seedVersion ?? '');
  return seed && semver.gte(seed, FIRST_COMPARED)
    ? `nodes of a seed ${seedVersion ?? ''} stop without machineNetwork`
    : undefined;
}

const hasNetworks = ({ networking }: WrittenInstallConfig): boolean =>
  listMachineNetworks(networking).length > 0;

const reportMissing = (report: ReportProblem, problem: string): DocumentProblem =>
  report('networking', problem, {
    shownPath: 'networking.machineNetwork',
    hint: 'write the networks that contain the addresses of the node',
  });
