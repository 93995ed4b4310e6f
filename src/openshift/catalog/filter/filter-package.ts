import type { CatalogBundle, CatalogChannel } from '../catalog.ts';
import { chooseChannelOfVersion } from './channel-of-version.ts';
import { chooseDefaultChannel } from './default-channel.ts';
import { parseBundleVersion } from './version/bundle-version.ts';
import { filterChannel } from './filter-channel.ts';
import { adviseVersions } from './version/advise-versions.ts';
import type { FilterReport } from './filter-report.ts';
import type { PackageFilter, PackageParts } from './package-parts.ts';
import type { PackageSelection } from '../selection.ts';
import { findBoundProblems } from './selection-bounds.ts';
import { findNearestName } from './nearest-name.ts';
import { findRepeated } from './groups.ts';

/** What is kept of one package. What it returns beside a problem in the report means nothing. */
export function filterPackage(parts: PackageParts, filter: PackageFilter): PackageParts {
  const { selected, report } = filter;
  const isSound = selected === undefined || checkSelection(parts, selected, filter);
  const hasVersions = checkVersions(parts, report);
  if (!isSound || !hasVersions) return parts;
  const channels = selectChannels(parts, selected);
  const selectedParts = { ...parts, channels };
  const packages = chooseDefaults(selectedParts, selected, report);
  if (packages === undefined) return parts;
  const before = report.countProblems();
  const kept = channels
    .map((channel) =>
      filterChannel(channel, {
        ...filter,
        parts: selectedParts,
        isDefault: packages.some(({ defaultChannel }) => defaultChannel === channel.name),
      }),
    )
    .filter((channel) => channel !== undefined);
  if (channels.length > 0 && kept.length === 0 && report.countProblems() === before)
    report.addProblem(
      `package "${parts.name}": its version range leaves no channel`,
      adviseVersions(selected ?? {}, parts.bundles) ?? 'widen minVersion and maxVersion',
    );
  return { ...parts, packages, channels: kept, bundles: listBundles(parts, kept) };
}

/** The package with the default channel that the selection asks for; undefined beside a problem. */
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

/** False when the selection cannot be applied. */
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
  ];
  for (const problem of problems) report.addProblem(problem);
  return problems.length === 0;
}

function describeUnknown(where: string, name: string, known: ReadonlySet<string>): string {
  const nearest = findNearestName(name, known);
  const guess =
    nearest === undefined
      ? `it has ${[...known].map((channel) => `"${channel}"`).join(', ') || 'none'}`
      : `did you mean "${nearest}"?`;
  return `${where} has no channel "${name}"; ${guess}`;
}

/** Every bundle of a selected package needs a version, also those that are then filtered out. */
function checkVersions({ bundles }: PackageParts, report: FilterReport): boolean {
  let isSound = true;
  for (const { name, package: owner, version } of bundles) {
    if (version !== undefined && parseBundleVersion(version) !== undefined) continue;
    isSound = false;
    report.addProblem(
      version === undefined
        ? `bundle "${name}" in package "${owner}" has no package property`
        : `bundle "${name}" in package "${owner}" has version "${version}", which is not a semantic version`,
    );
  }
  return isSound;
}

function selectChannels(
  { channels }: PackageParts,
  selected: PackageSelection | undefined,
): readonly CatalogChannel[] {
  if (selected === undefined || selected.channels.length === 0) return channels;
  const wanted = new Set(selected.channels.map(({ name }) => name));
  return channels.filter(({ name }) => wanted.has(name));
}

function listBundles(
  { bundles }: PackageParts,
  channels: readonly CatalogChannel[],
): readonly CatalogBundle[] {
  const names = new Set(channels.flatMap(({ entries }) => entries.map(({ name }) => name)));
  return bundles.filter(({ name }) => names.has(name));
}
