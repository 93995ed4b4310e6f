import type { FileProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { printable } from '../../base/text/words.ts';
import type { TableRow } from '../../table/index.ts';
import type { TemplateFolder } from './folder.ts';
import { fillTemplate, traceFilled } from './template.ts';

/* Owns the causes of findings about filled files: a cell of the table, or a line of the template. */

export const nameCell = (column: string, site: string): string =>
  `column "${column}" of site ${site}`;

/** Names the cell or the line of the template that each finding about a filled file is caused by. */
export function traceFindings(
  { path, folder }: { readonly path: string; readonly folder: TemplateFolder },
  { line: row, cells }: TableRow,
  findings: readonly FileProblem[],
): readonly FileProblem[] {
  const files = new Map(
    folder.files.map((file) => [`:${row}/${printable(fillTemplate(file.name, cells))}`, file]),
  );
  return findings.map((finding) => {
    const file = files.get(finding.file.slice(finding.file.lastIndexOf(`:${row}/`)));
    if (!file || !('column' in finding)) return finding;
    const { line, hole } = traceFilled(file.content, cells, finding);
    if (hole === undefined) return { ...finding, file: file.shownAs, line };
    // The line is left out: the cell may be a password, of which the rules of files know nothing.
    const { severity, code, path: key, problem, hint } = finding;
    const cell = nameCell(hole.column, printable(cells.get('name') ?? ''));
    return {
      severity,
      code,
      file: path,
      line: row,
      path: key,
      problem: `${cell}: ${problem}`,
      ...withoutUndefined({ hint }),
    };
  });
}
