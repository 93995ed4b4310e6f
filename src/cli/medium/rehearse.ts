import type { Command } from 'commander';
import { resolve } from 'node:path';
import { useTemporaryFolder } from '../../base/disk/temporary.ts';
import { createBlobCache } from '../../base/store/blob-cache.ts';
import { DifferenceError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import { findUnitJudge } from '../../ignition/index.ts';
import { checkConfigImage, type ConfigImageCheck } from '../../media/config-image.ts';
import type { LeftRelease } from '../../media/rehearse/gates.ts';
import { rehearse, type RehearseOptions, type Rehearsal } from '../../media/rehearse/rehearse.ts';
import { PARTS, type RehearsedStep } from '../../media/rehearse/step.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { fetchAdminGates } from '../../openshift/release/fetch-payload.ts';
import { isWantedVersion } from '../../openshift/release/version.ts';
import { parseReference } from '../../registry/index.ts';
import { keepGarbageSmall, type CliHost } from '../host.ts';
import { type AccessOptions, addAccessOptions, refuseOption, useAccess } from '../options.ts';
import { requireFromVersion } from '../ask-appliance.ts';
import { requireReferences } from '../ask-installation.ts';
import { ISO_ARGUMENT, runWithProgress, useWatched, type Watched } from '../named-media.ts';
import { readPlannedHosts } from '../../sites/planned-hosts.ts';
import { type OutputFormat, createOutputOption } from '../terminal/output.ts';
import {
  type ReportTable,
  type Report,
  type ReportBlock,
  gap,
  lineOf,
  listRows,
  say,
  summarize,
  writeReport,
  rowsOf,
} from '../terminal/report.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';

type RehearseCliOptions = AccessOptions & {
  readonly outputFormat: 'text' | 'json' | 'markdown';
  readonly logFormat: LogFormat;
  readonly configImage?: string;
  readonly site?: string;
  readonly date?: string;
  readonly from?: string;
  readonly release?: string;
};

/** Registers `sealift rehearse ISO`: exit code 8 if something that hosts do will fail. */
export function registerRehearse(program: Command, host: CliHost): void {
  const command = program
    .command('rehearse')
    .description('play on paper what hosts will do with a medium, and say what will fail')
    .argument('<iso>', ISO_ARGUMENT)
    .option('--config-image <image>', 'the configuration ISO that the hosts will get with it')
    .option(
      '--site <path>',
      'install-config.yaml of a site, or the folder with it; agent-config.yaml beside it is read too',
    )
    .option(
      '--date <yyyy-mm-dd>',
      'day on which operators should be supported; default: today',
      parseDay,
    )
    .option('--from <version>', 'of an upgrade ISO: version that the cluster has now')
    .option(
      '--release <reference>',
      'payload of that version, which says what the cluster asks for before it leaves it; it is fetched',
    );
  addAccessOptions(command)
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nFrom the firmware to the operators, each step will happen, will not, or cannot be known from the medium\n' +
        'alone. No network is asked but for --release, and of large files only the release and the catalogs are read: whether\n' +
        'every byte is right, "sealift verify" says. The exit code is 8 if a step will not happen.\n' +
        '\nExample:\n  $ sealift rehearse appliance.iso --config-image agentconfig.noarch.iso',
    )
    .action(async (iso: string, options: RehearseCliOptions) => {
      const { name, value } = await play(iso, options, host);
      await writeReport({ host, ...options }, value, (value) =>
        describeRehearsal(name, value, options.outputFormat),
      );
      if (value.ok) return;
      throw refuseFailing(
        name,
        value.steps.filter(({ outcome }) => outcome === 'will-not'),
      );
    });
}

export const refuseFailing = (name: string, failing: readonly RehearsedStep[]): DifferenceError =>
  new DifferenceError('rehearse.fails', `${name} will not do what it was made for`, {
    expected: 'every step happens',
    found: `${failing.length} will not`,
    hint: 'build the medium again; the first reason above often explains the others',
  });

const play = (
  iso: string,
  { logFormat, configImage, site, date, ...options }: RehearseCliOptions,
  host: CliHost,
): Promise<{ readonly name: string; readonly value: Rehearsal }> => {
  keepGarbageSmall();
  return runWithProgress({ stage: 'rehearse', logFormat, host }, (watched) =>
    useWatched(iso, { ...host, ...watched }, async (source, name) => ({
      name,
      value: await rehearse(source, {
        signal: watched.signal,
        unitJudge: await findUnitJudge({ env: host.env, signal: watched.signal }),
        date: date ?? formatDay(host.now()),
        site: site === undefined ? undefined : readPlannedHosts(resolve(host.cwd, site), site),
        askLeft: createAsk(options, { ...host, ...watched }),
        configImage: await judgeImage(iso, configImage, host),
      }),
    })),
  );
};

/** Creates the way to ask for the gates of the release that a cluster leaves, if that release is named. */
function createAsk(
  options: Pick<RehearseCliOptions, 'from' | 'release' | keyof AccessOptions>,
  host: CliHost & Pick<Watched, 'emit'>,
): RehearseOptions['askLeft'] {
  const { from, release } = options;
  if (from !== undefined) requireFromVersion(from);
  requireReferences('--release', release);
  if (release !== undefined) return (arch) => fetchLeft({ ...options, release }, host, arch);
  if (from === undefined) return undefined;
  return () => Promise.resolve({ version: from, problem: 'its payload is not given (--release)' });
}

