import type { DocumentProblem } from '../../base/errors.ts';
import type { Report } from '../../shape/report.ts';
import { invalid, unsupported } from '../../shape/report.ts';
import { PLATFORMS, type WrittenInstallConfig } from '../document/site-shapes.ts';

/** Image-based sites have the platform `none` and what goes with it. */
export function checkPlatform(
  report: Report,
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

function checkPlatformName(
  report: Report,
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
  report: Report,
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

function checkPublish(report: Report, publish = 'External'): readonly DocumentProblem[] {
  if (publish === '' || publish === 'External') return [];
  const problem = ['Internal', 'Mixed'].includes(publish)
    ? invalid(publish, `${publish} publish strategy is not supported on "none" platform`)
    : unsupported(publish, ['External', 'Internal', 'Mixed']);
  return [report('publish', problem)];
}

function checkModes(
  report: Report,
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

/** What only clusters of other platforms, or of more machines, can have. */
function checkForeign(
  report: Report,
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
