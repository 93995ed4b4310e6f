import type { Command } from 'commander';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { formatCommand } from '../../base/text/shell.ts';
import { formatSize } from '../../base/text/words.ts';
import { createKeySource } from '../../sites/identity/keys.ts';
import { buildConfigIsos, type ConfigIsosReport } from '../../stages/config-isos.ts';
import { ONLY_SITE, type ConfigIsosRequest } from '../../stages/request.ts';
import type { CliHost } from '../host.ts';
import { addTo, createWaitOption, parseWhole, refuseOption } from '../options.ts';
import { createForceOption } from '../terminal/output.ts';
import { registerConfigIsoExport } from './export.ts';
import {
  addSitesOptions,
  readOut,
  readSitesRequest,
  resolveGiven,
  type SitesOptions,
} from './request.ts';
import {
  registerConfigIsoDiff,
  registerConfigIsoShow,
  registerConfigIsoGenerations,
} from './show.ts';
import { finishSites, nameFailed, runSites } from './run.ts';
import { registerConfigIsoCheck, registerConfigIsoValidate } from './validate.ts';
import { type Report, gap, lineOf, listRows, say, nextStep, rowsOf } from '../terminal/report.ts';

type BuildOptions = SitesOptions & {
  readonly out?: string;
  readonly jobs?: number;
  readonly rotate: boolean;
  readonly force: boolean;
  readonly wait: boolean;
  readonly newIdentity?: readonly string[];
  readonly useGeneration?: readonly (readonly [name: string, number: number])[];
  readonly retainFrom?: string;
  readonly kubeconfig?: string;
  readonly medium?: string;
};

export function registerConfigIso(program: Command, host: CliHost): void {
  const command = program
    .command('config-iso')
    .description(
      'make and check the ISOs that turn installed seed images into the clusters of their sites',
    )
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift config-iso validate ./sites && sealift config-iso build ./sites --out ./isos',
    );
  registerConfigIsoBuild(command, host);
  registerConfigIsoValidate(command, host);
  registerConfigIsoExport(command, host);
  registerConfigIsoGenerations(command, host);
  registerConfigIsoShow(command, host);
  registerConfigIsoDiff(command, host);
  registerConfigIsoCheck(command, host);
}

/** Registers `sealift config-iso build SITES`: exit code 3 when a site was not built. */
function registerConfigIsoBuild(parent: Command, host: CliHost): void {
  addSitesOptions(parent.command('build'))
    .description('make an ISO for each site; after an interruption, run it again to continue')
    .option('--out <dir>', 'directory to write to (default: "config-isos"; with --drop-in, SITES)')
    .option('--jobs <n>', 'threads that make keys (default: one per core)', parseJobs)
    .option('--rotate', 'make new keys, ids and passwords for all sites; earlier ones stay', false)
    .option(
      '--new-identity <site>',
      'make new ones for this site, even if the earlier ones are lost; may be repeated',
      addTo,
    )
    .option(
      '--use-generation <[site=]n>',
      'use this generation of keys again ("config-iso generations" lists them); may be repeated',
      addGeneration,
    )
    .option(
      '--retain-from <path>',
      'use keys and ids that openshift-install made: its directory, a folder of such directories by site name, or an ISO',
    )
    .option('--kubeconfig <file>', 'kubeconfig that belongs to what --retain-from names')
    .option(
      '--medium <iso>',
      'live ISO that the hosts boot: for sites with agent-config.yaml, which agents install',
    )
    .addOption(createForceOption())
    .addOption(createWaitOption())
    .addHelpText(
      'after',
      '\nWrites NAME.iso, NAME/auth/kubeconfig and NAME/auth/kubeadmin-password for each site, and\n' +
        'sites.json for all. The ISOs have pull secrets and private keys. State for later runs is in\n' +
        '_state: keep that folder, and keep it private. A site keeps its keys and ids; every generation of\n' +
        'them stays. A bad site does not stop the others. Inputs are never changed. SOURCE_DATE_EPOCH is\n' +
        'the time of new keys, in seconds.\n' +
        '\nExamples:\n  $ sealift config-iso build sites.csv --template ./template --out ./isos\n' +
        '  $ sealift config-iso build ./workdir --drop-in\n' +
        '  $ sealift config-iso build ./alpha --retain-from old.iso --kubeconfig old-kubeconfig',
    )
    .action(async (sites: string, options: BuildOptions) => {
      const report = await run(await readRequest(sites, options, host), options, host);
      const failure = { good: report.sites.length, what: 'were not built', hint: AGAIN };
      await finishSites(report, () => describeIsos(report, options, host), {
        host,
        options,
        failure,
      });
    });
}

