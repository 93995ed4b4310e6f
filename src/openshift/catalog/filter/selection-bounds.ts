import { append } from '../../../base/lists.ts';
import type { Bounds, PackageSelection, VersionBounds } from '../selection.ts';
import { completeVersion } from './version/version-constraint.ts';

/** The range as oc-mirror writes it into its errors: `>=A <=B`; the maximum alone has a space before. */
export function formatRange({ minVersion, maxVersion }: VersionBounds): string | undefined {
  if (minVersion === undefined && maxVersion === undefined) return undefined;
  const from = minVersion === undefined ? '' : `>=${minVersion}`;
  return maxVersion === undefined ? from : `${from} <=${maxVersion}`;
}

/** Whether other bundles of a channel than its head are selected. */
export const hasBounds = (bounds: Bounds): boolean => describeBounds(bounds) !== undefined;

const describeBounds = (bounds: Bounds): string | undefined =>
  bounds.minBundle === undefined
    ? formatRange(bounds)
    : `${formatRange(bounds) ?? ''} from ${bounds.minBundle}`.trim();

/** The one version that both bounds name, in the same words. */
export function readSpecificVersion({ minVersion, maxVersion }: VersionBounds): string | undefined {
  return minVersion === maxVersion ? minVersion : undefined;
}

/** What is wrong with the bounds of a package's selection, whatever the catalog. */
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
    problems.push(`${where}: minBundle and versions exclude each other`);
  return problems;
}
