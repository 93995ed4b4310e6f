import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';

/** A catalog of nothing but mistakes should not fill the terminal with them. */
const MAX_PROBLEMS = 1000;

/** The refusal of a catalog, with its problems, one a line. */
export function malformedCatalog(
  name: string,
  problems: readonly string[],
  hint?: string,
): ConfigError {
  const more = problems.length - MAX_PROBLEMS;
  const shown = problems.slice(0, MAX_PROBLEMS);
  const lines = more > 0 ? [...shown, `and ${more} more`] : shown;
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return new ConfigError(
    'catalog.malformed',
    [`catalog ${name} has ${count}:`, ...lines.map((line) => `  ${line}`)].join('\n'),
    { ...withoutUndefined({ hint }) },
  );
}
