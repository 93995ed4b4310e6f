import type {
  Api,
  Catalog,
  CatalogBundle,
  CatalogChannel,
  ChannelEntry,
  CatalogPlace,
  Requirement,
} from '../../src/fbc/catalog.ts';

const PLACE: CatalogPlace = {
  file: 'catalog.json',
  number: 1,
  offset: 0,
  size: 2,
  syntax: 'json',
};

export const EMPTY: Catalog = {
  packages: [],
  channels: [],
  bundles: [],
  deprecations: [],
  others: [],
  malformed: [],
};

type PackageOptions = {
  readonly channels: Readonly<Record<string, readonly ChannelEntry[]>>;
  /** By default the first channel. */
  readonly defaultChannel?: string | undefined;
  /** Of bundles whose version is not what follows `v` in their name; null for none at all. */
  readonly versions?: Readonly<Record<string, string | null>>;
  /** Entries without a bundle. */
  readonly missing?: readonly string[];
  readonly requirements?: Readonly<Record<string, readonly Requirement[]>>;
  readonly provides?: Readonly<Record<string, readonly Api[]>>;
};

/** A catalog of one package, whose bundles are what its channels name: `op.v1.2.3` has version 1.2.3. */
export function makePackage(name: string, options: PackageOptions): Catalog {
  const channels = Object.entries(options.channels);
  const [first] = Object.keys(options.channels);
  const names = new Set(channels.flatMap(([, entries]) => entries.map((entry) => entry.name)));
  for (const extra of Object.keys(options.versions ?? {})) names.add(extra);
  return {
    ...EMPTY,
    packages: [
      {
        name,
        defaultChannel: 'defaultChannel' in options ? options.defaultChannel : first,
        place: PLACE,
      },
    ],
    channels: channels.map(([channel, entries]) => makeChannel(channel, entries, name)),
    bundles: [...names]
      .filter((bundle) => options.missing?.includes(bundle) !== true)
      .map((bundle) => makeBundle(name, bundle, options)),
  };
}

export function makeChannel(
  name: string,
  entries: readonly ChannelEntry[],
  owner = 'op',
): CatalogChannel {
  return { package: owner, name, entries, place: PLACE };
}

function makeBundle(owner: string, name: string, options: PackageOptions): CatalogBundle {
  const known = options.versions?.[name];
  const version = known === undefined ? name.slice(name.indexOf('.v') + 2) : known;
  return {
    package: owner,
    name,
    image: `registry.example/${name}`,
    ...(version === null ? {} : { version }),
    requirements: options.requirements?.[name] ?? [],
    provides: options.provides?.[name] ?? [],
    relatedImages: [],
    place: PLACE,
  };
}

export function joinCatalogs(...catalogs: readonly Catalog[]): Catalog {
  return {
    packages: catalogs.flatMap((catalog) => catalog.packages),
    channels: catalogs.flatMap((catalog) => catalog.channels),
    bundles: catalogs.flatMap((catalog) => catalog.bundles),
    deprecations: catalogs.flatMap((catalog) => catalog.deprecations),
    others: catalogs.flatMap((catalog) => catalog.others),
    malformed: catalogs.flatMap((catalog) => catalog.malformed),
  };
}

/** `1.2.0`, `1.1.0`, ... each replacing the next: `op.v1.2.0` is the head. */
export function makeChain(...versions: readonly string[]): readonly ChannelEntry[] {
  return versions.map((version, index) => {
    const next = versions[index + 1];
    return { name: `op.v${version}`, ...(next === undefined ? {} : { replaces: `op.v${next}` }) };
  });
}

/** Channel name to names of its entries. */
export function listEntries(catalog: Catalog): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    catalog.channels.map((channel) => [channel.name, channel.entries.map(({ name }) => name)]),
  );
}
