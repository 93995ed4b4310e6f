import type { Reference } from '../../registry/index.ts';
import type { Destination } from './sets.ts';

export const MIRROR_SETS = ['release', 'operator', 'generic'] as const;

/** The kind of content of an image, in the words of the cluster's objects. */
export type MirrorSetName = (typeof MIRROR_SETS)[number];

export type MirrorScope = 'namespace' | 'repository';

/** A repository, a namespace or a whole registry, and its copies for a node. Plain JSON. */
export type PlannedMirror = {
  /** `registry/path`; the registry alone when repositories without a namespace represent it. */
  readonly source: string;
  /** Paths in the node's registry; empty for the registry itself. In order, each once. */
  readonly mirrors: readonly string[];
  /** Mirrors that are not on the media, host and path; asked after the ones that are. */
  readonly elsewhere?: readonly string[];
  readonly set: MirrorSetName;
  /** For the cluster, an ImageDigestMirrorSet or an ImageTagMirrorSet. */
  readonly by: 'digest' | 'tag';
};

export type MirroredImage = {
  /** Reference as it is named, by tag or digest or both. */
  readonly source: Reference;
  readonly destination: Destination;
  readonly category: MirrorSetName;
  readonly kind?: 'release-image' | 'catalog' | 'signature' | 'other' | undefined;
};

type Mapping = Pick<PlannedMirror, 'source' | 'set' | 'by'> & { readonly mirror: string };

/**
 * The only mapping for the cluster's mirror sets and the nodes' registries.conf: sets in the order of
 * {@link MIRROR_SETS}, digests before tags, then in the order of the images. Without catalogs, whose copies
 * CatalogSources name, and signatures, which are next to the image that they sign.
 */
export function planMirrors(images: readonly MirroredImage[]): readonly PlannedMirror[] {
  const listed = images.filter(({ kind }) => kind !== 'catalog' && kind !== 'signature');
  const mappings = addHidden(
    listed.flatMap((image) => mapImage(image, cutToScope(image))),
    listed.flatMap((image) => mapImage(image, keepRepository(image))),
  );
  return MIRROR_SETS.flatMap((set) =>
    (['digest', 'tag'] as const).flatMap((by) =>
      mergeMappings(mappings.filter((mapping) => mapping.set === set && mapping.by === by)),
    ),
  );
}

/** Extends the entry of the same source, set and kind if it exists. */
export function joinMirrors(
  known: readonly PlannedMirror[],
  added: readonly PlannedMirror[],
): readonly PlannedMirror[] {
  const keyOf = ({ source, set, by }: PlannedMirror): string => JSON.stringify([source, set, by]);
  const joined = new Map<string, PlannedMirror>();
  for (const mirror of [...known, ...added]) {
    const before = joined.get(keyOf(mirror));
    const elsewhere = [...(before?.elsewhere ?? []), ...(mirror.elsewhere ?? [])];
    joined.set(keyOf(mirror), {
      ...mirror,
      mirrors: [...new Set([...(before?.mirrors ?? []), ...mirror.mirrors])],
      ...(elsewhere.length > 0 && { elsewhere: [...new Set(elsewhere)] }),
    });
  }
  return [...joined.values()];
}

export const formatMirror = (registry: string, path: string): string =>
  path === '' ? registry : `${registry}/${path}`;

type Cut = Pick<Mapping, 'source' | 'mirror'>;

function mapImage({ source, category, kind }: MirroredImage, cut: Cut): Mapping[] {
  const isByDigest = source.digest !== undefined || kind === 'release-image';
  const by = [
    ...(isByDigest ? (['digest'] as const) : []),
    ...(source.tag === undefined ? [] : (['tag'] as const)),
  ];
  return by.map((by) => ({ ...cut, set: category, by }));
}

const keepRepository = ({ source, destination }: MirroredImage): Cut => ({
  source: `${source.registry}/${source.repository}`,
  mirror: destination.repository,
});

/**
 * A copy whose path ends with the path of its source represents the whole namespace. Whole parts of the path
 * are compared: `app` within `my-app` is another name. The release image has two copies, in an order that
 * matters, so it always has a separate entry.
 */
function cutToScope(image: MirroredImage): Cut {
  const { registry, repository } = image.source;
  const mirror = image.destination.repository;
  const isNamespace = image.kind !== 'release-image' && `/${mirror}`.endsWith(`/${repository}`);
  const scope: MirrorScope = isNamespace ? 'namespace' : 'repository';
  if (scope === 'repository') return keepRepository(image);
  return { source: formatMirror(registry, parentOf(repository)), mirror: parentOf(mirror) };
}

/**
 * Only the mirrors of the longest source that covers an image are asked, so an image in another place can
 * hide its namespace from others. Those get a separate entry, which may hide others again.
 */
function addHidden(mappings: readonly Mapping[], whole: readonly Mapping[]): readonly Mapping[] {
  let all = mappings;
  for (;;) {
    const bySource = groupBySource(all);
    const hidden = whole.filter((image) => !isFound(image, bySource));
    if (hidden.length === 0) return all;
    all = [...all, ...hidden];
  }
}

function groupBySource(mappings: readonly Mapping[]): ReadonlyMap<string, readonly Mapping[]> {
  const groups = new Map<string, Mapping[]>();
  for (const mapping of mappings) {
    const group = groups.get(mapping.source) ?? [];
    group.push(mapping);
    groups.set(mapping.source, group);
  }
  return groups;
}

function isFound(image: Mapping, bySource: ReadonlyMap<string, readonly Mapping[]>): boolean {
  for (let scope = image.source; scope !== ''; scope = parentOf(scope)) {
    const rest = image.source.slice(scope.length);
    const entries = bySource.get(scope);
    if (entries === undefined) continue;
    return entries.some(
      ({ by, mirror }) => by === image.by && (mirror + rest).replace(/^\//, '') === image.mirror,
    );
  }
  return false;
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
