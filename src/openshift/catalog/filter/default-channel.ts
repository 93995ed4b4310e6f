import type { CatalogChannel, CatalogPackage } from '../catalog.ts';
import type { FilterReport } from './filter-report.ts';
import type { PackageSelection } from '../selection.ts';

export type DefaultChannelOptions = {
  readonly selected: PackageSelection;
  /** The selected channels of the package, before any is filtered. */
  readonly channels: readonly CatalogChannel[];
  readonly report: FilterReport;
};

/**
 * The package with the default channel that the selection gives it, else its own, else the only one
 * that is kept. Unlike oc-mirror, which wants the last to be said.
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
