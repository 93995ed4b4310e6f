import { ConfigError } from '../../../base/errors.ts';
import { append, groupBy } from '../../../base/lists.ts';
import type { Catalog, CatalogBundle, CatalogChannel } from '../catalog.ts';
import { planChannelGraph, type ChannelGraph } from '../filter/channel-graph.ts';
import {
  compareBuilds,
  compareText,
  parseBundleVersion,
} from '../filter/version/bundle-version.ts';

/** A bundle that could be added, and the channel it would be installed from. */
export type Candidate = {
  readonly bundle: CatalogBundle;
  readonly channel: CatalogChannel;
  readonly graph: ChannelGraph;
};

type GraphedChannel = Omit<Candidate, 'bundle'>;

/**
 * Every bundle of a catalog that OLM could install, in the order in which OLM prefers them to meet a
 * requirement: default channels first, then by package and channel; within a channel from its head
 * along `replaces`, without what another entry skips (operator-lifecycle-manager,
 * pkg/controller/registry/resolver/resolver.go, `sortBundles` and `sortChannel`). So of a package the
 * highest version of its default channel that fits comes first. Skipped bundles come last, the highest
 * version first: alone in a rebuilt channel nothing skips them.
 *
 * @param defaults the default channel of each package
 */
export function listCandidates(
  catalog: Catalog,
  defaults: ReadonlyMap<string, string | undefined>,
): readonly Candidate[] {
  const bundles = groupBy(catalog.bundles, (bundle) => bundle.package);
  const channels = catalog.channels
    .filter((channel) => defaults.has(channel.package))
    .flatMap(graphChannel)
    .sort((a, b) => compareChannels(a.channel, b.channel, defaults));
  const preferred: Candidate[] = [];
  const skipped: Candidate[] = [];
  for (const graphed of channels) {
    const known = new Map(
      (bundles.get(graphed.channel.package) ?? [])
        .filter(({ version }) => parseBundleVersion(version ?? '') !== undefined)
        .map((bundle) => [bundle.name, bundle]),
    );
    const first = new Set(listPreferred(graphed.graph, graphed.channel));
    const rest = graphed.channel.entries.map(({ name }) => name).filter((name) => !first.has(name));
    const find = (name: string): readonly Candidate[] => {
      const bundle = known.get(name);
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

/** None for a channel that is not one graph: OLM installs nothing from it. */
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
