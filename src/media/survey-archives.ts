import type { Digest } from '../base/digest.ts';
import type { NamedImage } from '../openshift/mirror/closure.ts';
import {
  type MirroredImage,
  planMirrors,
  type PlannedMirror,
} from '../openshift/mirror/mirrors.ts';
import { ADDITIONAL_IMAGES, RELEASE_IMAGES_REPOSITORY } from '../openshift/mirror/sets.ts';
import { renderCatalogResources, renderClusterCatalogs } from '../openshift/node/catalogs.ts';
import type { NodeManifest } from '../openshift/node/manifests.ts';
import type {
  ArchivedCatalog,
  ArchivedImage,
  ArchivedSet,
} from '../openshift/workspace/archived.ts';
import type { WorkspaceImage } from '../openshift/workspace/set.ts';
import {
  pathTo,
  readReference,
  readTag,
  type Reference,
  type RegistryTree,
} from '../registry/index.ts';
import { listNamedImages } from './named-images.ts';

/*
 * Archives of oc-mirror in the form that a registry would have them: their resources for the cluster exist
 * only once they are in a registry.
 */

type SurveyedArchives = {
  readonly mirrors: readonly PlannedMirror[];
  readonly catalogs: readonly { readonly manifest: NodeManifest; readonly place: string }[];
  /** Images that the configurations of the runs ask for. */
  readonly named: readonly NamedImage[];
  /** Gives a catalog its tag, and leaves out its original and those of other filters. */
  readonly rename: (image: WorkspaceImage) => readonly WorkspaceImage[];
};

type Survey = {
  /** Host and port of the node's registry. */
  readonly registry: string;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
};

/** A workspace that is not in archives. */
const NOTHING: SurveyedArchives = {
  mirrors: [],
  catalogs: [],
  named: [],
  rename: (image) => [image],
};

/** Finds the mirrors and the catalogs of archives, by their configurations and their catalogs. */
export async function surveyArchives(
  tree: RegistryTree,
  archived: ArchivedSet | undefined,
  { registry, signal, warn }: Survey,
): Promise<SurveyedArchives> {
  if (!archived) return NOTHING;
  const { catalogs, images } = archived;
  const present = await findPresent(tree, catalogs);
  const parts = { tree, releases: [], catalogs: present, others: [] };
  const { named, unread } = await listNamedImages(parts, signal);
  for (const { name, problem } of unread) warn(`catalog ${name} cannot be read: ${problem}`);
  const additional = await Promise.all(images.map((image) => nameImage(tree, image)));
  return {
    mirrors: planMirrors([
      RELEASE,
      ...named.map(({ image }) => mirrorOf(image, { ...image, category: 'operator' })),
      ...images.flatMap(({ name, repository }) => {
        const source = readReference(name);
        return source ? [mirrorOf(source, { repository, category: 'generic' })] : [];
      }),
    ]),
    catalogs: renderCatalogs(present, registry),
    named: [
      ...additional,
      ...catalogs.map(({ name, repository, tag }) => ({
        image: { registry, repository, tag },
        neededBy: { part: `catalog ${name}` },
      })),
    ],
    rename: createRenaming(catalogs),
  };
}

/** The public name of releases, which diskToMirror takes for all of them. */
const RELEASE: MirroredImage = {
  source: { registry: 'quay.io', repository: 'openshift-release-dev/ocp-release' },
  destination: { repository: RELEASE_IMAGES_REPOSITORY, tags: [] },
  category: 'release',
  kind: 'release-image',
};

const mirrorOf = (
  source: Reference,
  { repository, category }: Pick<Reference, 'repository'> & Pick<MirroredImage, 'category'>,
): MirroredImage => ({ source, destination: { repository, tags: [] }, category });

type PresentCatalog = ArchivedCatalog & { readonly digest: Digest };

async function findPresent(
  tree: RegistryTree,
  catalogs: readonly ArchivedCatalog[],
): Promise<readonly PresentCatalog[]> {
  const found = await Promise.all(
    catalogs.map(async (catalog) => {
      const digest = await findArchived(tree, { ...catalog, tag: catalog.storedTag });
      return digest === undefined ? [] : [{ ...catalog, digest }];
    }),
  );
  return found.flat();
}

/** The digest of a tag whose manifest is in the archives, which have the links of earlier runs too. */
async function findArchived(
  tree: RegistryTree,
  place: { readonly repository: string; readonly tag: string },
): Promise<Digest | undefined> {
  const digest = await readTag(tree, place);
  const isHere = digest !== undefined && (await tree.size(pathTo.blob(digest))) !== undefined;
  return isHere ? digest : undefined;
}

/** By digest, if it is known: a blocked image is known by its digest. */
async function nameImage(
  tree: RegistryTree,
  { name, repository, tag }: ArchivedImage,
): Promise<NamedImage> {
  const neededBy = { part: ADDITIONAL_IMAGES };
  const reference = readReference(name) ?? { registry: '', repository };
  const digest = tag === undefined ? undefined : await findArchived(tree, { repository, tag });
  return { image: digest === undefined ? reference : { ...reference, digest }, neededBy };
}

function renderCatalogs(
  catalogs: readonly PresentCatalog[],
  registry: string,
): SurveyedArchives['catalogs'] {
  const served = catalogs.map(({ name, repository, tag, digest }) => ({
    name,
    digest,
    source: readReference(name) ?? { registry, repository, tag },
    destination: { repository, tag },
  }));
  const input = { catalogs: served, registry, useDefaultSourceNames: false };
  return [renderCatalogResources(input), renderClusterCatalogs(input)].flatMap((manifests) =>
    manifests.flatMap((manifest, at) => {
      const catalog = catalogs[at];
      return catalog ? [{ manifest, place: `${catalog.repository}:${catalog.tag}` }] : [];
    }),
  );
}

function createRenaming(catalogs: readonly ArchivedCatalog[]): SurveyedArchives['rename'] {
  const repositories = new Set(catalogs.map(({ repository }) => repository));
  return (image) => {
    if (!repositories.has(image.repository)) return [image];
    const tags = catalogs
      .filter((one) => one.repository === image.repository && image.tags.includes(one.storedTag))
      .map(({ tag }) => tag);
    const isSignature = image.tags.some((tag) => tag.endsWith('.sig'));
    if (tags.length === 0 && !isSignature) return [];
    return [isSignature ? image : { ...image, tags }];
  };
}
