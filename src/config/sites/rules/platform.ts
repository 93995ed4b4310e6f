import type { ConfigProblem } from '../../problem.ts';
import { invalid, unsupported, type Report } from '../report.ts';
import type { WrittenInstallConfig } from '../site-shapes.ts';

const PLATFORMS = [
  'aws',
  'azure',
  'baremetal',
  'external',
  'gcp',
  'ibmcloud',
  'none',
  'nutanix',
  'openstack',
  'powervc',
  'powervs',
  'vsphere',
];

/** Image-based sites have the platform `none` and what goes with it. */
export function checkPlatform(
  report: Report,
  written: WrittenInstallConfig,
): readonly ConfigProblem[] {
  return [
    ...checkPlatformName(report, written.platform),
    ...checkFeatures(report, written),
    ...checkPublish(report, written.publish),
    ...checkModes(report, written),
  ];
}

function checkPlatformName(
  report: Report,
  platform: WrittenInstallConfig['platform'],
): readonly ConfigProblem[] {
  if (typeof platform === 'string' || typeof platform === 'number' || Array.isArray(platform)) {
    return [report('platform', 'cannot unmarshal it into a field of type Platform')];
  }
  const entries = Object.entries((platform ?? {}) as Readonly<Record<string, unknown>>);
  const unknown = entries.filter(([name]) => !PLATFORMS.includes(name));
  const names = entries.filter(([, value]) => value !== null).map(([name]) => name);
  const known = names.filter((name) => PLATFORMS.includes(name));
  const foreign = known.filter((name) => name !== 'none');
  const isMissing = known.length === 0 && unknown.length === 0;
  return [
    ...unknown.map(([name]) =>
      report(`platform.${name}`, `unknown field "${name}"`, { hideValue: true }),
    ),
    ...(isMissing
      ? [
          report(
            'platform',
            invalid('', `must specify one of the platforms (${PLATFORMS.join(', ')})`),
            { hint: 'write none: {} below platform' },
          ),
        ]
      : []),
    ...foreign.map((name) =>
      report(`platform.${name}`, unsupported(name, ['none']), { shownPath: 'Platform' }),
    ),
    ...(known.length > 1
      ? [
          report(
            'platform',
            invalid(known.join(', '), 'must only specify a single type of platform'),
          ),
        ]
      : []),
  ];
}

function checkFeatures(
  report: Report,
  { featureSet = '', featureGates = [] }: WrittenInstallConfig,
): readonly ConfigProblem[] {
  const gates = 'Forbidden: featureGates can only be used with the CustomNoUpgrade feature set';
  return [
    ...(featureSet === '' || featureSet === 'Default'
      ? []
      : [report('featureSet', unsupported(featureSet, ['']), { shownPath: 'FeatureSet' })]),
    ...(featureGates.length === 0 ? [] : [report('featureGates', gates)]),
  ];
}

function checkPublish(report: Report, publish = 'External'): readonly ConfigProblem[] {
  if (publish === '' || publish === 'External') return [];
  const problem = ['Internal', 'Mixed'].includes(publish)
    ? invalid(publish, `${publish} publish strategy is not supported on "none" platform`)
    : unsupported(publish, ['External', 'Internal', 'Mixed']);
  return [report('publish', problem)];
}

function checkModes(
  report: Report,
  { credentialsMode = '', cpuPartitioningMode = '', bootstrapInPlace }: WrittenInstallConfig,
): readonly ConfigProblem[] {
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
