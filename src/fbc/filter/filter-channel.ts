import { ConfigError } from '../../base/errors.ts';
import { appendSuggestion } from '../../base/text/words.ts';
import type { CatalogBundle, CatalogChannel } from '../catalog.ts';
import { type ChannelGraph, listAbove, planChannelGraph } from '../channel-graph.ts';
import { filterByRange, completeVersion } from '../constraint.ts';
import type { Bounds } from '../source.ts';
import {
  type BundleVersion,
  compareBuilds,
  compareText,
  compareBundleVersions,
  parseBundleVersion,
} from '../version.ts';
import {
  type PackageFilter,
  type PackageParts,
  adviseVersions,
  formatRange,
  hasBounds,
  readSpecificVersion,
} from './report.ts';

/** Versions of the bundles of a package, read once for all its channels. */
type PackageVersions = {
  /** By name, of bundles that are in a selected channel: others could not be installed. */
  readonly known: ReadonlyMap<string, string>;
  /** The bundles of a version, as `findMatches` lists them. */
  readonly match: (specific: string) => readonly CatalogBundle[];
};

export type ChannelFilter = PackageFilter & {
  /** The package with the channels that are selected, before any is filtered. */
  readonly parts: PackageParts;
  readonly versions: PackageVersions;
  readonly isDefault: boolean;
};

/**
 * The selected part of a channel: all of it, the entries within its bounds, or its head. Undefined if
 * no entry is left: a problem for the default channel, a warning for any other.
 */
export function filterChannel(
  channel: CatalogChannel,
  filter: ChannelFilter,
): CatalogChannel | undefined {
  if (filter.full) return channel;
  const bounds = findBounds(channel, filter);
  const range = formatRange(bounds);
  const names = keepBounds(channel, { ...filter, bounds, range });
  if (names === undefined) return undefined;
  const entries = channel.entries.filter(({ name }) => names.has(name));
  if (entries.length === 0) {
    reportEmpty(channel, { ...filter, bounds, range: range ?? '' });
    return undefined;
  }
  return entries.length === channel.entries.length ? channel : { ...channel, entries };
}

function keepBounds(
  channel: CatalogChannel,
  { range, ...filter }: Omit<RangeOfChannel, 'range'> & { readonly range: string | undefined },
): ReadonlySet<string> | undefined {
  const { minBundle } = filter.bounds;
  if (minBundle !== undefined) return keepAbove(channel, { ...filter, minBundle });
  return range === undefined ? keepHead(channel, filter) : keepRange(channel, { ...filter, range });
}

function findBounds(channel: CatalogChannel, { selected }: ChannelFilter): Bounds {
  const own = selected?.channels.find(({ name }) => name === channel.name);
  if (own !== undefined && hasBounds(own)) return own;
  return selected ?? {};
}

type RangeOfChannel = ChannelFilter & { readonly bounds: Bounds; readonly range: string };

/** Undefined if a problem was reported. */
function keepHead(channel: CatalogChannel, filter: ChannelFilter): ReadonlySet<string> | undefined {
  const graph = readGraph(channel, filter);
  return graph && new Set([graph.head.name]);
}

/** Undefined if a problem was reported. */
function keepAbove(
  channel: CatalogChannel,
  filter: ChannelFilter & { readonly minBundle: string },
): ReadonlySet<string> | undefined {
  const { minBundle, report } = filter;
  if (readGraph(channel, filter) === undefined) return undefined;
  const names = channel.entries.map(({ name }) => name);
  if (names.includes(minBundle)) return listAbove(channel, minBundle);
  const guess = appendSuggestion(minBundle, names);
  report.addProblem(`${locate(channel)} has no bundle "${minBundle}"${guess}`);
  return undefined;
}

function keepRange(
  channel: CatalogChannel,
  filter: RangeOfChannel,
): ReadonlySet<string> | undefined {
  const specific = readSpecificVersion(filter.bounds);
  if (specific !== undefined) return keepVersion(channel, { ...filter, specific });
  const graph = readGraph(channel, filter);
  if (graph === undefined) return undefined;
  const selected = filterByRange(graph, { range: filter.range, versions: filter.versions.known });
  for (const warning of selected.warnings)
    filter.report.addWarning(`${locate(channel)}: ${warning}`);
  return selected.names;
}

