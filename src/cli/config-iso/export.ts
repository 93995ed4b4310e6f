import { Option, type Command } from 'commander';
import { relative } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { EXPORT_FORMS, type ExportForm } from '../../sites/export/site-export.ts';
import { type ExportReport, exportSites } from '../../stages/export-sites.ts';
import type { ExportSitesRequest } from '../../stages/5-pour/write-resources.ts';
import type { CliHost } from '../host.ts';
import { createForceOption } from '../terminal/output.ts';
import { gap, lineOf, listRows, type Report, rowsOf, say } from '../terminal/report.ts';
import {
  addSitesOptions,
  readOut,
  readSitesRequest,
  resolveGiven,
  type SitesOptions,
} from './request.ts';
import { finishSites, nameFailed, runSites } from './run.ts';

type ExportOptions = SitesOptions & {
  readonly as: ExportForm;
  readonly out: string;
  readonly clusterImageSet?: string;
  readonly templateNamespace: string;
  readonly hosts?: string;
  readonly built?: string;
  readonly force: boolean;
};

/** Registers `sealift config-iso export SITES --as FORM`: exit code 3 when a site was not written. */
export function registerConfigIsoExport(parent: Command, host: CliHost): void {
  addSitesOptions(parent.command('export'))
    .description('write the resources of each site that a hub takes in place of its ISO')
    .addOption(
      new Option('--as <form>', 'resources to write').choices(EXPORT_FORMS).makeOptionMandatory(),
    )
    .option('--out <dir>', 'directory to write to', 'exported')
    .option('--cluster-image-set <name>', 'ClusterImageSet of the hub; acm-import needs none')
    .option(
      '--template-namespace <name>',
      'namespace of the templates of siteconfig on the hub',
      'open-cluster-management',
    )
    .option(
      '--hosts <table>',
      '.csv, .xlsx or .yaml table of the controllers of hosts: columns host, bmcAddress, bmcUsername, bmcPassword, bootMACAddress, site',
    )
    .option(
      '--built <dir>',
      'directory of "config-iso build", for kubeconfigs (default: "config-isos"; with --drop-in, SITES)',
    )
    .addOption(createForceOption())
    .addHelpText(
      'after',
      '\nWrites a folder for each site, with a kustomization.yaml that lists its files:\n' +
        '  clusterinstance  ClusterInstance, which config-iso build reads again\n' +
        '  bmh              BareMetalHosts, with ImageClusterInstall or AgentClusterInstall\n' +
        '  acm-import       ManagedCluster, and the Secret that imports the installed cluster\n' +
        'Each with its Namespace, Secrets and ConfigMaps. The files hold secrets: only their owner can read\n' +
        'them. A bad site does not stop the others. What the resources have no place for is a warning.\n' +
        '\nExamples:\n' +
        '  $ sealift config-iso export ./sites --as clusterinstance --cluster-image-set img4.21.3 --hosts bmc.csv\n' +
        '  $ sealift config-iso export ./sites --as acm-import --built ./isos --out ./hub',
    )
    .action(async (sites: string, options: ExportOptions) => {
      const request = await readRequest(sites, options, host);
      const report = await runSites(host, options, (tools) => exportSites(request, tools));
      const hint = 'fix what is listed above and run the same command again';
      const failure = { good: report.sites.length, what: 'were not written', hint };
      await finishSites(report, () => describeExport(report, host), { host, options, failure });
    });
}

async function readRequest(
  sites: string,
  options: ExportOptions,
  host: CliHost,
): Promise<ExportSitesRequest> {
  const { as: form, clusterImageSet, templateNamespace, hosts, built, force } = options;
  if (clusterImageSet === undefined && form !== 'acm-import') {
    throw new UsageError('usage.cluster-image-set', `--as ${form} needs the release of the hub`, {
      hint: 'name the ClusterImageSet with --cluster-image-set',
    });
  }
  const request = await readSitesRequest(sites, options, host);
  const givenBuilt = built ?? (options.dropIn ? sites : 'config-isos');
  return {
    ...request,
    form,
    imageSet: clusterImageSet ?? '',
    templateNamespace,
    force,
    out: readOut(options.out, { ...request, dropIn: false }, host),
    built: resolveGiven(host.cwd, givenBuilt, '--built'),
    ...(hosts !== undefined && { hosts: resolveGiven(host.cwd, hosts, '--hosts') }),
  };
}

function describeExport(
  { sites, failed, form, ...report }: ExportReport,
  { cwd }: Pick<CliHost, 'cwd'>,
): Report {
  const out = relative(cwd, report.out) || '.';
  const files = sites.reduce((sum, site) => sum + site.files.length, 0);
  const written = sites.reduce((sum, site) => sum + site.written, 0);
  return {
    title: ['Resources of sites'],
    body: [
      gap,
      lineOf(
        say`${sites.length} of ${sites.length + failed.length} sites are in ${out} as ${form}: ${files} files, ${written} of them written`,
      ),
      gap,
      ...listRows({ indent: 2, width: 10 }, [
        ...rowsOf('failed', nameFailed(failed)),
        ['secrets', ['every file is readable by its owner alone']],
      ]),
    ],
  };
}
