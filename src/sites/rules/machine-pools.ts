import type { DocumentProblem } from '../../base/errors.ts';
import type { AgentRole } from '../../openshift/agent/agent-cluster.ts';
import { type ReportProblem, invalid, required, unsupported } from '../../shape/report.ts';
import { type WrittenInstallConfig, PLATFORMS } from '../documents.ts';

/* Owns the rules of machine pools and of the platform. */

type Pool = Omit<NonNullable<WrittenInstallConfig['controlPlane']>, 'fencing'>;

/** Requires a single node: one control plane machine that also runs the workloads. */
export function checkMachinePools(
  report: ReportProblem,
  { controlPlane = {}, compute = [] }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  return [
    ...checkReplicas(report, controlPlane, compute),
    ...checkPool(report, 'controlPlane', controlPlane),
    ...checkPoolName(report, 'controlPlane', {
      name: controlPlane.name ?? 'master',
      names: ['master'],
    }),
    ...compute.flatMap((pool = {}, index) => [
      ...checkPool(report, `compute[${index}]`, pool),
      ...checkPoolName(report, `compute[${index}]`, {
        name: pool.name ?? '',
        names: ['worker', 'edge'],
      }),
      ...checkSame(report, `compute[${index}]`, { pool, controlPlane }),
      ...checkDuplicate(report, compute, index),
    ]),
  ];
}

/** Warns of values of a pool that have no effect on a node installed from a seed. */
export function warnOfMachinePools(
  report: ReportProblem,
  { controlPlane, compute = [] }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  const pools = [
    ...(controlPlane ? [['controlPlane', controlPlane] as const] : []),
    ...compute.map((pool, index) => [`compute[${index}]`, pool ?? {}] as const),
  ];
  return pools.flatMap(([path, { hyperthreading = 'Enabled', name, osImageStream, platform }]) => [
    ...(name === 'edge' ? [report(`${path}.name`, refusedByInstaller('the pool edge'))] : []),
    ...warnOfStream(report, `${path}.osImageStream`, osImageStream),
    ...(hyperthreading === 'Enabled'
      ? []
      : [report(`${path}.hyperthreading`, `hyperthreading ${hyperthreading} is ignored`)]),
    ...(isFilled(platform) ? [report(`${path}.platform`, 'platform is ignored')] : []),
  ]);
}

const refusedByInstaller = (what: string): string =>
  `openshift-install 4.22 refuses ${what}, which has no effect on the node`;

/** The stream of the operating system is the seed's. */
export const warnOfStream = (
  report: ReportProblem,
  path: string,
  stream: string | undefined,
): readonly DocumentProblem[] =>
  (stream ?? '') === '' ? [] : [report(path, refusedByInstaller('osImageStream'))];

/** Image-based sites have the platform `none` and the values that go with it. */
export function checkPlatform(
  report: ReportProblem,
  written: WrittenInstallConfig,
): readonly DocumentProblem[] {
  return [
    ...checkPlatformName(report, written.platform),
    ...checkFeatures(report, written),
    ...checkPublish(report, written.publish),
    ...checkModes(report, written),
    ...checkForeign(report, written),
  ];
}

const DEFAULT_REPLICAS = 3;

type Pools = {
  readonly controlPlane?: Pick<Pool, 'replicas'>;
  readonly arbiter?: Pick<Pool, 'replicas'>;
  readonly compute?: readonly (Pick<Pool, 'name' | 'replicas'> | undefined)[];
};

/** Nodes of each role, with the installer's defaults (pkg/types/defaults/machinepools.go). */
export function countNodes({
  controlPlane,
  arbiter,
  compute = [],
}: Pools): Readonly<Record<AgentRole, number>> {
  const pools = compute.length === 0 ? [undefined] : compute;
  const countWorkers = ({ name, replicas }: Pick<Pool, 'name' | 'replicas'> = {}): number =>
    replicas ?? (name === 'edge' ? 0 : DEFAULT_REPLICAS);
  return {
    master: controlPlane?.replicas ?? DEFAULT_REPLICAS,
    arbiter: arbiter ? (arbiter.replicas ?? 0) : 0,
    worker: pools.reduce((sum, pool) => sum + countWorkers(pool), 0),
  };
}

function checkReplicas(
  report: ReportProblem,
  controlPlane: Pool,
  compute: readonly (Pool | undefined)[],
): readonly DocumentProblem[] {
  const { master: masters, worker: workers } = countNodes({ controlPlane, compute });
  const few =
    'Only Single Node OpenShift (SNO) is supported, total number of ControlPlane.Replicas must be 1. ' +
    `Found ${masters}`;
  const none =
    'Total number of Compute.Replicas must be 0 when ControlPlane.Replicas is 1 for platform none. ' +
    `Found ${workers}`;
  return [
    ...(masters === 1
      ? []
      : [report('controlPlane.replicas', required(few), { shownPath: 'ControlPlane.Replicas' })]),
    ...(workers === 0
      ? []
      : [
          report(compute.length === 1 ? 'compute[0].replicas' : 'compute', required(none), {
            shownPath: 'Compute.Replicas',
            hint: compute.length === 0 ? 'write one pool "worker" with replicas: 0' : undefined,
          }),
        ]),
  ];
}

const ARCHITECTURES = ['amd64', 'arm64', 'ppc64le', 's390x'];

