import { findRepeated } from '../../base/lists.ts';
import { appendSuggestion, suggestName } from '../../base/text/words.ts';
import type { CatalogChannel, CatalogPackage, CatalogBundle } from '../catalog.ts';
import type { PackageSelection } from '../source.ts';
import { checkBundle } from './check-catalog.ts';
import { findMatches, filterChannel, readVersions } from './filter-channel.ts';
import {
  type FilterReport,
  type PackageParts,
  readSpecificVersion,
  adviseVersions,
  findBoundProblems,
  type PackageFilter,
} from './report.ts';

/** The selected part of one package. The result is meaningless if the report has a problem. */
export function filterPackage(parts: PackageParts, filter: PackageFilter): PackageParts {
  const { selected, report } = filter;
  if (!checkPackage(parts, filter)) return parts;
  const channels = selectChannels(parts, selected, report);
  const selectedParts = { ...parts, channels };
  const packages = chooseDefaults(selectedParts, selected, report);
  if (packages === undefined) return parts;
  const before = report.countProblems();
  const versions = readVersions(selectedParts);
  const filtered = channels
    .map((channel) =>
      filterChannel(channel, {
        ...filter,
        parts: selectedParts,
        versions,
        isDefault: packages.some(({ defaultChannel }) => defaultChannel === channel.name),
      }),
    )
    .filter((channel) => channel !== undefined);
  if (channels.length > 0 && filtered.length === 0 && report.countProblems() === before)
    report.addProblem(
      `package "${parts.name}": its version range leaves no channel`,
      adviseVersions(selected ?? {}, parts.bundles) ?? 'widen minVersion and maxVersion',
    );
  return { ...parts, packages, channels: filtered, bundles: listBundles(parts, filtered) };
}

/** The package with the default channel that the selection asks for; undefined if a problem was reported. */
function chooseDefaults(
  parts: PackageParts,
  selected: PackageSelection | undefined,
  report: FilterReport,
): PackageParts['packages'] | undefined {
  if (selected === undefined) return parts.packages;
  const chosen = chooseChannelOfVersion(parts, selected, report);
  return (
    chosen &&
    parts.packages.map((item) =>
      chooseDefaultChannel(item, { selected: chosen, channels: parts.channels, report }),
    )
  );
}

/**
 * The selection with a default channel that has the one version it asks for: if the package's own
 * default does not have it, and exactly one other channel has, that channel. oc-mirror fails there, or
 * leaves a default channel without entries.
 *
 * @param parts with the channels that are selected
 * @returns undefined if several channels have the version, which is reported
 */
function chooseChannelOfVersion(
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

export type DefaultChannelOptions = {
  readonly selected: PackageSelection;
  /** The selected channels of the package, before any is filtered. */
  readonly channels: readonly CatalogChannel[];
  readonly report: FilterReport;
};

/**
 * The package with the default channel that the selection names, else its own, else the only channel
 * that is selected; oc-mirror requires the selection to name this last one.
 */
function chooseDefaultChannel(
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

/** False if the selection cannot be applied, or if a bundle lacks a version that it needs. */
function checkPackage(parts: PackageParts, filter: PackageFilter): boolean {
  const { selected, report } = filter;
  const isSound = selected === undefined || checkSelection(parts, selected, filter);
  const hasVersions = !readsVersions(selected) || checkVersions(parts, report);
  return isSound && hasVersions;
}

function checkSelection(
  parts: PackageParts,
  selected: PackageSelection,
  { full, report }: PackageFilter,
): boolean {
  const known = new Set(parts.channels.map(({ name }) => name));
  const wanted = selected.channels.map(({ name }) => name);
  const where = `package "${parts.name}"`;
  const problems = [
    ...findBoundProblems(selected, full),
    ...findRepeated(wanted).map((name) => `${where}: channel "${name}" is selected twice`),
    ...wanted.filter((name) => !known.has(name)).map((name) => describeUnknown(where, name, known)),
    ...findMissingBundle(parts, selected),
  ];
  for (const problem of problems) report.addProblem(problem);
  return problems.length === 0;
}

function describeUnknown(where: string, name: string, known: ReadonlySet<string>): string {
  const guess =
    suggestName(name, known) ??
    `it has ${[...known].map((channel) => `"${channel}"`).join(', ') || 'none'}`;
  return `${where} has no channel "${name}"; ${guess}`;
}

/** Reports a missing bundle of the package; a bundle of a channel is looked up in the channel. */
function findMissingBundle(
  { name, channels }: PackageParts,
  { minBundle, channels: wanted }: PackageSelection,
): readonly string[] {
  if (minBundle === undefined) return [];
  const listed = new Set(wanted.map((channel) => channel.name));
  const names = channels
    .filter((channel) => listed.size === 0 || listed.has(channel.name))
    .flatMap(({ entries }) => entries.map((entry) => entry.name));
  if (names.includes(minBundle)) return [];
  const guess = appendSuggestion(minBundle, new Set(names));
  const place = listed.size === 0 ? 'no channel' : 'none of the selected channels';
  return [`package "${name}": bundle "${minBundle}" is in ${place}${guess}`];
}

/** True unless every channel is selected from a bundle on: then versions are not needed. */
const readsVersions = (selected: PackageSelection | undefined): boolean =>
  selected?.minBundle === undefined &&
  (selected === undefined ||
    selected.channels.length === 0 ||
    selected.channels.some(({ minBundle }) => minBundle === undefined));

function checkVersions({ bundles }: PackageParts, report: FilterReport): boolean {
  const problems = bundles.flatMap(checkBundle);
  for (const problem of problems) report.addProblem(problem);
  return problems.length === 0;
}

/** The listed channels, or all; with `minBundle` of the package, only channels that have it. */
function selectChannels(
  { channels }: PackageParts,
  selected: PackageSelection | undefined,
  report: FilterReport,
): readonly CatalogChannel[] {
  if (selected === undefined) return channels;
  const wanted = new Set(selected.channels.map(({ name }) => name));
  const listed = channels.filter(({ name }) => wanted.size === 0 || wanted.has(name));
  const { minBundle } = selected;
  if (minBundle === undefined) return listed;
  return listed.filter(({ name, entries }) => {
    const isIn = entries.some((entry) => entry.name === minBundle);
    if (!isIn)
      report.addWarning(
        `package "${selected.name}" channel "${name}" has no bundle "${minBundle}" and is left out`,
      );
    return isIn;
  });
}

function listBundles(
  { bundles }: PackageParts,
  channels: readonly CatalogChannel[],
): readonly CatalogBundle[] {
  const names = new Set(channels.flatMap(({ entries }) => entries.map(({ name }) => name)));
  return bundles.filter(({ name }) => names.has(name));
}
