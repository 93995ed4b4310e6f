import type { CatalogChannel, CatalogPackage } from '../catalog.ts';
import type { FilterReport, PackageParts } from './filter-report.ts';
import type { PackageSelection } from '../selection.ts';
import { findMatches } from './filter-channel.ts';
import { readSpecificVersion } from './selection-bounds.ts';

export type DefaultChannelOptions = {
  readonly selected: PackageSelection;
  /** The selected channels of the package, before any is filtered. */
  readonly channels: readonly CatalogChannel[];
  readonly report: FilterReport;
};

/**
 * The package with the default channel that the selection gives it, else its own, else the only one
 * that is selected. oc-mirror wants the last one named explicitly.
 */
export function chooseDefaultChannel(
  item: CatalogPackage,
  { selected, channels, report }: DefaultChannelOptions,
): CatalogPackage {
  const names = [...new Set(channels.map(({ name }) => name))];
  const problem = findProblem(item, { override: selected.defaultChannel ?? '', names });
  if (problem !== undefined) {
    report.addProblem(
      `invalid default channel configuration for package "${item.name}": ${problem}`,
      adviseChannel(item.name, names),
    );
    return item;
  }
  const original = item.defaultChannel ?? '';
  const chosen = (selected.defaultChannel ?? '') || original;
  if (chosen === '' || names.includes(chosen))
    return chosen === original ? item : { ...item, defaultChannel: chosen };
  const [only = ''] = names;
  report.addWarning(
    `package "${item.name}": its default channel "${original}" is filtered out, so "${only}", the only channel selected, becomes the default`,
  );
  return { ...item, defaultChannel: only };
}

function findProblem(
  { defaultChannel = '' }: CatalogPackage,
  { override, names }: { readonly override: string; readonly names: readonly string[] },
): string | undefined {
  if (override !== '')
    return names.includes(override)
      ? undefined
      : `specified default channel override "${override}" does not exist in the filtered output`;
  if (defaultChannel === '' || names.includes(defaultChannel) || names.length === 1)
    return undefined;
  return `the default channel "${defaultChannel}" was filtered out, a new default channel must be configured for this package`;
}

function adviseChannel(name: string, channels: readonly string[]): string | undefined {
  if (channels.length === 0) return undefined;
  return `set defaultChannel of package "${name}" to one of: ${channels.join(', ')}`;
}

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
