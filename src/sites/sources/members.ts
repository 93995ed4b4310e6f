import { ConfigError, isError } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import { formatSize, printable } from '../../base/text/words.ts';
import type { SiteFile, SiteInput } from '../site.ts';
import {
  CONFIG_FILES,
  explainMissing,
  isClusterManifest,
  isInput,
  isOfResources,
  isResourceFile,
  LISTS,
  SITE_FOLDERS,
} from './site-files.ts';
import {
  MAX_FILE,
  MAX_SITE,
  refuseTotal,
  REFUSED,
  UNUSED,
  type MemberSource,
  type SiteMember,
  type SiteProblem,
  findLabelFault,
  foldName,
  groupByFold,
  isIgnoredFile,
  NOT_AN_INPUT,
  parseMemberPath,
} from './list.ts';
import type { ResourceList } from './split.ts';

/* Owns the sorting of a folder's or an archive's members into sites. */

/** A member inside its site: the path starts below the site's folder. */
type Placed = { readonly path: string; readonly shownAs: string; readonly member: SiteMember };

type Found = {
  readonly name: string;
  readonly shownAs: string;
  /** Paths by folded path, to find duplicates; folders are not included. */
  readonly seen: Map<string, string>;
  readonly files: Placed[];
  /** YAML files that may have resources, in place of the files of a site. */
  readonly resources: Placed[];
  readonly unused: Set<string>;
  readonly problems: SiteProblem[];
};

type Parsed = {
  readonly components: readonly string[];
  readonly refusal?: string;
  readonly member: SiteMember;
};

/**
 * Sorts the content of a folder or an archive into sites. A site is at the root (then the source is that one
 * site), or in its own folder; in archives these folders may be in one common top folder.
 *
 * @throws ConfigError `sites.too-large`
 */
export function listMembers(source: MemberSource): ResourceList {
  const problems: SiteProblem[] = [];
  const found = new Map<string, Found>();
  const parsed = source.members.flatMap(parseMember);
  const place = createPlacing(source, parsed);
  for (const entry of parsed) {
    const { name, path } = place(entry.components);
    const shownAs = `${source.shownAs}/${printable(entry.member.path)}`;
    const refusal = findMemberFault(entry);
    const isStray = name === '' || (path === '' && entry.member.kind === 'file');
    if (isStray) append(problems, judgeStray(shownAs, refusal, entry.member));
    else
      addMember(
        findOrCreate(found, name, source),
        { path, shownAs, member: entry.member },
        refusal,
      );
  }
  for (const site of found.values()) finishSite(site);
  refuseCollisions([...found.values()]);
  return toList(source, [...found.values()], problems);
}

/** Keeps the folder of a skipped member: an archive may have no entry for that folder. */
function parseMember(member: SiteMember): Parsed[] {
  const { components, refusal } = parseMemberPath(member.path);
  if (refusal !== undefined) return [{ components, refusal, member }];
  const hidden = components.findIndex(isIgnoredFile);
  if (hidden === -1) return components.length === 0 ? [] : [{ components, member }];
  const visible = components.slice(0, hidden);
  return hidden === 0 ? [] : [{ components: visible, member: { ...member, kind: 'folder' } }];
}

type Place = (components: readonly string[]) => { readonly name: string; readonly path: string };

function createPlacing(source: MemberSource, parsed: readonly Parsed[]): Place {
  const good = parsed.filter(({ refusal }) => refusal === undefined);
  const isConfig = ({ components }: Parsed, depth: number): boolean =>
    components.length === depth && CONFIG_FILES.includes(components.at(-1) ?? '');
  const isOfSite = (entry: Parsed, depth: number): boolean => {
    const { components } = entry;
    const isLoose =
      components.length === depth &&
      !SITE_FOLDERS.includes(components[depth - 2] ?? '') &&
      isResourceFile(components.at(-1) ?? '');
    const isManifest = isClusterManifest(components.slice(depth - 1).join('/'));
    return isLoose || isManifest || isConfig(entry, depth);
  };
  const isOneSite =
    good.some((entry) => isOfSite(entry, 1)) && !good.some((entry) => isOfSite(entry, 2));
  if (isOneSite || good.some((entry) => isConfig(entry, 1))) {
    return (components) => ({ name: source.rootName, path: components.join('/') });
  }
  const tops = new Set(good.map(({ components }) => components[0]));
  const hasTop =
    tops.size === 1 &&
    !good.some((entry) => isOfSite(entry, 2)) &&
    good.some((entry) => isOfSite(entry, 3));
  const skipped = hasTop ? 1 : 0;
  return (components) => {
    const [name = '', ...rest] = components.slice(skipped);
    return name === '..' ? { name: '', path: '' } : { name, path: rest.join('/') };
  };
}

function findMemberFault({ refusal, member }: Parsed): string | undefined {
  if (refusal !== undefined) return refusal;
  return typeof member.kind === 'object' ? member.kind.other : undefined;
}

function judgeStray(
  shownAs: string,
  refusal: string | undefined,
  member: SiteMember,
): SiteProblem[] {
  if (refusal !== undefined) return [{ ...REFUSED, name: '', file: shownAs, problem: refusal }];
  if (member.kind === 'folder') return []; // the common top folder itself
  return [{ ...UNUSED, name: '', file: shownAs, problem: 'belongs to no site' }];
}

