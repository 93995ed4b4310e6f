import type { DocumentProblem } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { type NetworkFinding, formatFinding, judgeNetwork } from '../../nmstate/index.ts';
import type { ReportProblem } from '../../shape/report.ts';
import type { Plain } from '../../shape/shape.ts';

/* Owns the places of findings about `networkConfig`; the rules themselves are nmstate's. */

export const checkNetworkConfig = (
  report: ReportProblem,
  network: Plain | undefined,
): readonly DocumentProblem[] => {
  if (isAbsent(network)) return [];
  if (!isObject(network)) return [report('networkConfig', 'cannot unmarshal it into an object')];
  return reportFindings(report, judgeNetwork(network).problems);
};

/** Warnings of settings that nmstate accepts, but that seldom work on a node. */
export const warnOfNetworkConfig = (
  report: ReportProblem,
  network: Plain | undefined,
): readonly DocumentProblem[] =>
  isAbsent(network) ? [] : reportFindings(report, judgeNetwork(network).warnings);

const isAbsent = (network: Plain | undefined): boolean => (network ?? undefined) === undefined;

const reportFindings = (
  report: ReportProblem,
  findings: readonly NetworkFinding[],
): readonly DocumentProblem[] =>
  findings.map(({ path, hint, hidesValue, ...finding }) =>
    report(path === '' ? 'networkConfig' : `networkConfig.${path}`, explain(finding), {
      hint,
      hideValue: hidesValue,
    }),
  );

/** The path names the member; only the interface is missing. */
const explain = (finding: Omit<NetworkFinding, 'path'>): string =>
  formatFinding({ ...finding, path: '' });