async function readRequest(
  sites: string,
  options: BuildOptions,
  host: CliHost,
): Promise<ConfigIsosRequest> {
  refuseContradictions(options);
  const request = await readSitesRequest(sites, options, host);
  const { retainFrom, kubeconfig, rotate, force, newIdentity, useGeneration, medium } = options;
  return {
    ...request,
    out: readOut(options.out, request, host),
    rotate,
    force,
    ...(newIdentity && { newIdentities: new Set(newIdentity) }),
    ...(useGeneration && { useGenerations: new Map(useGeneration) }),
    ...(retainFrom !== undefined && {
      retainFrom: resolveGiven(host.cwd, retainFrom, '--retain-from'),
    }),
    ...(medium !== undefined && { medium: resolveGiven(host.cwd, medium, '--medium') }),
    ...(kubeconfig !== undefined && {
      kubeconfig: resolveGiven(host.cwd, kubeconfig, '--kubeconfig'),
    }),
    // More threads than cores are not faster, and each takes 10 MiB.
    jobs: Math.min(options.jobs ?? Infinity, availableParallelism()),
  };
}

function refuseContradictions(options: BuildOptions): void {
  const { rotate, retainFrom, kubeconfig } = options;
  const others: Readonly<Record<string, boolean>> = {
    '--rotate and --retain-from': rotate && retainFrom !== undefined,
    '--rotate and --use-generation': rotate && options.useGeneration !== undefined,
    '--new-identity and --use-generation': isBothOfOneSite(options),
  };
  const clash = Object.keys(others).find((both) => others[both]);
  if (clash !== undefined) {
    throw new UsageError('usage.rotate', `${clash} contradict each other`, {
      hint: 'leave out one of them',
    });
  }
  if (kubeconfig === undefined || retainFrom !== undefined) return;
  throw new UsageError(
    'usage.kubeconfig',
    '--kubeconfig needs the ISO or directory that it belongs to',
    {
      hint: 'name it with --retain-from',
    },
  );
}

const isBothOfOneSite = ({ newIdentity = [], useGeneration = [] }: BuildOptions): boolean =>
  newIdentity.length > 0 &&
  useGeneration.some(([name]) => name === ONLY_SITE || newIdentity.includes(name));

function addGeneration(
  text: string,
  before: NonNullable<BuildOptions['useGeneration']> = [],
): NonNullable<BuildOptions['useGeneration']> {
  const [, name = ONLY_SITE, number] = /^(?:([^=]+)=)?([1-9]\d{0,8})$/.exec(text) ?? [];
  if (number !== undefined) return [...before, [name, Number(number)]];
  const expected = 'the number of a generation, or NAME=NUMBER';
  throw refuseOption('usage.use-generation', text, { expected });
}

const parseJobs = parseWhole('usage.jobs', [1, 256]);

const run = (
  request: ConfigIsosRequest,
  options: BuildOptions,
  host: CliHost,
): Promise<ConfigIsosReport> =>
  runSites(host, options, async (tools) => {
    const doubt = doubtEpoch(request.epoch, host.now());
    if (doubt !== undefined) tools.emit({ type: 'warning', message: doubt });
    const keys = createKeySource({ jobs: request.jobs });
    host.continuation?.begin();
    try {
      const report = await buildConfigIsos(request, { ...tools, keys, wait: options.wait });
      host.continuation?.end();
      return report;
    } finally {
      await keys.close();
    }
  });

/** Validity of the ingress certificate, the shortest of all certificates of a cluster. */
const VALID_MS = 730 * 86_400_000;

const TOLERATED_MS = 86_400_000;

/**
 * Explains why certificates that are made at an epoch are not valid now, which nodes would refuse;
 * undefined if they are. Reproducible builds may set any epoch.
 */
function doubtEpoch(epoch: number, now: number): string | undefined {
  const age = now - epoch * 1000;
  const date = `SOURCE_DATE_EPOCH is ${new Date(epoch * 1000).toISOString().slice(0, 10)}`;
  if (age > VALID_MS) return `${date}: new certificates would already be expired`;
  return age < -TOLERATED_MS
    ? `${date}: new certificates would not be valid before then`
    : undefined;
}

const AGAIN =
  'fix what is listed above and run the same command again: only what is missing is made';

export function describeIsos(
  report: ConfigIsosReport,
  options: BuildOptions,
  host: CliHost,
): Report {
  const { sites, failed, made, reused } = report;
  const out = relative(host.cwd, report.out) || '.';
  const size = sites.reduce((sum, site) => sum + site.size, 0);
  const first = sites[0] && join(out, sites[0].iso);
  return {
    title: ['Configuration ISOs'],
    body: [
      gap,
      lineOf(
        say`${sites.length} of ${sites.length + failed.length} configuration ISOs are in ${out}: ${made} made, ${reused} reused, ${formatSize(size)}`,
      ),
      gap,
      ...listRows({ indent: 2, width: 10 }, [
        ...rowsOf('failed', nameFailed(failed)),
        ...rowsOf('list', options.dropIn ? [] : [say`${join(out, 'sites.json')}`]),
        ['secrets', ['pull secret and private keys on each ISO; kubeconfig and password in auth/']],
      ]),
      ...(first === undefined
        ? []
        : [gap, nextStep(formatCommand('config-iso', 'show', { path: first }))]),
    ],
  };
}
