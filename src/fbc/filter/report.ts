import { ConfigError } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import type { CatalogBundle, CatalogChannel, CatalogPackage } from '../catalog.ts';
import { completeVersion, parseConstraint } from '../constraint.ts';
import type { PackageSelection, Bounds, VersionBounds } from '../source.ts';
import { type BundleVersion, compareBundleVersions, parseBundleVersion } from '../version.ts';

export type FilterReport = {
  readonly addProblem: (problem: string, hint?: string) => void;
  readonly addWarning: (warning: string) => void;
  readonly countProblems: () => number;
  /** Throws ConfigError `catalog.selection` with all problems, one per line. */
  readonly throwIfAny: () => void;
  /** Warnings in the order of their discovery, each once. */
  readonly listWarnings: () => readonly string[];
};

/** All documents of a catalog about one package. */
export type PackageParts = {
  readonly name: string;
  /** One in a valid catalog; empty if the catalog has only channels of it. */
  readonly packages: readonly CatalogPackage[];
  readonly channels: readonly CatalogChannel[];
  readonly bundles: readonly CatalogBundle[];
};

export type PackageFilter = {
  /** Undefined if the selection names no packages: heads are selected then. */
  readonly selected: PackageSelection | undefined;
  readonly full: boolean;
  readonly report: FilterReport;
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

/** The range as in oc-mirror's errors: `>=A <=B`; a maximum alone begins with a space. */
export function formatRange({ minVersion, maxVersion }: VersionBounds): string | undefined {
  if (minVersion === undefined && maxVersion === undefined) return undefined;
  const from = minVersion === undefined ? '' : `>=${minVersion}`;
  return maxVersion === undefined ? from : `${from} <=${maxVersion}`;
}

/** True if bundles of a channel other than its head are selected. */
export const hasBounds = (bounds: Bounds): boolean => describeBounds(bounds) !== undefined;

const describeBounds = (bounds: Bounds): string | undefined =>
  bounds.minBundle === undefined
    ? formatRange(bounds)
    : `${formatRange(bounds) ?? ''} from ${bounds.minBundle}`.trim();

/** The one version that both bounds name, written the same way. */
export function readSpecificVersion({ minVersion, maxVersion }: VersionBounds): string | undefined {
  return minVersion === maxVersion ? minVersion : undefined;
}

/** Problems with the bounds of a package's selection, independent of the catalog. */
export function findBoundProblems(selected: PackageSelection, full: boolean): readonly string[] {
  const where = `package "${selected.name}"`;
  const bounds = describeBounds(selected);
  const problems = checkBounds(selected, { where, full });
  for (const channel of selected.channels) {
    const place = `${where} channel "${channel.name}"`;
    const own = describeBounds(channel);
    append(problems, checkBounds(channel, { where: place, full }));
    if (bounds !== undefined && own !== undefined)
      problems.push(
        `${where} has version range "${bounds}" and its channel "${channel.name}" has "${own}": only one of them may have a range`,
      );
  }
  return problems;
}

function checkBounds(
  bounds: Bounds,
  { where, full }: { readonly where: string; readonly full: boolean },
): string[] {
  const problems: string[] = [];
  for (const key of ['minVersion', 'maxVersion'] as const) {
    const version = bounds[key];
    if (version !== undefined && completeVersion(version) === undefined)
      problems.push(`${where}: ${key} "${version}" is not a semantic version`);
  }
  if (full && hasBounds(bounds))
    problems.push(`${where}: Full: true cannot be mixed with versionRange`);
  if (bounds.minBundle !== undefined && formatRange(bounds) !== undefined)
    problems.push(`${where}: minBundle cannot be combined with minVersion or maxVersion`);
  return problems;
}

type Known = { readonly text: string; readonly version: BundleVersion };

/** Versions that advice names on either side of the wanted version. */
const NAMED = 2;

/**
 * Advice for bounds that match no version: the nearest versions that exist, and the bound
 * that accepts pre-releases if that is enough. Undefined without versions.
 */
export function adviseVersions(
  bounds: VersionBounds,
  bundles: readonly Pick<CatalogBundle, 'version'>[],
): string | undefined {
  const known = listKnown(bundles);
  const wanted = parseBundleVersion(
    completeVersion(bounds.minVersion ?? bounds.maxVersion ?? '') ?? '',
  );
  if (wanted === undefined || known.length === 0) return undefined;
  const above = known.findIndex(({ version }) => compareBundleVersions(version, wanted) >= 0);
  const at = above === -1 ? known.length : above;
  const nearest = known.slice(Math.max(0, at - NAMED), at + NAMED).map(({ text }) => text);
  const advice = `the nearest versions are ${nearest.join(', ')}`;
  const wider = acceptPrereleases(bounds);
  const isEnough = known.some(({ text }) => parseConstraint(wider.range).accepts(text));
  return isEnough ? `write ${wider.text} to accept pre-releases; ${advice}` : advice;
}

function listKnown(bundles: readonly Pick<CatalogBundle, 'version'>[]): readonly Known[] {
  return [...new Set(bundles.map(({ version }) => version ?? ''))]
    .flatMap((text) => {
      const version = parseBundleVersion(text);
      return version === undefined ? [] : [{ text, version }];
    })
    .sort((a, b) => compareBundleVersions(a.version, b.version));
}

/** `-0` is the lowest pre-release, and a bound with one accepts all (Masterminds/semver). */
function acceptPrereleases({ minVersion, maxVersion }: VersionBounds): {
  readonly range: string;
  readonly text: string;
} {
  const lowest = completeVersion(minVersion ?? '0.0.0') ?? '0.0.0';
  const [, release = ''] = /^([0-9.]+)/.exec(lowest) ?? [];
  const wider = { minVersion: `${release}-0`, ...withoutUndefined({ maxVersion }) };
  const end =
    minVersion === maxVersion && maxVersion !== undefined ? `, maxVersion: ${maxVersion}` : '';
  return { range: formatRange(wider) ?? '', text: `minVersion: ${wider.minVersion}${end}` };
}
