import { checkAgentSite, isAgentSite } from './agent/check.ts';
import { checkSite, type CheckOptions, type SiteCheck } from './check.ts';
import { withoutRepeated } from './opened.ts';
import type { SiteInput } from './site.ts';

/** Checks a site of either kind: its files tell which it is. */
export function checkAnySite(input: SiteInput, options: CheckOptions): SiteCheck {
  const { files, problems = [], warnings = [] } = input;
  if (files.length === 0) return { problems, warnings, references: new Map() };
  const { site, ...checked } = isAgentSite(input)
    ? checkAgentSite(input, options)
    : checkSite(input, options);
  return {
    ...checked,
    ...(site && problems.length === 0 && { site }),
    problems: withoutRepeated([...problems, ...checked.problems]),
    warnings: withoutRepeated([...warnings, ...checked.warnings]),
  };
}