const fetchLeft = (
  { from, release, ...access }: AccessOptions & { from?: string; release: string },
  host: CliHost & Pick<Watched, 'emit'>,
  arch: RpmArchitecture,
): Promise<LeftRelease> =>
  useTemporaryFolder((folder) =>
    useAccess(access, host, async (client) => {
      const tools = { client, cache: createBlobCache(folder), signal: host.signal };
      const left = await fetchAdminGates(tools, parseReference(release), arch);
      if (from === undefined || isWantedVersion(from, left.version)) return left;
      throw refuseOption('usage.from', from, {
        expected: `${left.version}, the version of --release`,
      });
    }),
  );

/** The day in UTC. */
export const formatDay = (time: number): string => new Date(time).toISOString().slice(0, 10);

function parseDay(text: string): string {
  const time = Date.parse(text);
  if (!Number.isNaN(time) && formatDay(time) === text) return text;
  throw refuseOption('usage.date', text, { expected: 'a day, such as 2027-01-31' });
}

async function judgeImage(
  iso: string,
  image: string | undefined,
  { cwd }: CliHost,
): Promise<ConfigImageCheck | undefined> {
  if (image === undefined) return undefined;
  return checkConfigImage(
    { path: resolve(cwd, image), shownAs: image },
    { path: resolve(cwd, iso), shownAs: iso },
  );
}

/** Markdown has tables, for which a terminal has no room. */
export const describeRehearsal = (
  name: string,
  value: Rehearsal,
  format: OutputFormat,
): Report => ({
  title: say`Rehearsal of ${name}`,
  body: format === 'markdown' ? listTables(name, value) : listSteps(name, value),
});

const WORDS = { 'will': 'will', 'will-not': 'WILL NOT', 'unknown': 'unknown' } as const;

function listSteps(name: string, value: Rehearsal): readonly ReportBlock[] {
  const lines = PARTS.flatMap((part): readonly ReportBlock[] => {
    const steps = value.steps.filter((step) => step.part === part);
    return steps.length === 0 ? [] : [lineOf([part]), ...steps.flatMap(describeStep), gap];
  });
  return [...lines, ...listNeeds(value), ...listReading(value), lineOf(say`${judge(name, value)}`)];
}

const describeStep = ({ name, outcome, reason, place }: RehearsedStep): readonly ReportBlock[] =>
  listRows({ indent: 2, width: 10 }, [
    [WORDS[outcome], say`${name}`],
    ...rowsOf('', reason === undefined ? [] : [say`${reason}`]),
    ...rowsOf('', place === undefined || outcome === 'will' ? [] : [say`in ${place}`]),
  ]);

const GB = 10 ** 9;

const nameHost = (host: string, count?: number): string =>
  count === undefined ? host : `${host} (${count})`;

function listNeeds({ needs }: Rehearsal): readonly ReportBlock[] {
  if (needs.length === 0) return [];
  const rows = needs.map(
    ({ host, count, cores, memory, disk, because }) =>
      `${nameHost(host, count).padEnd(16)} ${String(cores).padStart(5)}  ${formatSize(memory).padStart(8)}  ${`${Math.ceil(disk / GB)} GB`.padStart(7)}` +
      (because === undefined ? '' : `  with ${because}`),
  );
  return [
    lineOf(['each host needs    cores    memory     disk']),
    ...rows.map((row) => lineOf(say`${row}`, 2)),
    gap,
  ];
}

function listReading({ reading }: Rehearsal): readonly ReportBlock[] {
  if (!reading) return [];
  const times = reading.seconds.map(
    ({ rate, least, most }) =>
      `${describeTime(least)} to ${describeTime(most)} at ${rate / 1e6} MB/s`,
  );
  const [least, most] = [formatSize(reading.least), formatSize(reading.most)];
  return [
    lineOf(say`until its registry answers, a host reads ${least} to ${most} of the medium:`),
    lineOf([times.join(', ')], 2),
    gap,
  ];
}

const describeTime = (seconds: number): string =>
  seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;

function judge(name: string, { steps, release }: Rehearsal): string {
  const count = (outcome: RehearsedStep['outcome']): number =>
    steps.filter((step) => step.outcome === outcome).length;
  const [failing, unknown] = [count('will-not'), count('unknown')];
  const what = release ? `${name} (${release.version}, ${release.architecture})` : name;
  const open = unknown === 0 ? '' : `, ${unknown} cannot be known`;
  return failing === 0
    ? `${what}: ${count('will')} steps will happen${open}`
    : `${what}: ${failing} of ${steps.length} steps will not happen${open}`;
}

const listTables = (name: string, value: Rehearsal): readonly ReportBlock[] => [
  ...summarize([['verdict', say`${judge(name, value)}`]]),
  {
    type: 'table',
    title: 'Steps',
    head: ['part', 'step', 'outcome', 'reason', 'place'],
    rows: value.steps.map(({ part, name, outcome, reason = '', place = '' }) => [
      [part],
      [{ code: name }],
      [WORDS[outcome]],
      [{ code: reason }],
      [{ code: place }],
    ]),
  },
  ...(value.needs.length === 0 ? [] : [{ type: 'table', ...tableOfNeeds(value.needs) } as const]),
];

const tableOfNeeds = (needs: Rehearsal['needs']): ReportTable => ({
  title: 'Hosts',
  head: ['host', 'cores', 'memory', 'disk', 'because'],
  rows: needs.map(({ host, count, cores, memory, disk, because = '' }) => [
    [nameHost(host, count)],
    [String(cores)],
    [formatSize(memory)],
    [`${Math.ceil(disk / GB)} GB`],
    [because],
  ]),
});
