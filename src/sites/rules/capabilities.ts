import type { DocumentProblem } from '../../base/errors.ts';
import type { Report } from '../../shape/report.ts';
import { invalid, unsupported } from '../../shape/report.ts';
import type { WrittenInstallConfig } from '../document/site-shapes.ts';

/** The sets of config.openshift.io/v1; releases since 4.18 have added none. */
const SETS = ['None', ...Array.from({ length: 8 }, (_, index) => `v4.${index + 11}`), 'vCurrent'];

/** The capabilities of config.openshift.io/v1, of every release so far. */
const CAPABILITIES = [
  'Build',
  'CSISnapshot',
  'CloudControllerManager',
  'CloudCredential',
  'ClusterAPI',
  'CompatibilityRequirements',
  'Console',
  'DeploymentConfig',
  'ImageRegistry',
  'Ingress',
  'Insights',
  'MachineAPI',
  'NodeTuning',
  'OperatorLifecycleManager',
  'OperatorLifecycleManagerV1',
  'Storage',
  'baremetal',
  'marketplace',
  'openshift-samples',
];

/** The first set that has the capability Ingress, which no cluster can do without. */
const FIRST_WITH_INGRESS = 'v4.16';

/** Words that no release knows, and sets of capabilities that no cluster can have. */
export function checkCapabilities(
  report: Report,
  { capabilities }: WrittenInstallConfig,
): readonly DocumentProblem[] {
  if (!capabilities) return [];
  const { baselineCapabilitySet: set = '', additionalEnabledCapabilities: written = [] } =
    capabilities;
  const baseline = set === '' ? 'vCurrent' : set;
  const more = written.map((name = '') => name);
  const path = 'capabilities.additionalEnabledCapabilities';
  return [
    ...(SETS.includes(baseline)
      ? explainLacking(baseline, more).map((why) => report(path, invalid(more.join(', '), why)))
      : [report('capabilities.baselineCapabilitySet', unsupported(baseline, SETS))]),
    ...more.flatMap((name, index) =>
      CAPABILITIES.includes(name)
        ? []
        : [report(`${path}[${index}]`, unsupported(name, CAPABILITIES))],
    ),
  ];
}

function explainLacking(baseline: string, more: readonly string[]): readonly string[] {
  const isAlone = baseline === 'None' && more.includes('marketplace');
  const hasIngress = SETS.indexOf(baseline) >= SETS.indexOf(FIRST_WITH_INGRESS);
  return [
    ...(isAlone && !more.includes('OperatorLifecycleManager')
      ? ['the marketplace capability requires the OperatorLifecycleManager capability']
      : []),
    ...(hasIngress || more.includes('Ingress') ? [] : ['the Ingress capability is required']),
  ];
}