function findOrCreate(found: Map<string, Found>, name: string, source: MemberSource): Found {
  const known = found.get(name);
  if (known) return known;
  const shownAs =
    name === source.rootName ? source.shownAs : `${source.shownAs}/${printable(name)}`;
  const created = {
    name,
    shownAs,
    seen: new Map<string, string>(),
    files: [],
    resources: [],
    unused: new Set<string>(),
    problems: [],
  };
  found.set(name, created);
  return created;
}

function addMember(site: Found, placed: Placed, refusal: string | undefined): void {
  const { path, shownAs, member } = placed;
  const fault = refusal ?? (member.kind === 'folder' ? undefined : findTwin(site, path));
  if (fault !== undefined) {
    site.problems.push({ ...REFUSED, name: site.name, file: shownAs, problem: fault });
  } else if (member.kind === 'folder') {
    if (path !== '' && !SITE_FOLDERS.includes(path)) site.unused.add(findUnusedTop(path));
  } else if (isInput(path)) {
    addFile(site, placed);
  } else {
    if (isResourceFile(path)) site.resources.push(placed);
    site.unused.add(findUnusedTop(path));
  }
}

const hasResources = ({ files, resources }: Found): boolean =>
  isOfResources(new Set(files.map(({ path }) => path)), resources.length > 0);

/** One warning for a folder, instead of one for each file in it. */
function findUnusedTop(path: string): string {
  const components = path.split('/');
  return components.slice(0, SITE_FOLDERS.includes(components[0] ?? '') ? 2 : 1).join('/');
}

function findTwin({ seen }: Found, path: string): string | undefined {
  const twin = seen.get(foldName(path));
  seen.set(foldName(path), path);
  if (twin === undefined) return undefined;
  return twin === path ? 'appears twice' : `appears twice, also as ${printable(twin)}`;
}

/** ISO writers of installers cut longer names. */
const MAX_MANIFEST_NAME = 30;

function addFile(site: Found, placed: Placed): void {
  const { path, shownAs, member } = placed;
  site.files.push(placed);
  const report = (severity: SiteProblem['severity'], problem: string): number =>
    site.problems.push({ ...REFUSED, severity, name: site.name, file: shownAs, problem });
  if (member.size > MAX_FILE) {
    report(
      'error',
      `has ${formatSize(member.size)}, but a file may have at most ${formatSize(MAX_FILE)}`,
    );
  }
  const { length } = path.slice(path.lastIndexOf('/') + 1);
  if (length > MAX_MANIFEST_NAME) {
    report(
      'warning',
      `has a name of ${length} characters, and some readers truncate it to ${MAX_MANIFEST_NAME}`,
    );
  }
}

function finishSite(site: Found): void {
  const { name, shownAs, files, problems } = site;
  const report = (problem: string): number =>
    problems.push({ ...REFUSED, name, file: shownAs, problem });
  const fault = findLabelFault(name);
  if (fault !== undefined) report(`site name "${printable(name)}" ${fault}`);
  const missing = explainMissing(new Set(files.map(({ path }) => path)), site.resources.length > 0);
  if (missing !== undefined) report(missing);
  else if (hasResources(site)) {
    for (const placed of site.resources) addFile(site, placed);
    for (const { path } of site.resources) site.unused.delete(path);
    for (const path of LISTS) site.unused.delete(path);
  }
  const size = sizeOf(site);
  if (size > MAX_SITE)
    report(`has ${formatSize(size)} of files, but a site may have at most ${formatSize(MAX_SITE)}`);
  warnUnused(site);
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

const sizeOf = ({ files }: Found): number =>
  files.reduce((sum, { member }) => sum + member.size, 0);

function warnUnused({ name, shownAs, unused, problems }: Found): void {
  for (const path of unused) {
    problems.push({
      ...UNUSED,
      name,
      file: `${shownAs}/${printable(path)}`,
      problem: NOT_AN_INPUT,
    });
  }
}

/** Refuses all sites of such a name: it is unknown which one was meant. */
function refuseCollisions(sites: readonly Found[]): void {
  const byFold = groupByFold(sites, ({ name }) => name);
  for (const group of byFold.values()) {
    if (group.length < 2) continue;
    const names = group.map(({ name }) => printable(name)).join(', ');
    for (const { name, shownAs, problems } of group) {
      problems.push({
        ...REFUSED,
        name,
        file: shownAs,
        problem: `site names differ only in case: ${names}`,
      });
    }
  }
}

function toList(
  source: MemberSource,
  sites: readonly Found[],
  strays: readonly SiteProblem[],
): ResourceList {
  const sorted = [...sites].sort((a, b) => (a.name < b.name ? -1 : 1));
  const problems = [...strays, ...sorted.flatMap((site) => site.problems)];
  const good = sorted.filter((site) => !site.problems.some(isError));
  refuseTotal(
    good.reduce((sum, site) => sum + sizeOf(site), 0),
    source.shownAs,
  );
  const files = new Map(good.map((site) => [site.name, site]));
  return {
    names: [...files.keys()],
    ofResources: good.filter(hasResources).map(({ name }) => name),
    problems,
    async open(name) {
      const site = files.get(name);
      const input = await openSite(name, site?.files);
      return site && hasResources(site) ? { ...input, isOfResources: true } : input;
    },
    close: source.close,
  };
}

async function openSite(name: string, placed: readonly Placed[] | undefined): Promise<SiteInput> {
  if (!placed) throw new ConfigError('sites.unknown-name', `there is no site "${printable(name)}"`);
  const files: SiteFile[] = [];
  for (const { path, shownAs, member } of placed) {
    const { directory } = member;
    const bytes = await member.read();
    files.push({ path, shownAs, bytes, ...withoutUndefined({ directory }) });
  }
  return { name, files };
}
