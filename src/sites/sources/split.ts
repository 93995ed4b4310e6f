import { isError, SealiftError } from '../../base/errors.ts';
import { append, groupBy } from '../../base/lists.ts';
import { printable } from '../../base/text/words.ts';
import { listRoots, mayHaveRoots, type SiteRoot } from '../resources/roots.ts';
import type { SiteInput } from '../site.ts';
import { findLabelFault, REFUSED, type SiteList, type SiteProblem } from './list.ts';

/* Owns folders that have the resources of several clusters: each cluster is a site. */

/** A list that knows which of its sites are made of resources. */
export type ResourceList = SiteList & { readonly ofResources: readonly string[] };

type Part = SiteRoot & { readonly folder: string };
type Open = (folder: string) => Promise<SiteInput>;

/** The site of each cluster of such a folder has the name of its resource. Other sites stay as they are. */
export async function splitSites(list: ResourceList): Promise<SiteList> {
  const parts: Part[] = [];
  const unread: SiteProblem[] = [];
  const openFolder = rememberLast(list.open);
  for (const folder of list.ofResources) {
    const { roots, faults } = await readRoots(openFolder, folder);
    if (roots.length < 2) continue;
    append(
      parts,
      roots.map((root) => ({ ...root, folder })),
    );
    append(
      unread,
      faults.map(({ file, line, path, problem }) => ({
        ...REFUSED,
        name: '',
        file: `${file}:${line}`,
        problem: path === '' ? problem : `${path}: ${problem}`,
      })),
    );
  }
  if (parts.length === 0) return list;
  const problems = [...list.problems, ...unread];
  return replaceFolders({ ...list, problems, openFolder }, parts);
}

const NO_ROOTS = { roots: [], faults: [] };

/** A site that cannot be read is refused when it is opened. */
async function readRoots(open: Open, folder: string): Promise<ReturnType<typeof listRoots>> {
  try {
    const { files } = await open(folder);
    return mayHaveRoots(files) ? listRoots(files) : NO_ROOTS;
  } catch (error) {
    if (error instanceof SealiftError) return NO_ROOTS;
    throw error;
  }
}

function replaceFolders(
  { openFolder, ...list }: SiteList & { readonly openFolder: Open },
  parts: readonly Part[],
): SiteList {
  const folders = new Set(parts.map(({ folder }) => folder));
  const whole = list.names.filter((name) => !folders.has(name));
  const faults = findFaults(parts, new Set(whole));
  const refused = new Set(faults.filter(isError).map(({ name }) => name));
  const good = new Map(
    parts.filter(({ name }) => !refused.has(name)).map((part) => [part.name, part]),
  );
  return {
    ...list,
    names: [...whole.filter((name) => !refused.has(name)), ...good.keys()].sort(),
    problems: [
      ...list.problems.map((each) => (folders.has(each.name) ? { ...each, name: '' } : each)),
      ...faults,
    ],
    async open(name) {
      const part = good.get(name);
      if (!part) return list.open(name);
      return { ...(await openFolder(part.folder)), name, root: name };
    },
  };
}

/** Names that no site can have, and names of several sites: it is unknown which one was meant. */
function findFaults(parts: readonly Part[], others: ReadonlySet<string>): readonly SiteProblem[] {
  return [...groupBy(parts, ({ name }) => name)].flatMap(([name, all]) => {
    const label = findLabelFault(name);
    const isRepeated = all.length > 1 || others.has(name);
    const why = label ?? (isRepeated ? 'is the name of another site, too' : undefined);
    if (why === undefined) return [];
    return all.map(({ kind, file }) => ({
      ...REFUSED,
      name,
      file,
      problem: `name "${printable(name)}" of the ${kind} ${why}`,
    }));
  });
}

/** The clusters of a folder are opened one after the other. */
function rememberLast(open: SiteList['open']): Open {
  let last: { readonly folder: string; readonly input: Promise<SiteInput> } | undefined;
  return (folder) => {
    if (last?.folder !== folder) last = { folder, input: open(folder) };
    return last.input;
  };
}
