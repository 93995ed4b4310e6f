import { ConfigError } from '../base/errors.ts';
import { append, groupBy } from '../base/lists.ts';
import type { Catalog, CatalogBundle, CatalogChannel } from './catalog.ts';
import { planChannelGraph, type ChannelGraph } from './channel-graph.ts';
import { keepChain } from './constraint.ts';
import { assembleCatalog, finishCatalog, type FilteredCatalog } from './filter/filter-catalog.ts';
import { createFilterReport } from './filter/report.ts';
import { compareBuilds, compareText, parseBundleVersion } from './version.ts';

/** A bundle that could be added, and the channel it would be installed from. */
export type BundleCandidate = {
  readonly bundle: CatalogBundle;
  readonly channel: CatalogChannel;
  readonly graph: ChannelGraph;
};

/** A filtered catalog that bundles are added to. */
export type GrowingCatalog = {
  readonly selected: () => readonly CatalogBundle[];
  /** Candidates in OLM's order of preference. */
  readonly candidates: () => readonly BundleCandidate[];
  /**
   * Adds a bundle, and what its channel needs to stay one upgrade path: the entries between it and the
   * selected entries of the channel.
   *
   * @returns the bundles that are new, the candidate first
   */
  readonly add: (candidate: BundleCandidate) => readonly CatalogBundle[];
  /** The catalog as it is now, with further warnings. */
  readonly finish: (
    name: string,
    warnings: readonly string[],
  ) => Pick<FilteredCatalog, 'catalog' | 'warnings' | 'isWhole'>;
};

export function growCatalog(filtered: FilteredCatalog): GrowingCatalog {
  const { available } = filtered;
  const grown = new Map<string, ReadonlySet<string>>();
  const identify = (channel: CatalogChannel): string =>
    JSON.stringify([channel.package, channel.name]);
  const before = new Map(
    filtered.catalog.channels.map((channel) => [identify(channel), namesOf(channel)]),
  );
  let bundles = filtered.catalog.bundles;
  let candidates: readonly BundleCandidate[] | undefined;
  return {
    selected: () => bundles,
    candidates: () => (candidates ??= listCandidates(available, listDefaults(filtered))),
    add({ bundle, channel, graph }) {
      const key = identify(channel);
      const wanted = new Set([...(grown.get(key) ?? before.get(key) ?? []), bundle.name]);
      const names = new Set([...wanted, ...keepChain(graph, wanted)]);
      grown.set(key, names);
      const known = new Set(bundles);
      const added = available.bundles.filter(
        (one) => one.package === channel.package && names.has(one.name) && !known.has(one),
      );
      bundles = [...bundles, ...added];
      const between = added.filter((one) => one.name !== bundle.name);
      return [bundle, ...between.sort((a, b) => compareText(a.name, b.name))];
    },
    finish(name, warnings) {
      const report = createFilterReport(name === '' ? undefined : name);
      for (const warning of warnings) report.addWarning(warning);
      if (grown.size === 0)
        return {
          catalog: filtered.catalog,
          isWhole: filtered.isWhole,
          warnings: [...filtered.warnings, ...report.listWarnings()],
        };
      const channels = available.channels.flatMap((channel) => {
        const key = identify(channel);
        const names = grown.get(key) ?? before.get(key);
        return names === undefined ? [] : [keepEntries(channel, names)];
      });
      const packages = listPackages(filtered, channels);
      const owners = new Set([
        ...packages.map((item) => item.name),
        ...filtered.catalog.others.map((other) => other.package),
      ]);
      const owns = (owner: string): boolean => owners.has(owner);
      const catalog = assembleCatalog(available, { packages, channels, bundles }, owns);
      const finished = finishCatalog(catalog, { source: filtered.source, report });
      return { ...finished, warnings: [...filtered.warnings, ...finished.warnings] };
    },
  };
}

const namesOf = ({ entries }: CatalogChannel): ReadonlySet<string> =>
  new Set(entries.map(({ name }) => name));

function keepEntries(channel: CatalogChannel, names: ReadonlySet<string>): CatalogChannel {
  const entries = channel.entries.filter(({ name }) => names.has(name));
  return entries.length === channel.entries.length ? channel : { ...channel, entries };
}

