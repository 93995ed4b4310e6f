import { createHash } from 'node:crypto';
import { digestOf, type Digest } from '../base/digest.ts';
import { ConfigError, type FileProblem } from '../base/errors.ts';
import type { CheckOptions } from './check.ts';
import { checkAnySite } from './check-any.ts';
import type { SiteFacts } from './facts.ts';
import type { Site, SiteInput } from './site.ts';
import { convertResources } from './resources/convert.ts';
import type { SiteList } from './sources/list.ts';

/* Owns the reading of sites one by one, and the memory that holds valid sites between check and build. */

/** The result of reading a site. It is small, except for the site and its files. */
export type ReadSite = {
  /** Digest of everything that the site is made from. */
  readonly inputs: Digest;
  /** Bytes of all that the site is made from. */
  readonly size: number;
  readonly facts?: SiteFacts;
  readonly findings: readonly FileProblem[];
  /** Present only if the inputs have no problem. */
  readonly site?: Site;
  readonly files: SiteInput['files'];
};

export type SiteReader = {
  readonly read: (name: string) => Promise<ReadSite>;
  /**
   * Gives a valid site again, from memory or from its files.
   *
   * @throws ConfigError `sites.changed`
   */
  readonly recall: (name: string, inputs: Digest) => Promise<Site>;
  /**
   * Reads a valid site again, with its files.
   *
   * @throws ConfigError `sites.changed`
   */
  readonly readAgain: (name: string, inputs: Digest) => Promise<ValidSite>;
};

type ValidSite = Pick<ReadSite, 'files'> & { readonly site: Site };

/** Bytes of inputs whose sites stay in memory: enough for about a thousand sites. */
const REMEMBERED = 4 << 20;

export function createSiteReader(list: SiteList, options: CheckOptions): SiteReader {
  const remembered = new Map<string, Site>();
  let room = REMEMBERED;
  const read = async (name: string): Promise<ReadSite> => {
    const input = await list.open(name);
    const found = checkInput(input, options);
    room -= found.size;
    if (found.site && room > 0) remembered.set(name, found.site);
    return found;
  };
  const readAgain = async (name: string, inputs: Digest): Promise<ValidSite> => {
    const { site, files, inputs: found } = checkInput(await list.open(name), options);
    if (site && found === inputs) return { site, files };
    throw new ConfigError('sites.changed', `the inputs of ${name} changed while sites were built`, {
      hint: 'run the same command again',
    });
  };
  return {
    read,
    readAgain,
    async recall(name, inputs) {
      const known = remembered.get(name);
      remembered.delete(name);
      return known ?? (await readAgain(name, inputs)).site;
    },
  };
}

function checkInput(given: SiteInput, options: CheckOptions): ReadSite {
  const { flow } = options;
  const isMade = given.isOfResources === true;
  const input = isMade ? convertResources(given, flow) : given;
  const { site, facts, references, problems, warnings } = checkAnySite(input, options);
  const findings = limit([
    ...problems,
    ...warnings.map((warning) => ({ ...warning, severity: 'warning' as const })),
  ]);
  // A text cut out of a file keeps the whole file in memory; a clone does not.
  const small = structuredClone({ findings, ...(facts && { facts }) });
  const { files } = input;
  const madeOf = input.madeOf ?? given.files;
  const values = isMade ? new Map([...references, ['--flow', flow ?? '']]) : references;
  return {
    inputs: digestInputs(madeOf, values),
    size: madeOf.reduce((sum, { bytes }) => sum + bytes.length, 0),
    ...small,
    ...(site && { site }),
    files,
  };
}

/** Sizes separate the files, so that no two sets of files have the same bytes. */
function digestInputs(files: SiteInput['files'], references: ReadonlyMap<string, string>): Digest {
  const hash = createHash('sha256');
  for (const { path, bytes } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(`${JSON.stringify(path)} ${bytes.length}\n`).update(bytes);
  }
  const digest: Digest = `sha256:${hash.digest('hex')}`;
  return references.size === 0 ? digest : digestOf(JSON.stringify([digest, ...references]));
}

/** Further findings of one site are counted, not shown. */
const MAX_FINDINGS = 50;

/** Errors come first: a site that has an error never looks good because the list is full. */
function limit(findings: readonly FileProblem[]): FileProblem[] {
  const rest = findings.length - MAX_FINDINGS;
  const last = findings[MAX_FINDINGS - 1];
  if (rest <= 0 || !last) return [...findings];
  const { severity, code, file } = last;
  const more: FileProblem = { severity, code, file, problem: `and ${rest + 1} more` };
  return [...findings.slice(0, MAX_FINDINGS - 1), more];
}
