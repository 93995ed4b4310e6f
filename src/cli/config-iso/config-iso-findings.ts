import { formatFinding, isError, type SiteFinding } from '../../sites/site-finding.ts';
import type { CliHost } from '../host.ts';
import type { LogFormat } from '../terminal/progress.ts';
import { writeEvent, writeMessage } from '../terminal/output.ts';

export type SiteFindings = { readonly name: string; readonly findings: readonly SiteFinding[] };

/** More errors than anyone mends at once. */
const SHOWN_ERRORS = 500;
const SHOWN_WARNINGS = 20;
/** A warning that many sites share is printed once. */
const MANY = 4;

/** Tells on stderr what was found, errors last; in JSON one a line, and all of them. */
export function writeFindings(
  host: CliHost,
  format: LogFormat,
  found: readonly SiteFindings[],
): void {
  if (format === 'json') {
    for (const event of listAsEvents(found)) writeEvent(host, event);
    return;
  }
  const lines = listAsText(found);
  if (lines.length > 0) writeMessage(host, `${lines.join('\n')}\n`);
}

const listAsEvents = (found: readonly SiteFindings[]): readonly object[] =>
  found.flatMap(({ name, findings }) =>
    findings.map((finding) => ({ type: 'finding', site: name, ...finding })),
  );

function listAsText(found: readonly SiteFindings[]): readonly string[] {
  const all = found.flatMap(({ findings }) => findings);
  const errors = all.filter(isError);
  const warnings = groupAlike(all.filter((finding) => !isError(finding)));
  return [
    ...cut(warnings, SHOWN_WARNINGS, 'warnings'),
    ...cut(errors.map(formatFinding), SHOWN_ERRORS, 'errors'),
  ];
}

/** Ten thousand sites of one template have ten thousand times the same to be said of them. */
function groupAlike(warnings: readonly SiteFinding[]): readonly string[] {
  const groups = new Map<string, SiteFinding[]>();
  for (const warning of warnings) {
    const key = `${warning.path ?? ''}\n${warning.problem}`;
    const group = groups.get(key);
    if (group) group.push(warning);
    else groups.set(key, [warning]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first, ...rest] = group;
    if (!first || group.length < MANY) return group.map(formatFinding);
    return [`${formatFinding(first)}\n  and ${rest.length} times more`];
  });
}

const cut = (texts: readonly string[], most: number, what: string): readonly string[] =>
  texts.length <= most
    ? texts
    : [...texts.slice(0, most), `and ${texts.length - most} more ${what}; -o json tells all`];
