import { join } from 'node:path';
import { syncDirectory } from '../base/disk/files.ts';
import { ConfigProblems, type FileProblem } from '../base/errors.ts';
import { mapStage } from '../engine/index.ts';
import { type FindController, readControllers } from '../sites/export/host-table.ts';
import { readTable } from '../sites/sources/fill.ts';
import { requireTable } from '../sites/sources/sites.ts';
import { createSiteWriter, SITES_AT_ONCE } from '../sites/state/writer.ts';
import { isGood, openSites, surveySites } from './1-resolve/check-sites.ts';
import {
  type ExportSitesRequest,
  writeResources,
  type WrittenResources,
} from './5-pour/write-resources.ts';
import { refuseNothing } from './config-isos.ts';
import type { SiteTools } from './request.ts';

/*
 * The resources of sites as a product: sites are read and checked as for their ISOs, and each is written as what
 * other tools take, in a folder of its own.
 */

export type ExportReport = {
  readonly out: string;
  readonly form: ExportSitesRequest['form'];
  readonly sites: readonly WrittenSite[];
  readonly failed: readonly FailedExport[];
  /** Findings that belong to no site. */
  readonly findings: readonly FileProblem[];
};

type WrittenSite = { readonly name: string } & Omit<
  Extract<WrittenResources, { readonly kind: 'written' }>,
  'kind'
>;

type FailedExport = { readonly name: string; readonly findings: readonly FileProblem[] };

/**
 * Writes the resources of each site. A bad site never stops the others: it is among `failed`. Files of the same
 * contents stay as they are; others are replaced only with `force`.
 *
 * @throws ConfigError `config-iso.no-sites`, `sites.host-table`, the errors of `listSites`; DiskError
 */
export async function exportSites(
  request: ExportSitesRequest,
  tools: SiteTools,
): Promise<ExportReport> {
  const { out, form } = request;
  const find = await openHostTable(request, tools.signal);
  const list = await openSites(request, tools.signal);
  try {
    const survey = await surveySites(list, request, tools);
    refuseNothing(survey, request.sites);
    const good = survey.sites.filter(isGood).map(({ name, inputs }) => ({ name, digest: inputs }));
    const outcomes = await mapStage(writeResources, good, {
      ...tools,
      tools: { request, find, reader: survey.reader, writer: createSiteWriter(UNHELD) },
      atOnce: 2 * SITES_AT_ONCE,
    });
    const sites: WrittenSite[] = [];
    const failed: FailedExport[] = [];
    for (const { name, findings } of survey.sites) {
      const outcome = outcomes.get(name);
      const all = [...findings, ...(outcome?.findings ?? [])];
      if (outcome?.kind === 'written') {
        const { files, written } = outcome;
        sites.push({ name, files, written, findings: all });
      } else failed.push({ name, findings: all });
    }
    for (const { name } of sites) await syncDirectory(join(out, name));
    if (sites.length > 0) await syncDirectory(out);
    return { out, form, sites, failed, findings: survey.findings };
  } finally {
    await list.close();
  }
}

/** Runs that write to one directory do not exclude each other: each file is whole, and of one of them. */
const UNHELD = { requireHeld: (): Promise<void> => Promise.resolve() };

async function openHostTable(
  { hosts, redaction }: ExportSitesRequest,
  signal: AbortSignal,
): Promise<FindController> {
  if (hosts === undefined) return () => undefined;
  await requireTable(hosts);
  const { find, problems } = readControllers(await readTable(hosts, signal), hosts, redaction);
  if (problems.length > 0) throw new ConfigProblems(hosts, problems);
  return find;
}
