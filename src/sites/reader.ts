import { createHash } from 'node:crypto';
import { digestOf, type Digest } from '../base/digest.ts';
import { ConfigError, type FileProblem } from '../base/errors.ts';
import { checkSite, type CheckOptions } from './check.ts';
import type { SiteFacts } from './facts.ts';
import type { Site, SiteInput } from './site.ts';
import type { SiteList } from './sources/list.ts';

/** What is known of a site after it was read. But for the site and its files, it is small. */
export type ReadSite = {
  /** Of everything that the site is made from. */
  readonly inputs: Digest;
  readonly facts?: SiteFacts;
  readonly findings: readonly FileProblem[];
  /** Only of inputs without a problem. */
  readonly site?: Site;
  readonly files: SiteInput['files'];
};

/** Reads and checks the sites of a list, each by itself. */
export type SiteReader = {
  /** @throws ConfigError those of `SiteList.open` */
  readonly read: (name: string) => Promise<ReadSite>;
  /**
   * A good site again, from memory or from its files.
   *
   * @throws ConfigError `sites.changed`, those of `SiteList.open`
   */
  readonly recall: (name: string, inputs: Digest) => Promise<Site>;
};

/** Bytes of inputs whose sites stay in memory: those of a thousand or so. */
const REMEMBERED = 4 << 20;

export function createSiteReader(list: SiteList, options: CheckOptions): SiteReader {
  const remembered = new Map<string, Site>();
  let room = REMEMBERED;
  const read = async (name: string): Promise<ReadSite> => {
    const input = await list.open(name);
    const found = checkInput(input, options);
    room -= input.files.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (found.site && room > 0) remembered.set(name, found.site);
    return found;
  };
  return {
    read,
    async recall(name, inputs) {
      const known = remembered.get(name);
      remembered.delete(name);
      if (known) return known;
      const { site, inputs: found } = checkInput(await list.open(name), options);
      if (site && found === inputs) return site;
      throw new ConfigError(
        'sites.changed',
        `the inputs of ${name} changed while sites were built`,
        {
          hint: 'run the same command again',
        },
      );
    },
  };
}

function checkInput(input: SiteInput, options: CheckOptions): ReadSite {
  const { site, facts, references, problems, warnings } = checkSite(input, options);
  const findings = limit([
    ...problems,
    ...warnings.map((warning) => ({ ...warning, severity: 'warning' as const })),
  ]);
  // A text cut out of a file keeps the whole file in memory; a clone does not.
  const small = structuredClone({ findings, ...(facts && { facts }) });
  const { files } = input;
  return { inputs: digestInputs(files, references), ...small, ...(site && { site }), files };
}

/**
 * A digest of everything that a site is made from, its files and what they refer to. Files are told apart
 * by their sizes, so that no two sets of files have the same bytes.
 */
function digestInputs(files: SiteInput['files'], references: ReadonlyMap<string, string>): Digest {
  const hash = createHash('sha256');
  for (const { path, bytes } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(`${JSON.stringify(path)} ${bytes.length}\n`).update(bytes);
  }
  const digest: Digest = `sha256:${hash.digest('hex')}`;
  return references.size === 0 ? digest : digestOf(JSON.stringify([digest, ...references]));
}

/** More than these of one site are counted, not shown. */
const MAX_FINDINGS = 50;

/** Errors come first: a site that has one never looks good for want of room. */
function limit(findings: readonly FileProblem[]): FileProblem[] {
  const rest = findings.length - MAX_FINDINGS;
  const last = findings[MAX_FINDINGS - 1];
  if (rest <= 0 || !last) return [...findings];
  const { severity, code, file } = last;
  const more: FileProblem = { severity, code, file, problem: `and ${rest + 1} more` };
  return [...findings.slice(0, MAX_FINDINGS - 1), more];
}
