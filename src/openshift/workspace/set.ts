import type { Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import {
  createTreeClient,
  formatReference,
  listRepositories,
  readReference,
  type Reference,
  type RegistryClient,
} from '../../registry/index.ts';
import type { NamedImage } from '../mirror/closure.ts';
import type { PlannedMirror } from '../mirror/mirrors.ts';
import {
  RELEASE_IMAGES_REPOSITORY,
  RELEASE_REPOSITORY,
  type ImageSet,
  type WantedImage,
} from '../mirror/sets.ts';
import type { NodeManifest } from '../node/manifests.ts';
import { RELEASE_BUNDLE_REPOSITORY } from '../release/bundle.ts';
import { type Workspace, type WorkspaceMirror, readWorkspace } from './workspace.ts';

/** An image of the tree that no index of its repository has as a child, or that has a tag. */
export type WorkspaceImage = {
  readonly repository: string;
  readonly digest: Digest;
  readonly tags: readonly string[];
  /** Reference by digest, as a cluster names it. */
  readonly source: Reference;
  /** True if it holds signatures of another image. */
  readonly isSignature?: true;
};

/** The contents of a workspace, and the part of its resources that is carried. Plain JSON. */
export type SurveyedWorkspace = Pick<Workspace, 'signatures' | 'failures'> & {
  /** Sorted by repository, then by digest. */
  readonly images: readonly WorkspaceImage[];
  readonly mirrors: readonly PlannedMirror[];
  /** CatalogSources and ClusterCatalogs, with the name of the node's registry. */
  readonly resources: readonly NodeManifest[];
  /** `repository:tag` or `repository@digest` of the images that `resources` name. */
  readonly catalogImages: readonly string[];
  /** Images that the configurations in archives ask for. */
  readonly named: readonly NamedImage[];
};

/**
 * oc-mirror tags every release `VERSION-ARCH`; other images there are left over from a release that was
 * signed again or removed.
 *
 * @param version version or minor that the configuration names
 * @throws ConfigError `workspace.no-release`, `workspace.several-releases`
 */
export function findWorkspaceRelease(
  { images }: Pick<SurveyedWorkspace, 'images'>,
  version: string,
): string {
  const candidates = images.filter(
    ({ repository, tags, isSignature }) =>
      isReleaseImages(repository) && isSignature === undefined && !tags.some(isAttached),
  );
  const tagged = candidates.filter(({ tags }) => tags.length > 0);
  const named = tagged.filter(({ tags }) => tags.some((tag) => /^[.-]/.test(cut(tag, version))));
  const releases = [named, tagged, candidates].find((list) => list.length > 0) ?? [];
  const digests = new Set(releases.map(({ digest }) => digest));
  const [first] = releases;
  if (first === undefined) {
    throw new ConfigError(
      'workspace.no-release',
      `the mirror has no release: there is no image in ${RELEASE_IMAGES_REPOSITORY}`,
      { hint: 'mirror a release with oc-mirror, or set ocpRelease.url to the one it has' },
    );
  }
  if (digests.size === 1) return formatReference(first.source);
  const names = releases.map(nameInWorkspace).join(', ');
  throw new ConfigError(
    'workspace.several-releases',
    `the mirror has ${digests.size} releases: ${names}`,
    {
      expected: 'one release',
      found: names,
      hint: 'set ocpRelease.version to one of their versions, or ocpRelease.url to one of them, by digest',
    },
  );
}

const cut = (text: string, beginning: string): string =>
  text.startsWith(beginning) ? text.slice(beginning.length) : '';

const isOfReleases = (repository: string): boolean =>
  isReleaseImages(repository) || `/${repository}`.endsWith(`/${RELEASE_REPOSITORY}`);

const isReleaseImages = (repository: string): boolean =>
  `/${repository}`.endsWith(`/${RELEASE_IMAGES_REPOSITORY}`);

/** True for cosign's tags: signatures, attestations, bills of materials. */
const isAttached = (tag: string): boolean => /^sha256-[0-9a-f]{64}\.[a-z]+$/.test(tag);

/** The name of an image in the mirror: by its first tag, else by digest. */
const nameInWorkspace = ({ repository, digest, tags }: WorkspaceImage): string =>
  tags[0] === undefined ? `${repository}@${digest}` : `${repository}:${tags[0]}`;

/**
 * At their places in the tree, unless another set brings them there. The release has the names that nodes
 * expect; other release images are carried without a tag, because the machine config daemon takes any tag
 * there for the release.
 */
export function planWorkspaceSet(
  workspace: Pick<SurveyedWorkspace, 'images' | 'catalogImages'>,
  sets: readonly ImageSet[],
): ImageSet {
  const tagsLeft = compareWith(sets);
  const catalogs = new Set(workspace.catalogImages);
  return {
    name: 'workspace',
    images: workspace.images.flatMap((image): WantedImage[] => {
      const { repository, source } = image;
      const tags = tagsLeft(image);
      // A signature without a tag was replaced by a later one: nodes never find it.
      if (tags === undefined || (image.isSignature && image.tags.length === 0)) return [];
      const name = nameInWorkspace(image);
      const kind = kindOf(image, catalogs);
      return [
        {
          name,
          source,
          destination: { repository, tags },
          neededBy: [{ part: PART }],
          ...(kind && { kind }),
        },
      ];
    }),
  };
}

/** The part of the configuration to which these images belong. */
const PART = 'rest of the mirror';

function kindOf(
  { repository, digest, tags, isSignature }: WorkspaceImage,
  catalogs: ReadonlySet<string>,
): WantedImage['kind'] {
  if (isSignature || (tags.length > 0 && tags.every(isAttached))) return 'signature';
  const names = [`${repository}@${digest}`, ...tags.map((tag) => `${repository}:${tag}`)];
  return names.some((name) => catalogs.has(name)) ? 'catalog' : undefined;
}

/** The tags that remain for an image of the tree; undefined if the image does not remain. */
type TagsLeft = (image: WorkspaceImage) => readonly string[] | undefined;

function compareWith(sets: readonly ImageSet[]): TagsLeft {
  const owners = new Map<string, string>();
  for (const { name, images } of sets) {
    for (const { source, destination } of images) {
      const { repository, tags } = destination;
      // A tag next to a digest is only a name, and may belong to another image in the tree.
      const version = source.digest === undefined ? '' : `@${source.digest}`;
      if (version !== '') owners.set(`${repository}${version}`, name);
      for (const tag of tags) owners.set(`${repository}:${tag}${version}`, name);
    }
  }
  return ({ repository, digest, tags }) => {
    const owner = owners.get(`${repository}@${digest}`);
    // The medium has its own release bundle; the daemon takes each tag there for a release.
    if (owner === 'release' || repository === RELEASE_BUNDLE_REPOSITORY) return undefined;
    // Signatures of the release are planned with it.
    if (repository === RELEASE_IMAGES_REPOSITORY) return tags.some(isAttached) ? undefined : [];
    const left = tags.filter((tag) => {
      const place = `${repository}:${tag}`;
      return !owners.has(place) && !owners.has(`${place}@${digest}`);
    });
    const isTaken = owner !== undefined || left.length < tags.length;
    return isTaken && left.length === 0 ? undefined : left;
  };
}

/** `host[:port]/path`, or a host alone, in its parts. */
export function splitMirror(mirror: string): { readonly host: string; readonly path: string } {
  const slash = mirror.indexOf('/');
  if (slash === -1) return { host: mirror, path: '' };
  return { host: mirror.slice(0, slash), path: mirror.slice(slash + 1).replace(/(?<!\/)\/+$/, '') };
}

/** True if a registry has a repository at or below a path; all of it is below the empty path. */
export const hasPath = (repositories: readonly string[], path: string): boolean =>
  path === '' || repositories.some((name) => name === path || name.startsWith(`${path}/`));

/**
 * The repositories that may have an image: by the mirrors of the longest source first, then of the shorter
 * ones, then of the same path, then of that path below a namespace into which oc-mirror was configured to put
 * everything. An image by digest may be of a release of an earlier run, whose mirror sets the last run did
 * not write again: oc-mirror gives all releases these two names.
 */
function listPlaces(reference: Reference, { mirrors, repositories }: Places): readonly string[] {
  const { registry, repository } = reference;
  const name = `${registry}/${repository}`;
  const matching = mirrors
    .filter(({ source }) => name === source || name.startsWith(`${source}/`))
    .toSorted((a, b) => b.source.length - a.source.length);
  const mapped = matching.flatMap(({ source, mirrors }) =>
    mirrors.map((mirror) =>
      (splitMirror(mirror).path + name.slice(source.length)).replace(/^\//, ''),
    ),
  );
  const nested = repositories.filter((one) => one.endsWith(`/${repository}`));
  const released = reference.digest === undefined ? [] : repositories.filter(isOfReleases);
  const known = new Set(repositories);
  return [...new Set([...mapped, repository, ...nested, ...released])].filter((one) =>
    known.has(one),
  );
}

type Places = {
  readonly mirrors: readonly WorkspaceMirror[];
  readonly repositories: readonly string[];
};

/** The source of the longest matching mirror; without one, the name in the registry of the node. */
export function nameSource(
  repository: string,
  { mirrors, registry }: { readonly mirrors: readonly PlannedMirror[]; readonly registry: string },
): Reference {
  const names = mirrors.flatMap(({ source, mirrors }) =>
    mirrors.flatMap((path) => {
      if (!hasPath([repository], path)) return [];
      const rest = path === '' ? `/${repository}` : repository.slice(path.length);
      return [{ name: readReference(source + rest), length: path.length }];
    }),
  );
  const longest = names.toSorted((a, b) => b.length - a.length);
  return longest.find(({ name }) => name)?.name ?? { registry, repository };
}

/**
 * Replaces all registries: every reference is looked for in the tree, at the place its mirrors lead to.
 *
 * @throws the errors of `readWorkspace`
 */
export function openWorkspace(directory: string): RegistryClient {
  const { root, tree, mirrors } = readWorkspace(directory);
  let listing: Promise<readonly string[]> | undefined;
  return createTreeClient({
    tree,
    root,
    async repositoriesOf(reference) {
      const repositories = await (listing ??= listRepositories(tree));
      return listPlaces(reference, { mirrors, repositories });
    },
  });
}
