import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { isError } from '../../base/errors.ts';
import { nameBelow, type SiteList, type SiteProblem } from '../../sites/sources/list.ts';
import { readFolder } from '../../sites/sources/folder.ts';
import { listMembers } from '../../sites/sources/members.ts';
import { listSites } from '../../sites/sources/sites.ts';
import type { SitesRequest } from './config-isos-request.ts';
import { DROP_IN_NAME, STATE_DIRECTORY } from '../../sites/state/generations.ts';

/** What lies beside the inputs after a build. */
const MADE = ['auth', 'imagebasedconfig.iso'];
/** Read when the directory is told to hold them, too. */
const RETAINED = ['cluster-configuration', 'tls'];

/**
 * The sites of a source; must be closed.
 *
 * @throws ConfigError as `listSites`; UsageError `usage.drop-in`
 */
export async function openSites(request: SitesRequest, signal: AbortSignal): Promise<SiteList> {
  const { sites, template, dropIn, cwd } = request;
  if (dropIn) return nameBelow(await openDropIn(request, signal), cwd);
  const options = { signal, ...withoutUndefined({ template }) };
  return nameBelow(await listSites(sites, options), cwd);
}

async function openDropIn(
  { sites, retainFrom }: SitesRequest,
  signal: AbortSignal,
): Promise<SiteList> {
  const source = await readFolder(sites, signal);
  const members = source.members.filter(({ path }) => path.split('/')[0] !== STATE_DIRECTORY);
  const list = listMembers({ ...source, members, rootName: DROP_IN_NAME });
  const known = [...MADE, ...(retainFrom === undefined ? [] : RETAINED)];
  const strangers = [...list.names, ...list.problems.map(({ name }) => name)].filter(
    (name) => ![DROP_IN_NAME, '', ...MADE, ...RETAINED].includes(name),
  );
  if (strangers.length > 0) {
    throw new UsageError('usage.drop-in', `${sites} is not the directory of one site`, {
      expected: 'install-config.yaml and image-based-config.yaml in it',
      hint: 'leave out --drop-in for a folder of sites',
    });
  }
  const isWanted = (problem: SiteProblem): boolean =>
    isError(problem) || !known.includes(problem.file.slice(problem.file.lastIndexOf('/') + 1));
  return { ...list, problems: list.problems.filter(isWanted) };
}
