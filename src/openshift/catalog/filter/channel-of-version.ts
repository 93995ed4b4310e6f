import type { PackageSelection } from '../selection.ts';
import { findMatches } from './filter-channel.ts';
import type { FilterReport } from './filter-report.ts';
import type { PackageParts } from './package-parts.ts';
import { readSpecificVersion } from './selection-bounds.ts';

/**
 * The selection with the default channel that the one version it asks for needs: when the package's own
 * has it not, and exactly one other has it, that one. oc-mirror fails there, or leaves a default channel
 * without entries.
 *
 * @param parts with the channels that are selected
 * @returns undefined when several channels have the version, which is reported
 */
export function chooseChannelOfVersion(
  { name, packages, channels, bundles }: PackageParts,
  selected: PackageSelection,
  report: FilterReport,
): PackageSelection | undefined {
  const specific = readSpecificVersion(selected);
  const original = packages[0]?.defaultChannel ?? '';
  if (specific === undefined || original === '' || (selected.defaultChannel ?? '') !== '')
    return selected;
  const matches = new Set(findMatches(bundles, specific).map((bundle) => bundle.name));
  const having = channels
    .filter(({ entries }) => entries.some((entry) => matches.has(entry.name)))
    .map((channel) => channel.name);
  const [first] = having;
  if (first === undefined || having.includes(original)) return selected;
  if (having.length === 1) {
    report.addWarning(
      `package "${name}": version ${specific} is only in channel "${first}", which becomes the default channel instead of "${original}"`,
    );
    return { ...selected, defaultChannel: first };
  }
  const names = having.map((channel) => `"${channel}"`);
  report.addProblem(
    `package "${name}": version ${specific} is in channels ${names.join(', ')}, but not in the default channel "${original}"`,
    `set defaultChannel of package "${name}" to one of: ${having.join(', ')}`,
  );
  return undefined;
}