/** The default channels that a cluster would see: the selection may have changed that of a package. */
const listDefaults = ({
  available,
  catalog,
}: FilteredCatalog): ReadonlyMap<string, string | undefined> =>
  new Map(
    [...available.packages, ...catalog.packages].map((item) => [item.name, item.defaultChannel]),
  );

/** A new package has its own default channel if that is selected, else the first by name. */
function listPackages(
  { available, catalog }: FilteredCatalog,
  channels: readonly CatalogChannel[],
): Catalog['packages'] {
  const selected = new Map(catalog.packages.map((item) => [item.name, item]));
  return available.packages.flatMap((item) => {
    const known = selected.get(item.name);
    if (known !== undefined) return [known];
    const names = channels
      .filter((channel) => channel.package === item.name)
      .map(({ name }) => name)
      .sort();
    const [first] = names;
    if (first === undefined) return [];
    const { defaultChannel } = item;
    return [
      defaultChannel !== undefined && names.includes(defaultChannel)
        ? item
        : { ...item, defaultChannel: first },
    ];
  });
}

type GraphedChannel = Omit<BundleCandidate, 'bundle'>;

/**
 * Every bundle of a catalog that OLM could install, in the order in which OLM prefers them to meet a
 * requirement: default channels first, then by package and channel; within a channel from its head
 * along `replaces`, without what another entry skips (operator-lifecycle-manager,
 * pkg/controller/registry/resolver/resolver.go, `sortBundles` and `sortChannel`). So the highest version
 * in a package's default channel that meets the requirement comes first. Skipped bundles come last, the
 * highest version first: in a rebuilt channel without the entry that skips them, OLM can install them.
 *
 * @param defaults the default channel of each package
 */
function listCandidates(
  catalog: Catalog,
  defaults: ReadonlyMap<string, string | undefined>,
): readonly BundleCandidate[] {
  const installable = catalog.bundles.filter(
    ({ version }) => parseBundleVersion(version ?? '') !== undefined,
  );
  const bundles = new Map(
    [...groupBy(installable, (bundle) => bundle.package)].map(([owner, own]) => [
      owner,
      new Map(own.map((bundle) => [bundle.name, bundle])),
    ]),
  );
  const channels = catalog.channels
    .filter((channel) => defaults.has(channel.package))
    .flatMap(graphChannel)
    .sort((a, b) => compareChannels(a.channel, b.channel, defaults));
  const preferred: BundleCandidate[] = [];
  const skipped: BundleCandidate[] = [];
  for (const graphed of channels) {
    const known = bundles.get(graphed.channel.package);
    const first = new Set(listPreferred(graphed.graph, graphed.channel));
    const rest = graphed.channel.entries.map(({ name }) => name).filter((name) => !first.has(name));
    const find = (name: string): readonly BundleCandidate[] => {
      const bundle = known?.get(name);
      return bundle === undefined ? [] : [{ ...graphed, bundle }];
    };
    append(preferred, [...first].flatMap(find));
    append(
      skipped,
      rest.flatMap(find).sort((a, b) => compareVersions(b.bundle, a.bundle)),
    );
  }
  return [...preferred, ...skipped];
}

/** Builds the graph of a channel; empty if the channel is not one graph, as OLM installs nothing from it. */
function graphChannel(channel: CatalogChannel): readonly GraphedChannel[] {
  try {
    return [{ channel, graph: planChannelGraph(channel) }];
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

function compareChannels(
  a: CatalogChannel,
  b: CatalogChannel,
  defaults: ReadonlyMap<string, string | undefined>,
): number {
  const isDefault = (channel: CatalogChannel): boolean =>
    defaults.get(channel.package) === channel.name;
  return (
    Number(isDefault(b)) - Number(isDefault(a)) ||
    compareText(a.package, b.package) ||
    compareText(a.name, b.name)
  );
}

function listPreferred({ chain }: ChannelGraph, { entries }: CatalogChannel): readonly string[] {
  const skipped = new Set(entries.flatMap(({ skips = [] }) => skips));
  return chain.map(({ name }) => name).filter((name) => !skipped.has(name));
}

function compareVersions(a: CatalogBundle, b: CatalogBundle): number {
  const [first, second] = [a, b].map(({ version }) => parseBundleVersion(version ?? ''));
  if (first === undefined || second === undefined) return 0;
  return compareBuilds(first, second) || compareText(a.name, b.name);
}
