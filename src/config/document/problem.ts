import { ConfigError } from '../../base/errors.ts';
import { toPrintable } from '../../base/text/printable-text.ts';

/** One thing that is wrong with a configuration file, and where. Carries no secret. */
export type ConfigProblem = {
  /** The file as the user named it. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** Where in the document: `ocpRelease.version`, `operators[0].catalog`; empty for the document. */
  readonly path: string;
  readonly problem: string;
  /** The line it means, with secret values masked. */
  readonly lineText: string;
  readonly hint?: string;
};

/** Everything that is wrong with one configuration file: `config.problems`, all at once. */
export class ConfigProblems extends ConfigError {
  readonly problems: readonly ConfigProblem[];

  constructor(file: string, problems: readonly ConfigProblem[]) {
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
    super('config.problems', `${file} has ${count}`);
    this.problems = problems;
  }
}

/** `file:line:column: path: problem`, the line, a caret below it, and the hint if there is one. */
export function formatProblem(problem: ConfigProblem): string {
  const { file, line, column, path, hint } = problem;
  const place = path === '' ? '' : `${path}: `;
  const head = toPrintable(`${file}:${line}:${column}: ${place}${problem.problem}`);
  const number = String(line);
  const margin = ' '.repeat(number.length);
  const [before, after] = cutLine(problem);
  const lineText = before + after;
  const caret = before.replaceAll(/[^\t]/g, ' ');
  const shown = [`  ${number} | ${lineText}`, `  ${margin} | ${caret}^`];
  return [
    head,
    ...(lineText.trim() === '' ? [] : shown),
    ...(hint ? [`  hint: ${hint}`] : []),
  ].join('\n');
}

/** Columns of a source line around what it is shown for. */
const SHOWN_COLUMNS = 200;

/** What is shown of a line before its column and from there on, without what commands a terminal. */
function cutLine({ lineText, column }: ConfigProblem): readonly [string, string] {
  const line = lineText.replace(/\r$/, '');
  const at = Math.min(column - 1, line.length);
  const isLong = line.length > SHOWN_COLUMNS;
  const last = isLong ? line.length - SHOWN_COLUMNS : 0;
  const start = Math.max(0, Math.min(at - SHOWN_COLUMNS / 2, last));
  const end = isLong ? start + SHOWN_COLUMNS : line.length;
  return [
    `${start > 0 ? '...' : ''}${toPrintable(line.slice(start, at))}`,
    `${toPrintable(line.slice(at, end))}${end < line.length ? '...' : ''}`,
  ];
}
