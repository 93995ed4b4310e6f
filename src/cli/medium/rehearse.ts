import type { Command } from 'commander';
import { resolve } from 'node:path';
import { useTemporaryFolder } from '../../base/disk/temporary.ts';
import { createBlobCache } from '../../base/store/blob-cache.ts';
import { DifferenceError } from '../../base/errors.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import { formatSize, toPrintable } from '../../base/text/words.ts';
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
import { requireFromVersion } from '../request-upgrade.ts';
import { requireReferences } from '../request-installation.ts';
import { ISO_ARGUMENT, runWithProgress, useWatched, type Watched } from '../named-media.ts';
import { readPlannedHosts } from '../../sites/planned-hosts.ts';
import { createOutputOption, writeResult } from '../terminal/output.ts';
import { formatMarkdownReport, type ReportTable } from '../terminal/report.ts';
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
    .addOption(createOutputOption(['text', 'json', 'markdown']))
    .addHelpText(
      'after',
      '\nFrom the firmware to the operators, each step will happen, will not, or cannot be known from the medium\n' +
        'alone. No network is asked but for --release, and of large files only the release and the catalogs are read: whether\n' +
        'every byte is right, "sealift verify" says. The exit code is 8 if a step will not happen.\n' +
        '\nExample:\n  $ sealift rehearse appliance.iso --config-image agentconfig.noarch.iso',
    )
    .action(async (iso: string, options: RehearseCliOptions) => {
      const { name, value } = await play(iso, options, host);
      await writeResult(host, format(name, value, options.outputFormat));
      if (value.ok) return;
      throw refuseFailing(
        name,
        value.steps.filter(({ outcome }) => outcome === 'will-not'),
      );
    });
}

/** Creates the error for steps that will not happen. */
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

function format(name: string, value: Rehearsal, form: RehearseCliOptions['outputFormat']): string {
  if (form === 'json') return formatReadableJson(value);
  return form === 'markdown' ? formatMarkdown(name, value) : formatText(name, value);
}

const WORDS = { 'will': 'will', 'will-not': 'WILL NOT', 'unknown': 'unknown' } as const;

function formatText(name: string, value: Rehearsal): string {
  const lines = PARTS.flatMap((part) => {
    const steps = value.steps.filter((step) => step.part === part);
    return steps.length === 0 ? [] : [part, ...steps.flatMap(formatStep), ''];
  });
  return [
    ...lines,
    ...formatNeeds(value),
    ...formatReading(value),
    formatVerdict(name, value),
    '',
  ].join('\n');
}

/** Reasons quote payloads and catalogs, which must not control the terminal. */
const formatStep = ({ name, outcome, reason, place }: RehearsedStep): readonly string[] =>
  [
    `  ${WORDS[outcome].padEnd(8)}  ${name}`,
    ...(reason === undefined ? [] : [`            ${reason}`]),
    ...(place === undefined || outcome === 'will' ? [] : [`            in ${place}`]),
  ].map(toPrintable);

const GB = 10 ** 9;

const nameHost = (host: string, count?: number): string =>
  count === undefined ? host : `${host} (${count})`;

function formatNeeds({ needs }: Rehearsal): readonly string[] {
  if (needs.length === 0) return [];
  const rows = needs.map(
    ({ host, count, cores, memory, disk, because }) =>
      `  ${nameHost(host, count).padEnd(16)} ${String(cores).padStart(5)}  ${formatSize(memory).padStart(8)}  ${`${Math.ceil(disk / GB)} GB`.padStart(7)}` +
      (because === undefined ? '' : `  with ${because}`),
  );
  return ['each host needs    cores    memory     disk', ...rows, ''];
}

function formatReading({ reading }: Rehearsal): readonly string[] {
  if (!reading) return [];
  const times = reading.seconds.map(
    ({ rate, least, most }) =>
      `${describeTime(least)} to ${describeTime(most)} at ${rate / 1e6} MB/s`,
  );
  return [
    `until its registry answers, a host reads ${formatSize(reading.least)} to ${formatSize(reading.most)} of the medium:`,
    `  ${times.join(', ')}`,
    '',
  ];
}

const describeTime = (seconds: number): string =>
  seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;

/** The verdict in one line. */
function formatVerdict(name: string, { steps, release }: Rehearsal): string {
  const count = (outcome: RehearsedStep['outcome']): number =>
    steps.filter((step) => step.outcome === outcome).length;
  const [failing, unknown] = [count('will-not'), count('unknown')];
  const what = release ? `${name} (${release.version}, ${release.architecture})` : name;
  const open = unknown === 0 ? '' : `, ${unknown} cannot be known`;
  return toPrintable(
    failing === 0
      ? `${what}: ${count('will')} steps will happen${open}`
      : `${what}: ${failing} of ${steps.length} steps will not happen${open}`,
  );
}

const formatMarkdown = (name: string, value: Rehearsal): string =>
  formatMarkdownReport({
    title: ['Rehearsal of ', { code: name }],
    summary: [['verdict', [{ code: formatVerdict(name, value) }]]],
    tables: [
      {
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
      ...(value.needs.length === 0 ? [] : [tableOfNeeds(value.needs)]),
    ],
    notes: [],
  });

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
