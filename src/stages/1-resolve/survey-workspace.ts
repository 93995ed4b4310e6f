import { isDigest, type Digest } from '../../base/digest.ts';
import type { Stage } from '../../engine/index.ts';
import { surveyArchives } from '../../media/survey-archives.ts';
import type { PlannedMirror } from '../../openshift/mirror/mirrors.ts';
import type { NodeManifest } from '../../openshift/node/manifests.ts';
import { SIMPLE_SIGNING } from '../../openshift/release/signature.ts';
import {
  hasPath,
  nameSource,
  splitMirror,
  type SurveyedWorkspace,
  type WorkspaceImage,
} from '../../openshift/workspace/set.ts';
import {
  IMAGE_MEMBER,
  readWorkspace,
  type WorkspaceCatalog,
  type WorkspaceMirror,
} from '../../openshift/workspace/workspace.ts';
import {
  hasLink,
  listRepositories,
  listTags,
  pathTo,
  readStored,
  readReference,
  readTag,
  type ImageManifest,
  type Reference,
  type RegistryTree,
} from '../../registry/index.ts';
import { parseDocument } from '../../shape/parse-text.ts';

export type SurveyWorkspaceInput = {
  /** An oc-mirror workspace: `mirrorPath` of the configuration. */
  readonly directory: string;
  /** Host and port of the node's registry: it replaces the mirrored registry in mirrors and catalogs. */
  readonly registry: string;
};

/**
 * Lists the images of an oc-mirror workspace, with every manifest checked against its digest, and puts the
 * name of the node's registry into its resources. Unfinished uploads are ignored. A mirror or catalog whose
 * repository is not in the tree is left unchanged, with a warning.
 */
export const surveyWorkspace: Stage<SurveyWorkspaceInput, SurveyedWorkspace, unknown> = {
  name: 'survey mirror',
  async run({ directory, registry }, _tools, { signal, warn, onProgress }) {
    const workspace = readWorkspace(directory);
    const { tree, archived } = workspace;
    const repositories = (await listRepositories(tree)).sort();
    for (const warning of workspace.warnings) warn(warning);
    const found = await surveyArchives(tree, archived, { registry, signal, warn });
    const mirrors = [
      ...workspace.mirrors.map((mirror) => placeMirror(mirror, repositories, warn)),
      ...found.mirrors,
    ];
    const catalogs = [
      ...workspace.catalogs.map((catalog) =>
        placeCatalog(catalog, { repositories, registry, warn }),
      ),
      ...found.catalogs,
    ];
    const images: WorkspaceImage[][] = [];
    const absent: Digest[] = [];
    for (const [index, repository] of repositories.entries()) {
      signal.throwIfAborted();
      const source = nameSource(repository, { mirrors, registry });
      const place = { tree, root: workspace.root, repository, ...(archived && { absent }) };
      images.push((await listImages(place, source)).flatMap(found.rename));
      onProgress(0, undefined, {
        note: `${index + 1} of ${repositories.length} repositories`,
      });
    }
    if (absent.length > 0) warn(describeEarlier(absent.length));
    return {
      images: images.flat(),
      mirrors,
      signatures: workspace.signatures,
      failures: workspace.failures,
      resources: catalogs.map(({ manifest }) => manifest),
      catalogImages: catalogs.flatMap(({ place }) => (place === undefined ? [] : [place])),
      named: found.named,
    };
  },
};

type Warn = (message: string) => void;

function placeMirror(
  { source, mirrors, set, by }: WorkspaceMirror,
  repositories: readonly string[],
  warn: Warn,
): PlannedMirror {
  const isHere = (mirror: string): boolean => hasPath(repositories, splitMirror(mirror).path);
  const elsewhere = mirrors.filter((mirror) => !isHere(mirror));
  for (const mirror of elsewhere) {
    warn(`mirror ${mirror} of ${source} is not in the mirror's data: it is left unchanged`);
  }
  return {
    source,
    set,
    by,
    mirrors: mirrors.filter(isHere).map((mirror) => splitMirror(mirror).path),
    ...(elsewhere.length > 0 && { elsewhere }),
  };
}

type Placing = {
  readonly repositories: readonly string[];
  readonly registry: string;
  readonly warn: Warn;
};

function placeCatalog(
  { name, file, text, image }: WorkspaceCatalog,
  { repositories, registry, warn }: Placing,
): { readonly manifest: NodeManifest; readonly place?: string } {
  const reference = image === undefined ? undefined : readReference(image);
  if (!reference || !repositories.includes(reference.repository)) {
    warn(
      `image ${image ?? 'without a name'} of ${file} is not in the mirror's data: it is left unchanged`,
    );
    return { manifest: { name, text } };
  }
  const document = parseDocument(text, { version: '1.1' });
  const kind = document.get('kind') === 'CatalogSource' ? 'CatalogSource' : 'ClusterCatalog';
  const place = (image ?? '').slice(reference.registry.length + 1);
  document.setIn(IMAGE_MEMBER[kind], `${registry}/${place}`);
  return {
    manifest: { name, text: document.toString({ lineWidth: 0, directives: false }) },
    place,
  };
}

type Place = {
  readonly tree: RegistryTree;
  readonly root: string;
  readonly repository: string;
  /** Set for archives, whose links name images that only earlier archives have: those are added. */
  readonly absent?: Digest[];
};

const describeEarlier = (count: number): string =>
  `the archives name ${count} manifests that are in none of them: if they are needed, add the archives of earlier runs`;

async function listImages(place: Place, source: Reference): Promise<WorkspaceImage[]> {
  const { tree, repository } = place;
  const tags = new Map<Digest, string[]>();
  for (const tag of (await listTags(tree, repository)).sort()) {
    const digest = await readTag(tree, { repository, tag });
    if (digest !== undefined) tags.set(digest, [...(tags.get(digest) ?? []), tag]);
  }
  const revisions = await listRevisions(place);
  const children = new Set<Digest>();
  const signatures = new Set<Digest>();
  for (const digest of revisions) {
    const { manifest } = await readStored(tree, { ...place, digest });
    if (manifest.kind === 'index')
      for (const child of manifest.manifests) children.add(child.digest);
    else if (isSignatureImage(manifest)) signatures.add(digest);
  }
  return revisions
    .filter((digest) => tags.has(digest) || !children.has(digest))
    .map((digest) => ({
      repository,
      digest,
      tags: tags.get(digest) ?? [],
      source: { ...source, digest },
      ...(signatures.has(digest) && { isSignature: true as const }),
    }));
}

const isSignatureImage = ({ layers }: ImageManifest): boolean =>
  layers.length > 0 && layers.every(({ mediaType }) => mediaType === SIMPLE_SIGNING);

/** Lists the revisions, without the directories of deleted manifests, which have no link. */
async function listRevisions({ tree, repository, absent }: Place): Promise<Digest[]> {
  const names = (await tree.list(pathTo.revisions(repository))) ?? [];
  const revisions: Digest[] = [];
  for (const name of names.toSorted()) {
    const digest = `sha256:${name}`;
    if (!isDigest(digest)) continue;
    if (!(await hasLink(tree, pathTo.revisionLink(repository, digest), digest))) continue;
    const isHere = !absent || (await tree.size(pathTo.blob(digest))) !== undefined;
    (isHere ? revisions : absent).push(digest);
  }
  return revisions;
}
