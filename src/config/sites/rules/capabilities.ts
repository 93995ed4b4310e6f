import type { ConfigProblem } from '../../document/problem.ts';
import { invalid, unsupported, type Report } from '../document/report.ts';
import type { WrittenInstallConfig } from '../document/site-shapes.ts';

/** What must be there as well, and the first release whose baseline has it. */
const NEEDS = {
  baremetal: { name: 'MachineAPI', since: 14 },
  marketplace: { name: 'OperatorLifecycleManager', since: 15 },
} as const;

const INGRESS_SINCE = 16;

/** Sets of capabilities that no cluster can have. */
export function checkCapabilities(
  report: Report,
  { capabilities }: WrittenInstallConfig,
): readonly ConfigProblem[] {
  if (!capabilities) return [];
  const { baselineCapabilitySet: baseline = '', additionalEnabledCapabilities: more = [] } =
    capabilities;
  const minor = readMinor(baseline);
  if (minor === undefined) {
    const known = ['None', 'v4.11', 'v4.12', '...', 'vCurrent'];
    return [report('capabilities.baselineCapabilitySet', unsupported(baseline, known))];
  }
  const path = 'capabilities.additionalEnabledCapabilities';
  const has = (name: string, since: number): boolean => minor >= since || more.includes(name);
  const lacking = (['baremetal', 'marketplace'] as const).filter(
    (name) => more.includes(name) && !has(NEEDS[name].name, NEEDS[name].since),
  );
  const shown = more.filter((name) => name !== undefined).join(', ');
  return [
    ...lacking.map((name) =>
      report(
        path,
        invalid(shown, `the ${name} capability requires the ${NEEDS[name].name} capability`),
      ),
    ),
    // Older releases have no such capability; only an explicit None takes it away.
    ...(minor === 0 && !has('Ingress', INGRESS_SINCE)
      ? [report(path, invalid(shown, 'the Ingress capability is required'))]
      : []),
  ];
}

/** The release of a baseline: 0 for None, Infinity for the current one. */
function readMinor(baseline: string): number | undefined {
  if (baseline === '' || baseline === 'vCurrent') return Infinity;
  if (baseline === 'None') return 0;
  const [, minor] = /^v4\.(\d{2})$/.exec(baseline) ?? [];
  return minor === undefined ? undefined : Number(minor);
}
