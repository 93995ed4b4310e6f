import { ConfigError } from '../../../base/errors.ts';
import type { CatalogBundle, CatalogChannel, CatalogPackage } from '../catalog.ts';
import type { PackageSelection } from '../selection.ts';

/** Gathers all that is wrong with a selection, and all that its user should know. */
export type FilterReport = {
  readonly addProblem: (problem: string, hint?: string) => void;
  readonly addWarning: (warning: string) => void;
  readonly countProblems: () => number;
  /** Throws ConfigError `catalog.selection` with all problems, one a line. */
  readonly throwIfAny: () => void;
  /** In the order of their discovery, each once. */
  readonly listWarnings: () => readonly string[];
};

export function createFilterReport(catalogName: string | undefined): FilterReport {
  const prefix = catalogName === undefined ? '' : `catalog "${catalogName}": `;
  const problems = new Set<string>();
  const hints = new Set<string>();
  const warnings = new Set<string>();
  return {
    addProblem(problem, hint) {
      for (const line of problem.split('\n')) problems.add(`${prefix}${line}`);
      if (hint !== undefined) hints.add(hint);
    },
    addWarning: (warning) => void warnings.add(`${prefix}${warning}`),
    countProblems: () => problems.size,
    throwIfAny() {
      if (problems.size === 0) return;
      throw new ConfigError('catalog.selection', [...problems].join('\n'), {
        ...(hints.size === 0 ? {} : { hint: [...hints].join('; ') }),
      });
    },
    listWarnings: () => [...warnings],
  };
}

/** Everything that a catalog says about one package. */
export type PackageParts = {
  readonly name: string;
  /** One in a valid catalog; none when the catalog has only channels of it. */
  readonly packages: readonly CatalogPackage[];
  readonly channels: readonly CatalogChannel[];
  readonly bundles: readonly CatalogBundle[];
};

export type PackageFilter = {
  /** Absent when the selection names no packages: then heads are selected. */
  readonly selected: PackageSelection | undefined;
  readonly full: boolean;
  readonly report: FilterReport;
};
