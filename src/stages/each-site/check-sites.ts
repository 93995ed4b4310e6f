import type { Digest } from '../../base/digest.ts';
import type { MappedStage } from '../../engine/map-stage.ts';
import type { Nmstate } from '../../nmstate/tool.ts';
import type { FileProblem } from '../../base/errors.ts';
import { findingOfError, isOfOneSite } from '../../sites/site.ts';
import type { SiteFacts } from '../../sites/facts.ts';
import type { ReadSite, SiteReader } from '../../sites/reader.ts';

/** What is known of a site after it was checked by itself; small, for there may be ten thousand. */
export type CheckedSite = {
  /** Of its inputs; absent where they could not be read. */
  readonly inputs?: Digest;
  readonly facts?: SiteFacts;
  readonly findings: readonly FileProblem[];
  /** Whether nmstate is not there to see its network configuration. */
  readonly isUnseen?: boolean;
};

type SiteItem = { readonly name: string };

type CheckTools = { readonly reader: SiteReader; readonly nmstate?: Nmstate | undefined };

/** Reads a site and applies every rule of its own. */
export const checkSites: MappedStage<{ name: string }, CheckedSite, CheckTools, SiteItem> = {
  name: 'check sites',
  items: 'sites',
  bind: ({ name }) => ({ name }),
  async run({ name }, { reader, nmstate }, signal) {
    const { site, files, findings, ...seen } = await reader.read(name);
    const network = site?.imageBased.networkConfig;
    if (network === undefined) return { ...seen, findings };
    const problem = await nmstate?.ask(network, signal);
    const refused = problem === undefined ? [] : [describeRefused(problem, files)];
    return { ...seen, findings: [...findings, ...refused], isUnseen: !nmstate };
  },
  recover(name, error) {
    if (!isOfOneSite(error)) throw error;
    return { findings: [findingOfError(name, error)] };
  },
};

const REFUSED = { severity: 'error', code: 'sites.nmstate' } as const;

function describeRefused(problem: string, files: ReadSite['files']): FileProblem {
  const file = files.find(({ path }) => path === 'image-based-config.yaml');
  return { ...REFUSED, file: file?.shownAs ?? '', path: 'networkConfig', problem };
}
