import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import type { Reference } from '../../registry/index.ts';
import { formatDefaultSourceName, formatManifest, type NodeManifest } from './manifests.ts';

export type ServedCatalog = {
  /** Reference of the catalog in the configuration. */
  readonly name: string;
  readonly source: Reference;
  readonly destination: { readonly repository: string; readonly tag: string };
  /** Digest of the served image: a filtered catalog has a separate digest. */
  readonly digest?: Digest;
};

export type CatalogResourcesInput = {
  readonly catalogs: readonly ServedCatalog[];
  /** Host and port. */
  readonly registry: string;
  /** True if CatalogSources get the names that a connected cluster gives them. */
  readonly useDefaultSourceNames: boolean;
  /** True if images are named by digest, if known: the tag may name another image in the registry. */
  readonly pinned?: boolean;
};

/** Characters of the part of a name that distinguishes catalogs of one repository. */
const SUFFIX_SIZE = 12;
/** OLM gives the name to a Service (RFC 1035 label) and to the value of a label of every object. */
const MAX_NAME_SIZE = 63;
/** Hex digits that replace the part that is cut off. */
const HASH_SIZE = 8;
/** RFC 1123 label; every DNS-1035 label is one, too. */
const NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

/**
 * A CatalogSource for each catalog in its own file, `cs-<repository>-<version>.yaml`, with a name of at most
 * 63 characters. They go to the nodes next to the user's manifests, whose catalogs may not have these names.
 *
 * @throws ConfigError `catalog.bad-name`, `catalog.same-name`
 */
export function renderCatalogResources(input: CatalogResourcesInput): readonly NodeManifest[] {
  const { catalogs, registry, useDefaultSourceNames } = input;
  const named = catalogs.map((catalog) => {
    const whole = nameResource('cs', catalog);
    const name = useDefaultSourceNames ? formatDefaultSourceName(whole) : whole;
    return { catalog, plain: shorten(whole, catalog), name: shorten(name, catalog) };
  });
  refuseSameNames(named, useDefaultSourceNames);
  return named.map(({ catalog, plain, name }) => ({
    name: `${plain}.yaml`,
    text: formatManifest({
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'CatalogSource',
      metadata: { name, namespace: 'openshift-marketplace' },
      spec: { sourceType: 'grpc', image: formatImage(catalog, registry, input.pinned) },
    }),
  }));
}

/**
 * ClusterCatalogs `cc-<repository>-<version>`, for clusters that have operator-controller. Nodes do not get
 * them: if the capability is off, a cluster's bootstrap waits forever for the unknown kind.
 *
 * @throws ConfigError `catalog.bad-name`, `catalog.same-name`
 */
export function renderClusterCatalogs(
  input: Omit<CatalogResourcesInput, 'useDefaultSourceNames'>,
): readonly NodeManifest[] {
  const named = input.catalogs.map((catalog) => ({
    catalog,
    name: shorten(nameResource('cc', catalog), catalog),
  }));
  refuseSameNames(named, false);
  return named.map(({ catalog, name }) => ({
    name: `${name}.yaml`,
    text: formatManifest({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name },
      spec: {
        source: { type: 'Image', image: { ref: formatImage(catalog, input.registry) } },
        priority: 0,
        availabilityMode: 'Available',
      },
    }),
  }));
}

/** Reference by tag, which a catalog's pod may follow; a pinned catalog stays pinned. */
function formatImage(catalog: ServedCatalog, registry: string, pinned = false): string {
  const { destination, digest } = catalog;
  const image = `${registry}/${destination.repository}`;
  return (pinned || pinOf(catalog) !== undefined) && digest !== undefined
    ? `${image}@${digest}`
    : `${image}:${destination.tag}`;
}

/** The digest, if the configuration names a catalog by it alone and gives its copy no tag. */
const pinOf = ({ source, destination }: ServedCatalog): Digest | undefined =>
  source.tag === undefined && destination.tag.startsWith('sha256-') ? source.digest : undefined;

function nameResource(prefix: 'cs' | 'cc', catalog: ServedCatalog): string {
  const { repository } = catalog.destination;
  const base = repository.slice(repository.lastIndexOf('/') + 1);
  const name = `${prefix}-${base}-${suffixOf(catalog)}`.replaceAll('.', '-');
  if (NAME.test(name)) return name;
  throw new ConfigError(
    'catalog.bad-name',
    `catalog ${catalog.name} would be called "${name}" in the cluster`,
    {
      expected: 'only a-z, 0-9 and -, no - at the end',
      found: name,
      hint: 'give the catalog another targetCatalog or targetTag',
    },
  );
}

/** Ends a name that is too long with a hash of the place in the registry, which is unique. */
function shorten(name: string, { destination }: ServedCatalog): string {
  if (name.length <= MAX_NAME_SIZE) return name;
  const hash = hexOf(digestOf(`${destination.repository}:${destination.tag}`)).slice(0, HASH_SIZE);
  return `${name.slice(0, MAX_NAME_SIZE - HASH_SIZE - 1)}-${hash}`;
}

function suffixOf(catalog: ServedCatalog): string {
  const pin = pinOf(catalog);
  const version = pin === undefined ? catalog.destination.tag : hexOf(pin);
  const suffix = version.slice(0, SUFFIX_SIZE).toLowerCase();
  return suffix.replaceAll(/[^a-z0-9-]/g, '-') || '0';
}

type Named = { readonly name: string; readonly catalog: ServedCatalog };

function refuseSameNames(named: readonly Named[], useDefaultSourceNames: boolean): void {
  const seen = new Map<string, ServedCatalog>();
  for (const { name, catalog } of named) {
    const other = seen.get(name);
    if (other) throw sameName(name, [other, catalog], useDefaultSourceNames);
    seen.set(name, catalog);
  }
}

function sameName(
  name: string,
  [first, second]: readonly [ServedCatalog, ServedCatalog],
  useDefaultSourceNames: boolean,
): ConfigError {
  const [expected, found] = [first.name, second.name];
  return new ConfigError(
    'catalog.same-name',
    `catalogs ${expected} and ${found} would both be called "${name}" in the cluster`,
    {
      expected,
      found,
      hint: useDefaultSourceNames
        ? 'set useDefaultSourceNames to false, or give one of the two another targetCatalog'
        : 'give one of the two another targetCatalog or targetTag',
    },
  );
}
