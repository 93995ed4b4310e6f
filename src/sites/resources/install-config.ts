import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import type { MadeValue, WrittenPlace } from '../../shape/document.ts';
import { readResourceTexts } from './find.ts';
import { createPaths, INSTALL_PATHS } from './places.ts';
import {
  findPullSecret,
  keepProxy,
  mergeMembers,
  NO_OBJECT,
  placeOverridden,
  parseOverrides,
} from './references.ts';
import type { Conversion, Spec } from './shape.ts';

/* Owns the install-config.yaml of a ClusterInstance, with its pull secret and its overrides. */

/** The networks of clusters whose resource names none. */
const OVN = 'OVNKubernetes';

export function makeInstanceConfig(conversion: Conversion): MadeValue {
  const { spec, flow, document, more } = conversion;
  const install = {
    apiVersion: 'v1',
    baseDomain: spec.baseDomain,
    metadata: { name: spec.clusterName },
    sshKey: unlessEmpty(spec.sshPublicKey),
    pullSecret: findPullSecret(
      conversion,
      { document, path: 'spec.pullSecretRef' },
      spec.pullSecretRef?.name ?? '',
    ),
    proxy: keepProxy(spec.proxy),
    additionalTrustBundle: findBundle(conversion),
    ...(flow === 'agent' ? mapAgentCluster(conversion) : mapSingleNode(spec)),
    ...more?.install,
  };
  const overrides = flow === 'agent' ? readInstanceOverrides(conversion) : {};
  const merged = mergeMembers(withoutUndefined(install), overrides);
  const toPath = createPaths(INSTALL_PATHS);
  const placeOf = (path: string): WrittenPlace => ({ document, path: toPath(path) });
  const isFixed = (path: string): boolean => path === 'networking.networkType';
  const at = { document, path: 'spec.installConfigOverrides' };
  const placeAny = placeOverridden(overrides, at, placeOf);
  return {
    value: mergeMembers(merged, flow === 'agent' ? listFixed(spec) : {}),
    placeOf: (path) => (isFixed(path) ? placeOf(path) : placeAny(path)),
  };
}

/** Members that siteconfig writes over the overrides (internal/controller/clusterinstance/helper.go). */
const listFixed = ({ networkType = OVN, cpuPartitioningMode }: Spec): object => ({
  networking: { networkType },
  ...(cpuPartitioningMode === 'AllNodes' && { cpuPartitioningMode }),
});

/** A node from a seed has the networks of the seed, but its own machine network. */
const mapSingleNode = ({ machineNetwork = [] }: Spec): object => ({
  controlPlane: { name: 'master', replicas: 1 },
  compute: [{ name: 'worker', replicas: 0 }],
  networking: { networkType: OVN, machineNetwork: cidrsOf(machineNetwork) },
  platform: { none: {} },
});

const cidrsOf = (networks: NonNullable<Spec['machineNetwork']>): readonly object[] =>
  networks.map(({ cidr }) => ({ cidr }));

const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

/** The name that Go has for an architecture; undefined for none. */
export const toGoName = (name = ''): string | undefined =>
  name === '' ? undefined : (ARCHITECTURES[name] ?? name);

function mapAgentCluster({ spec, nodes }: Conversion): object {
  const count = (wanted: string): number =>
    nodes.filter(({ role = 'master' }) => role === wanted).length;
  const { clusterNetwork, serviceNetwork, machineNetwork, clusterType } = spec;
  const architecture = ARCHITECTURES[spec.cpuArchitecture ?? ''];
  const arbiters = count('arbiter');
  const pool = withoutUndefined({ architecture });
  return {
    controlPlane: { name: 'master', replicas: count('master'), ...pool },
    compute: [{ name: 'worker', replicas: clusterType === 'SNO' ? 0 : count('worker'), ...pool }],
    ...(arbiters > 0 && { arbiter: { name: 'arbiter', replicas: arbiters, ...pool } }),
    networking: withoutUndefined({
      networkType: spec.networkType ?? OVN,
      machineNetwork: machineNetwork && cidrsOf(machineNetwork),
      clusterNetwork,
      serviceNetwork: serviceNetwork?.map(({ cidr = '' }) => cidr),
    }),
    platform: mapPlatform(spec, count('master')),
    cpuPartitioningMode: spec.cpuPartitioningMode,
  };
}

/** Without a platform, virtual addresses mean bare metal. */
function mapPlatform(
  { platformType = '', apiVIPs = [], ingressVIPs = [] }: Spec,
  masters: number,
): object {
  const guess = masters > 1 && apiVIPs.length > 0 ? 'BareMetal' : 'None';
  const name = (platformType === '' ? guess : platformType).toLowerCase();
  return { [name]: name === 'none' || name === 'external' ? {} : { apiVIPs, ingressVIPs } };
}

const BUNDLE = 'tls-ca-bundle.pem';

function findBundle(conversion: Conversion): string | undefined {
  const { spec, flow, index, document, problems, warnings } = conversion;
  const { name } = spec.caBundleRef ?? {};
  if (name === undefined) return undefined;
  const map = index.find('ConfigMap', name);
  const text = map && readResourceTexts(map).get(BUNDLE);
  if (text === undefined) {
    const why = `ConfigMap "${name}" with ${BUNDLE} is not among the files of the site`;
    problems.push(document.report('spec.caBundleRef', why));
  } else if (flow === 'agent') {
    const why =
      'is in the cluster of this image, but a hub leaves it out of the clusters that agents install';
    warnings.push(document.report('spec.caBundleRef', why));
  }
  return text;
}

/** The text was judged with the others; but it may be JSON of another kind. */
function readInstanceOverrides(conversion: Conversion): Readonly<Record<string, unknown>> {
  const { spec, document, problems } = conversion;
  const { members, why } = parseOverrides(spec.installConfigOverrides ?? '');
  if (why === NO_OBJECT) problems.push(document.report('spec.installConfigOverrides', why));
  warnOfNetworkType(conversion, members);
  return members;
}

function warnOfNetworkType(
  { spec: { networkType = OVN }, document, warnings }: Conversion,
  { networking }: Readonly<Record<string, unknown>>,
): void {
  const { networkType: written = networkType } = objectOrEmpty(networking);
  if (written === networkType) return;
  const why = `networkType of the overrides has no effect: siteconfig writes ${networkType} over it`;
  const hint = 'write networkType into the spec';
  warnings.push(document.report('spec.installConfigOverrides', why, { hint }));
}