export function checkPool(
  report: ReportProblem,
  path: string,
  pool: Pool,
): readonly DocumentProblem[] {
  const { hyperthreading = 'Enabled', architecture = 'amd64', replicas = 0 } = pool;
  const modes = ['Disabled', 'Enabled'];
  return [
    ...(replicas < 0
      ? [
          report(
            `${path}.replicas`,
            invalid(String(replicas), 'number of replicas must not be negative'),
          ),
        ]
      : []),
    ...(modes.includes(hyperthreading)
      ? []
      : [report(`${path}.hyperthreading`, unsupported(hyperthreading, modes))]),
    ...(ARCHITECTURES.includes(architecture)
      ? []
      : [report(`${path}.architecture`, unsupported(architecture, ARCHITECTURES))]),
  ];
}

export function checkPoolName(
  report: ReportProblem,
  path: string,
  { name, names }: { readonly name: string; readonly names: readonly string[] },
): readonly DocumentProblem[] {
  return names.includes(name) ? [] : [report(`${path}.name`, unsupported(name, names))];
}

/** A pool without an architecture has the architecture of the control plane. */
function checkSame(
  report: ReportProblem,
  path: string,
  { pool, controlPlane }: { readonly pool: Pool; readonly controlPlane: Pool },
): readonly DocumentProblem[] {
  const { architecture } = pool;
  if (architecture === undefined || architecture === (controlPlane.architecture ?? 'amd64'))
    return [];
  const why =
    'heteregeneous multi-arch is not supported; compute pool architecture must match control plane';
  return [report(`${path}.architecture`, invalid(architecture, why))];
}

export function checkDuplicate(
  report: ReportProblem,
  compute: readonly (Pool | undefined)[],
  index: number,
): readonly DocumentProblem[] {
  const name = compute[index]?.name;
  const isTwice = name !== undefined && compute.slice(0, index).some((pool) => pool?.name === name);
  return isTwice ? [report(`compute[${index}].name`, `Duplicate value: "${name}"`)] : [];
}

const isFilled = (value: Pool['platform']): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

function checkPlatformName(
  report: ReportProblem,
  platform: WrittenInstallConfig['platform'] = {},
): readonly DocumentProblem[] {
  const names = Object.entries(platform)
    .filter(([, value]) => value !== null)
    .map(([name]) => name);
  if (names.length === 0) {
    const problem = invalid('', `must specify one of the platforms (${PLATFORMS.join(', ')})`);
    return [report('platform', problem, { hint: 'write none: {} below platform' })];
  }
  const foreign = names.filter((name) => name !== 'none');
  const many = invalid(names.join(', '), 'must only specify a single type of platform');
  return [
    ...(names.length > 1 ? [report('platform', many)] : []),
    ...foreign.map((name) =>
      report(`platform.${name}`, unsupported(name, ['none']), { shownPath: 'Platform' }),
    ),
  ];
}

function checkFeatures(
  report: ReportProblem,
  { featureSet = '', featureGates = [] }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  const gates = 'Forbidden: featureGates can only be used with the CustomNoUpgrade feature set';
  return [
    ...(featureSet === ''
      ? []
      : [report('featureSet', unsupported(featureSet, ['']), { shownPath: 'FeatureSet' })]),
    ...(featureGates.length === 0 ? [] : [report('featureGates', gates)]),
  ];
}

export function checkPublish(
  report: ReportProblem,
  publish = 'External',
  platform = 'none',
): readonly DocumentProblem[] {
  if (publish === '' || publish === 'External') return [];
  const problem = ['Internal', 'Mixed'].includes(publish)
    ? invalid(publish, `${publish} publish strategy is not supported on "${platform}" platform`)
    : unsupported(publish, ['External', 'Internal', 'Mixed']);
  return [report('publish', problem)];
}

function checkModes(
  report: ReportProblem,
  { credentialsMode = '', cpuPartitioningMode = '', bootstrapInPlace }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  const modes = ['None', 'AllNodes'];
  const why = 'cannot be set when using the "none" platform';
  const disk =
    'Required value: installationDisk must be set the target disk drive for the installation';
  return [
    ...(credentialsMode === '' ? [] : [report('credentialsMode', invalid(credentialsMode, why))]),
    ...(cpuPartitioningMode === '' || modes.includes(cpuPartitioningMode)
      ? []
      : [report('cpuPartitioningMode', unsupported(cpuPartitioningMode, modes))]),
    ...(bootstrapInPlace && (bootstrapInPlace.installationDisk ?? '') === ''
      ? [report('bootstrapInPlace.installationDisk', disk)]
      : []),
  ];
}

/** Refuses keys that only clusters of other platforms, or of more machines, can have. */
function checkForeign(
  report: ReportProblem,
  { operatorPublishingStrategy: strategy, arbiter, networking }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  const mtu = networking?.clusterNetworkMTU ?? 0;
  const publishing =
    'operator publishing strategy is only allowed with mixed publishing strategy installs';
  const deployment = 'number of controlPlane replicas must be at least 2 for arbiter deployments';
  return [
    ...(strategy === undefined || strategy === null
      ? []
      : [report('operatorPublishingStrategy', invalid('External', publishing))]),
    ...(arbiter ? [report('arbiter', invalid('1', deployment))] : []),
    ...(mtu === 0
      ? []
      : [
          report(
            'networking.clusterNetworkMTU',
            invalid(String(mtu), 'cluster network MTU is allowed only in AWS deployments'),
          ),
        ]),
  ];
}
