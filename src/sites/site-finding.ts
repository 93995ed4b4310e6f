import { DiskError, InterruptedError, SealiftError } from '../base/errors.ts';
import { toPrintable } from '../base/text/printable-text.ts';
import { redact } from '../base/text/redact.ts';
import { withoutUndefined } from '../base/members.ts';
import { formatProblem, type ConfigProblem } from '../config/document/problem.ts';
import type { SiteProblem } from './sources/read-list.ts';

/** One thing about one site, or with an empty name about what belongs to none. Has no secret. */
export type SiteFinding = {
  readonly severity: 'error' | 'warning';
  /** File, member of an archive, or row of a table. */
  readonly file: string;
  /** From 1. */
  readonly line?: number;
  readonly column?: number;
  /** Where in the document. */
  readonly path?: string;
  readonly problem: string;
  readonly hint?: string;
  readonly lineText?: string;
};

/** A problem of a document's text. */
export const findingOf = (
  severity: SiteFinding['severity'],
  { file, line, column, path, problem, lineText, hint }: ConfigProblem,
): SiteFinding => ({
  severity,
  file,
  line,
  column,
  path,
  problem,
  lineText,
  ...withoutUndefined({ hint }),
});

/** A problem of how the site is given: a member of an archive, a row of a table. */
export const findingOfList = ({ severity, shownAs, line, problem }: SiteProblem): SiteFinding => ({
  severity,
  file: shownAs,
  problem,
  ...withoutUndefined({ line }),
});

/** Whether it concerns one site: a full disk or an abort concerns all, and a bug everyone. */
export const isOfOneSite = (error: unknown): error is SealiftError =>
  error instanceof SealiftError &&
  !(error instanceof DiskError || error instanceof InterruptedError);

/** What came between a good site and its ISO, told as a finding of the site. */
export const findingOfError = (name: string, error: SealiftError): SiteFinding => ({
  severity: 'error',
  file: name,
  problem: redact(`${error.message}${formatValues(error)} [${error.code}]`),
  ...withoutUndefined({ hint: error.hint }),
});

const formatValues = ({ expected, found }: SealiftError): string =>
  [
    ...(expected === undefined ? [] : [`; expected ${expected}`]),
    ...(found === undefined ? [] : [`; found ${found}`]),
  ].join('');

/** `file:line:column: path: problem`, and the line it means where there is one. */
export function formatFinding(finding: SiteFinding): string {
  const { severity, file, line, column, path = '', lineText = '', hint } = finding;
  const problem = `${severity === 'warning' ? 'warning: ' : ''}${finding.problem}`;
  if (line !== undefined && column !== undefined) {
    const shown = { file, line, column, path, problem, lineText };
    return formatProblem(hint === undefined ? shown : { ...shown, hint });
  }
  const place = line === undefined ? file : `${file}:${line}`;
  const where = path === '' ? '' : `${path}: `;
  const head = toPrintable(`${place}: ${where}${problem}`);
  return [head, ...(hint === undefined ? [] : [`  hint: ${toPrintable(hint)}`])].join('\n');
}

export const isError = ({ severity }: SiteFinding): boolean => severity === 'error';
