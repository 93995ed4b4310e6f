import { join } from 'node:path';
import { digestOf, type Digest } from '../../base/digest.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { digestFile, hasFile } from '../../base/disk/files.ts';
import { readRegularFile } from '../../base/disk/open-file.ts';
import { ConfigError, type FileProblem, isError } from '../../base/errors.ts';
import type { MappedStage } from '../../engine/index.ts';
import { exportSite } from '../../sites/export/export.ts';
import type { FindController } from '../../sites/export/host-table.ts';
import type { ExportSettings } from '../../sites/export/site-export.ts';
import { findServer } from '../../sites/identity/identity.ts';
import type { SiteReader } from '../../sites/reader.ts';
import { findingOfError, isOfOneSite, nameCluster, type Site } from '../../sites/site.ts';
import { placesFor } from '../../sites/state/generations.ts';
import type { NewFile, SiteWriter } from '../../sites/state/writer.ts';
import { listInputs, type SitesRequest } from '../request.ts';

/* The writing of the resources of a site: all of its files are claimed before the first of them is written. */

export type ExportSitesRequest = SitesRequest &
  ExportSettings & {
    /** Directory of a folder for each site; absolute. */
    readonly out: string;
    /** True if files of other contents are replaced; inputs never are. */
    readonly force: boolean;
    /** Table of the controllers of hosts; absolute. */
    readonly hosts?: string;
    /** Directory in which the configuration ISOs were built; absolute. */
    readonly built: string;
  };

type SiteInputs = { readonly name: string; readonly digest: Digest };

export type WrittenResources =
  | {
      readonly kind: 'written';
      /** Files below the output directory. */
      readonly files: readonly string[];
      /** Number of files that this run wrote; the others had the same contents. */
      readonly written: number;
      readonly findings: readonly FileProblem[];
    }
  | { readonly kind: 'failed'; readonly findings: readonly FileProblem[] };

type WriteTools = {
  readonly request: ExportSitesRequest;
  readonly find: FindController;
  readonly reader: SiteReader;
  readonly writer: SiteWriter;
};

/** Writes the resources of a site. A problem with one site is the outcome of that site. */
export const writeResources: MappedStage<SiteInputs, WrittenResources, WriteTools, SiteInputs> = {
  name: 'write resources',
  items: 'sites',
  bind: ({ name, digest }) => ({ name, digest }),
  async run({ name, digest }, { request, find, reader, writer }) {
    const { out, form } = request;
    const valid = await reader.readAgain(name, digest);
    const kubeconfig =
      form === 'acm-import' ? await readKubeconfig(valid.site, request) : undefined;
    const { files, findings } = exportSite({ ...valid, find, kubeconfig }, request);
    if (findings.some(isError)) return { kind: 'failed', findings };
    const wanted = files.map(({ name: file, text }) => ({
      path: join(out, name, file),
      data: text,
    }));
    const changed = await claimFiles(wanted, request);
    await writer.write({
      shownAs: join(out, name),
      directories: changed.length === 0 ? [] : [join(out, name)],
      state: [],
      files: changed,
    });
    const names = files.map((file) => join(name, file.name));
    return { kind: 'written', files: names, written: changed.length, findings };
  },
  recover(name, error) {
    if (!isOfOneSite(error)) throw error;
    return { kind: 'failed', findings: [findingOfError(name, error)] };
  },
};

/** Decides for all files of a site before one of them is written; returns those whose contents are new. */
async function claimFiles(
  files: readonly NewFile[],
  { force, ...request }: ExportSitesRequest,
): Promise<readonly NewFile[]> {
  const inputs = listInputs(request);
  const changed: NewFile[] = [];
  for (const file of files) {
    const { path, data } = file;
    const isSame = async (): Promise<boolean> => (await digestFile(path)) === digestOf(data);
    const expected = 'a file of the same content';
    await claimOutput({ path, inputs }, { force, expected, isReplaceable: isSame });
    if (!((await hasFile(path)) && (await isSame()))) changed.push(file);
  }
  return changed;
}

/**
 * The kubeconfig beside the ISO of a site.
 *
 * @throws ConfigError `sites.kubeconfig` if it is of another cluster
 */
async function readKubeconfig(
  site: Site,
  { built, dropIn }: ExportSitesRequest,
): Promise<string | undefined> {
  const { kubeconfig } = placesFor({ out: built, dropIn }, site.name);
  const text = (await readRegularFile(kubeconfig, MAX_KUBECONFIG))?.toString('utf8');
  const server = findServer(nameCluster(site));
  if (text === undefined || text.includes(server)) return text;
  throw new ConfigError('sites.kubeconfig', `${kubeconfig} is of another cluster`, {
    expected: server,
    found: 'another server',
    hint: 'name the folder that the site was built in with --built',
  });
}

const MAX_KUBECONFIG = 1 << 20;
