import type { Catalog, CatalogBundle, CatalogChannel } from '../catalog.ts';
import { assembleCatalog } from '../filter/assemble-catalog.ts';
import { createFilterReport } from '../filter/filter-report.ts';
import { finishCatalog, type FilteredCatalog } from '../filter/filter-catalog.ts';
import { compareText } from '../filter/version/bundle-version.ts';
import { keepChain } from '../filter/version/range-filter.ts';
import { listCandidates, type Candidate } from './candidates.ts';

/** A filtered catalog that bundles are added to. */
export type GrowingCatalog = {
  readonly selected: () => readonly CatalogBundle[];
  /** In OLM's order of preference. */
  readonly candidates: () => readonly Candidate[];
  /**
   * Adds a bundle, and what its channel needs to stay one upgrade path: what lies between it and what is
   * selected of the channel.
   *
   * @returns the bundles that are new, the candidate first
   */
  readonly add: (candidate: Candidate) => readonly CatalogBundle[];
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
  let candidates: readonly Candidate[] | undefined;
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

/** The default channels that a cluster would see: a package that is selected may have another than before. */
const listDefaults = ({
  available,
  catalog,
}: FilteredCatalog): ReadonlyMap<string, string | undefined> =>
  new Map(
    [...available.packages, ...catalog.packages].map((item) => [item.name, item.defaultChannel]),
  );

/** A package that is new has its own default channel where that is selected, else the first by name. */
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
