import type { PackageSelection, VersionBounds } from '../selection.ts';
import { completeVersion } from './version/version-constraint.ts';

/** The range as oc-mirror writes it into its errors: `>=A <=B`; the maximum alone has a space before. */
export function formatRange({ minVersion, maxVersion }: VersionBounds): string | undefined {
  if (minVersion === undefined && maxVersion === undefined) return undefined;
  const from = minVersion === undefined ? '' : `>=${minVersion}`;
  return maxVersion === undefined ? from : `${from} <=${maxVersion}`;
}

/** The one version that both bounds name, in the same words. */
export function readSpecificVersion({ minVersion, maxVersion }: VersionBounds): string | undefined {
  return minVersion === maxVersion ? minVersion : undefined;
}

/** What is wrong with the versions of a package's selection, whatever the catalog. */
export function findBoundProblems(selected: PackageSelection, full: boolean): readonly string[] {
  const where = `package "${selected.name}"`;
  const range = formatRange(selected);
  const problems = checkBounds(selected, { where, full });
  for (const channel of selected.channels) {
    const place = `${where} channel "${channel.name}"`;
    const own = formatRange(channel);
    problems.push(...checkBounds(channel, { where: place, full }));
    if (range !== undefined && own !== undefined)
      problems.push(
        `${where} has version range "${range}" and its channel "${channel.name}" has "${own}": only one of them may have a range`,
      );
  }
  return problems;
}

function checkBounds(
  bounds: VersionBounds,
  { where, full }: { readonly where: string; readonly full: boolean },
): string[] {
  const problems: string[] = [];
  for (const key of ['minVersion', 'maxVersion'] as const) {
    const version = bounds[key];
    if (version !== undefined && completeVersion(version) === undefined)
      problems.push(`${where}: ${key} "${version}" is not a semantic version`);
  }
  if (full && formatRange(bounds) !== undefined)
    problems.push(`${where}: Full: true cannot be mixed with versionRange`);
  return problems;
}
