import type { SiteList } from '../../src/sites/sources/list.ts';
import type { Tree } from './site-archives.ts';

/** Texts of all files of all sites; closes the list. */
export async function readAllSites(sites: SiteList): Promise<Record<string, Tree>> {
  const all: Record<string, Tree> = {};
  for (const name of sites.names) {
    const { files } = await sites.open(name);
    all[name] = Object.fromEntries(
      files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]),
    );
  }
  await sites.close();
  return all;
}

/** One line a problem, places without the root. */
export const showProblems = ({ problems }: SiteList, root: string): string[] =>
  problems.map(({ severity, file, line, problem }) => {
    const place = `${file.replace(`${root}/`, '')}${line === undefined ? '' : `:${line}`}`;
    return `${severity} ${place}: ${problem}`;
  });
