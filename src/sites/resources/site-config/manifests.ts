import type { DocumentProblem } from '../../../base/errors.ts';
import { MANIFESTS_OF, type SiteFile } from '../../site.ts';
import type { SiteFlow } from '../shape.ts';
import type { ClusterPlace } from './shape.ts';

/*
 * Owns the folders of manifests that a SiteConfig names. The converter fills a ConfigMap from them (extraManifests.go);
 * here their files are the manifests of the site.
 */

type Taken = { readonly files: readonly SiteFile[]; readonly problems: readonly DocumentProblem[] };

/** All files beside the resources, unless the cluster names folders. */
export function takeManifests(
  place: ClusterPlace,
  beside: readonly SiteFile[],
  flow: SiteFlow,
): Taken {
  const problems: DocumentProblem[] = [];
  const folders = listFolders(place);
  const manifests = beside.filter(({ path }) => path.includes('/'));
  const taken = folders
    ? takeFolders(place, { folders, manifests, problems }).map((file) => ({
        ...file,
        path: `${MANIFESTS_OF[flow]}/${nameOf(file)}`,
      }))
    : manifests;
  return { files: filterFiles(place, taken, problems), problems };
}

type Folder = { readonly name: string; readonly path: string };

/** extraManifestPath has an effect only without searchPaths, which may be empty. Undefined without both. */
function listFolders({ cluster, path }: ClusterPlace): readonly Folder[] | undefined {
  const { extraManifests: { searchPaths } = {}, extraManifestPath = '' } = cluster;
  if (searchPaths)
    return searchPaths.map((name, at) => ({
      name,
      path: `${path}.extraManifests.searchPaths[${at}]`,
    }));
  return extraManifestPath === ''
    ? undefined
    : [{ name: extraManifestPath, path: `${path}.extraManifestPath` }];
}

type Taking = {
  readonly folders: readonly Folder[];
  readonly manifests: readonly SiteFile[];
  readonly problems: DocumentProblem[];
};

/** The file of a later folder takes the place of one with its name. */
function takeFolders(
  { document }: ClusterPlace,
  { folders, manifests, problems }: Taking,
): readonly SiteFile[] {
  const byName = new Map<string, SiteFile>();
  for (const { name, path } of folders) {
    const folder = name.replace(/^(?:\.\/)+|\/+$/g, '');
    const files = manifests.filter((file) => file.path.startsWith(`${folder}/`));
    if (files.length === 0) {
      const hint = `put the manifests into ${Object.values(MANIFESTS_OF).join('/ or ')}/ beside the SiteConfig`;
      problems.push(document.report(path, `no manifests are read from "${name}"`, { hint }));
    }
    for (const file of files) byName.set(nameOf(file), file);
  }
  return [...byName.values()];
}

/** The list in use names what the default would treat otherwise. */
function filterFiles(
  { document, cluster, path }: ClusterPlace,
  files: readonly SiteFile[],
  problems: DocumentProblem[],
): readonly SiteFile[] {
  const { filter } = cluster.extraManifests ?? {};
  if (!filter || problems.length > 0) return files;
  const report = (member: string, why: string): number =>
    problems.push(document.report(`${path}.extraManifests.filter.${member}`, why));
  const { inclusionDefault = 'include' } = filter;
  const lists = LISTS.get(inclusionDefault.toLowerCase());
  if (!lists) {
    report('inclusionDefault', `is include or exclude, not "${inclusionDefault}"`);
    return files;
  }
  const [used, other] = lists;
  if (filter[other]?.length)
    report(other, `inclusionDefault is ${other}: only the list ${used} has an effect`);
  const named = filter[used] ?? [];
  reportAbsent(named, files, (at, why) => report(`${used}[${at}]`, why));
  const isNamed = new Set(named);
  return files.filter((file) => isNamed.has(nameOf(file)) === (used === 'include'));
}

function reportAbsent(
  named: readonly string[],
  files: readonly SiteFile[],
  report: (at: number, why: string) => void,
): void {
  const names = new Set(files.map(nameOf));
  for (const [at, name] of named.entries()) {
    if (!names.has(name)) report(at, `no manifest of the site is named "${name}"`);
  }
}

type ListName = 'include' | 'exclude';

/** By default: the list that has an effect, and the one that must be empty. */
const LISTS = new Map<string, readonly [used: ListName, other: ListName]>([
  ['include', ['exclude', 'include']],
  ['exclude', ['include', 'exclude']],
]);

const nameOf = ({ path }: SiteFile): string => path.slice(path.lastIndexOf('/') + 1);
