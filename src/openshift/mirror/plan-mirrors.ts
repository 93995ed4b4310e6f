import type { Reference } from '../../registry/reference.ts';
import type { Destination } from './image-set.ts';

export const MIRROR_SETS = ['release', 'operator', 'generic'] as const;

/** What kind of content an image is, in the words of the cluster's objects. */
export type MirrorSetName = (typeof MIRROR_SETS)[number];

export type MirrorScope = 'namespace' | 'repository';

/** A repository, a namespace or a whole registry, and where a node has its copies. Plain JSON. */
export type PlannedMirror = {
  /** `registry/path`; the registry alone when repositories without a namespace stand in for it. */
  readonly source: string;
  /** Paths in the node's registry; empty for the registry itself. In order, each once. */
  readonly mirrors: readonly string[];
  readonly set: MirrorSetName;
  /** How pods name the images: an ImageDigestMirrorSet or an ImageTagMirrorSet tells the cluster. */
  readonly by: 'digest' | 'tag';
};

export type MirroredImage = {
  /** As it is named, by tag or digest or both. */
  readonly source: Reference;
  readonly destination: Destination;
  readonly category: MirrorSetName;
  readonly kind?: 'release-image' | 'catalog' | 'signature' | 'other' | undefined;
};

type Mapping = Pick<PlannedMirror, 'source' | 'set' | 'by'> & { readonly mirror: string };

/**
 * The one mapping that the cluster's mirror sets and the nodes' registries.conf are made of: sets in
 * the order of {@link MIRROR_SETS}, digests before tags, then in the order of the images. Catalogs are
 * not in it, because CatalogSources name their copies; signatures are looked up beside what they sign.
 */
export function planMirrors(images: readonly MirroredImage[]): readonly PlannedMirror[] {
  const mappings = images
    .filter(({ kind }) => kind !== 'catalog' && kind !== 'signature')
    .flatMap(mapImage);
  return MIRROR_SETS.flatMap((set) =>
    (['digest', 'tag'] as const).flatMap((by) =>
      mergeMappings(mappings.filter((mapping) => mapping.set === set && mapping.by === by)),
    ),
  );
}

/** A copy's place as it is written in a cluster's objects and in registries.conf. */
export const formatMirror = (registry: string, path: string): string =>
  path === '' ? registry : `${registry}/${path}`;

function mapImage({ source, destination, category, kind }: MirroredImage): Mapping[] {
  const isRelease = kind === 'release-image';
  const isTagged = source.tag !== undefined;
  const by = [
    ...(source.digest !== undefined || isRelease ? (['digest'] as const) : []),
    ...(isTagged ? (['tag'] as const) : []),
  ];
  const cut = cutToScope(source, destination.repository);
  return by.map((by) => ({ ...cut, set: category, by }));
}

/**
 * A copy whose path ends with the path of its source stands for the whole namespace: other images of
 * it are found without an entry of their own. Whole parts of the path are compared, because `app`
 * within `my-app` is another name, and its namespace another place.
 */
function cutToScope(
  { registry, repository }: Reference,
  mirror: string,
): Pick<Mapping, 'source' | 'mirror'> {
  const scope: MirrorScope = `/${mirror}`.endsWith(`/${repository}`) ? 'namespace' : 'repository';
  if (scope === 'repository') return { source: `${registry}/${repository}`, mirror };
  return { source: formatMirror(registry, parentOf(repository)), mirror: parentOf(mirror) };
}

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));

function mergeMappings(mappings: readonly Mapping[]): PlannedMirror[] {
  const merged = new Map<string, PlannedMirror>();
  for (const { source, mirror, set, by } of mappings) {
    const known = merged.get(source)?.mirrors ?? [];
    const mirrors = known.includes(mirror) ? known : [...known, mirror];
    merged.set(source, { source, mirrors, set, by });
  }
  return [...merged.values()];
}