function readGraph(channel: CatalogChannel, { report }: ChannelFilter): ChannelGraph | undefined {
  try {
    return planChannelGraph(channel);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const line of error.message.split('\n')) report.addProblem(`${locate(channel)}: ${line}`);
    return undefined;
  }
}

/** @param channels those that are selected, before any is filtered */
export function readVersions({ channels, bundles }: PackageParts): PackageVersions {
  const entries = new Set(channels.flatMap((channel) => channel.entries.map(({ name }) => name)));
  const matched = new Map<string, readonly CatalogBundle[]>();
  return {
    known: new Map(
      bundles
        .filter(({ name }) => entries.has(name))
        .flatMap(({ name, version }) => (version === undefined ? [] : [[name, version]])),
    ),
    match(specific) {
      const matches = matched.get(specific) ?? findMatches(bundles, specific);
      matched.set(specific, matches);
      return matches;
    },
  };
}

/** Keeps one version: build metadata does not count, so rebuilds of a version match as well. */
function keepVersion(
  channel: CatalogChannel,
  filter: RangeOfChannel & { readonly specific: string },
): ReadonlySet<string> | undefined {
  const { parts, versions, report, specific } = filter;
  const matches = versions.match(specific);
  if (matches.length === 0) {
    const text = `error finding specific bundle: specific version ${specific} not found in bundles`;
    report.addProblem(
      `package "${parts.name}": ${text}`,
      adviseVersions(filter.bounds, parts.bundles),
    );
    return undefined;
  }
  const entries = new Set(channel.entries.map(({ name }) => name));
  const [best, ...others] = preferExact(
    matches.filter(({ name }) => entries.has(name)),
    specific,
  );
  if (best === undefined) return new Set();
  if (others.length > 0)
    report.addWarning(
      `${locate(channel)}: version ${specific} is shared by ${[best, ...others].map(({ name }) => `"${name}"`).join(', ')}; "${best.name}" is selected`,
    );
  return new Set([best.name]);
}

/** Prefers the exact build if the bound names one. */
function preferExact(
  matches: readonly CatalogBundle[],
  specific: string,
): readonly CatalogBundle[] {
  const exact = specific.includes('+')
    ? matches.filter(({ version }) => version === completeVersion(specific))
    : [];
  return exact.length > 0 ? exact : matches;
}

/** The bundles of a version, regardless of build metadata; the highest build first. */
export function findMatches(bundles: readonly CatalogBundle[], specific: string): CatalogBundle[] {
  const wanted = parseBundleVersion(completeVersion(specific) ?? '');
  const candidates: { readonly bundle: CatalogBundle; readonly version: BundleVersion }[] = [];
  for (const bundle of bundles) {
    const version = parseBundleVersion(bundle.version ?? '');
    if (
      wanted !== undefined &&
      version !== undefined &&
      compareBundleVersions(version, wanted) === 0
    )
      candidates.push({ bundle, version });
  }
  candidates.sort(
    (a, b) => compareBuilds(b.version, a.version) || compareText(b.bundle.name, a.bundle.name),
  );
  return candidates.map(({ bundle }) => bundle);
}

function reportEmpty(
  channel: CatalogChannel,
  { isDefault, bounds, range, parts, report }: RangeOfChannel,
): void {
  if (!isDefault) {
    report.addWarning(`${locate(channel)} has nothing in version range "${range}" and is left out`);
    return;
  }
  const names = new Set(channel.entries.map(({ name }) => name));
  const bundles = parts.bundles.filter(({ name }) => names.has(name));
  report.addProblem(
    `${locate(channel)} has version range "${range}" that results in an empty channel`,
    adviseVersions(bounds, bundles) ?? 'widen minVersion and maxVersion',
  );
}

function locate(channel: CatalogChannel): string {
  return `package "${channel.package}" channel "${channel.name}"`;
}
