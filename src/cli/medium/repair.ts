import type { Command } from 'commander';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { DifferenceError } from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { formatSize } from '../../base/text/words.ts';
import { loadConfig, readConfigFiles } from '../../config/load.ts';
import type { IsoSource } from '../../media/open.ts';
import {
  repairIso,
  type RepairedRange,
  type RepairReport,
  type RepairSources,
} from '../../media/repair/repair.ts';
import { keepOpen, readRemoteIso, type RemoteIso } from '../../media/repair/target.ts';
import { openReusable } from '../../media/seeds.ts';
import { isElsewhere, openSource } from '../../outputs/read/open.ts';
import { parseReference, type Reference } from '../../registry/index.ts';
import { openBuildTools, type BuildTools } from '../../stages/tools.ts';
import { hostPlacesOf, type CliHost } from '../host.ts';
import { addTo, createWaitOption } from '../options.ts';
import { runWithProgress, type Watched } from '../named-media.ts';
import { sayAgain } from '../terminal/progress.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { placeInPlace } from './delta.ts';
import {
  type Phrase,
  type Report,
  lineOf,
  say,
  writeReport,
  listShown,
  quoteProblems,
} from '../terminal/report.ts';

type Options = {
  readonly from: readonly string[];
  readonly config?: string;
  readonly workDir: string;
  readonly wait: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

const ORIGINS = 'registries';
const REPOSITORY = 'docker://';

/** Registers `sealift repair ISO --from SOURCE...`: exit code 8 when something could not be repaired. */
export function registerRepair(program: Command, host: CliHost): void {
  program
    .command('repair')
    .description('write the damaged bytes of an ISO again, from other copies of them')
    .argument('<iso>', 'ISO that is damaged or cut off; it is repaired in place')
    .requiredOption('--from <source>', 'source of its bytes; may be repeated', addTo)
    .option('--config <file>', 'take pull secret, CA and registries.conf from this configuration')
    .option('--work-dir <dir>', 'directory for fetched blobs until they are verified', '.sealift')
    .addOption(createWaitOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nA source is an ISO of sealift (of the same build or another, https:// too), the root of a registry, an OCI\n' +
        'layout, ' +
        `${REPOSITORY}HOST/REPOSITORY, or "${ORIGINS}": those that the images came from. Files are asked first.\n` +
        'Structures and files of the base come from an ISO that has the same ones. Every byte is verified\n' +
        'before it is written, and the whole ISO at the end. After an interruption, run it again to continue.\n' +
        '\nExample:\n  $ sealift repair stick.iso --from yesterday.iso --from registries',
    )
    .action(async (iso: string, options: Options) => {
      const { logFormat, wait } = options;
      const path = resolve(host.cwd, iso);
      const { lock } = await placeInPlace(path, resolve(host.cwd, options.workDir));
      let repaired = 0;
      const describeLeft = (): string => sayAgain(`${formatSize(repaired)} are repaired`);
      const onRepaired = (bytes: number): void => {
        repaired += bytes;
      };
      const stage = { stage: 'repair', logFormat, host, describeLeft };
      const report = await runWithProgress(stage, (watched) =>
        withSources(options, { ...host, ...watched }, (sources) =>
          repairIso(path, sources, { ...watched, lock, wait, onRepaired }),
        ),
      );
      await writeReport({ host, ...options }, report, () => describeRepair(iso, report));
      if (report.ok) return;
      throw new DifferenceError('repair.incomplete', `${iso} is not whole`, {
        expected: 'a source for every damaged byte',
        found: `${report.unrepaired.length} extents without one, ${report.problems.length} problems`,
        hint: 'name another source with --from, or build the ISO again',
      });
    });
}

type WatchedHost = CliHost & Pick<Watched, 'emit'>;

async function withSources<T>(
  options: Options,
  host: WatchedHost,
  work: (sources: RepairSources) => Promise<T>,
): Promise<T> {
  const {
    registry = [],
    address = [],
    path = [],
  } = Object.fromEntries(groupBy(options.from, kindOf));
  const paths = path.map((name) => resolve(host.cwd, name));
  const { seeds, close } = await openReusable({
    seeds: paths,
    replaced: '',
    takesBlobs: false,
    keepsPlaces: false,
    trustsRecords: false,
  });
  const isos: IsoSource[] = [];
  for (const name of paths) if (!(await stat(name)).isDirectory()) isos.push(name);
  const open: { readonly close: () => Promise<void> }[] = [{ close }];
  try {
    const elsewhere: RemoteIso[] = [];
    for (const name of address) {
      const access = await openSource(name, {
        ...hostPlacesOf(host),
        signal: host.signal,
        emit: host.emit,
      });
      open.push(access);
      elsewhere.push(await readRemoteIso(access));
      isos.push(keepOpen(access));
    }
    const found = { isos, local: seeds, elsewhere };
    if (registry.length === 0) return await work(found);
    const tools = await openTools(options, host);
    open.push(tools);
    return await work({ ...found, remote: describeRegistries(registry, tools) });
  } finally {
    for (const each of open) await each.close();
  }
}

function kindOf(name: string): 'registry' | 'address' | 'path' {
  if (name === ORIGINS || name.startsWith(REPOSITORY)) return 'registry';
  return isElsewhere(name) ? 'address' : 'path';
}

function describeRegistries(
  names: readonly string[],
  { client, workDir }: Pick<BuildTools, 'client' | 'workDir'>,
): NonNullable<RepairSources['remote']> {
  const references = names
    .filter((name) => name !== ORIGINS)
    .map((name) => parseReference(name.slice(REPOSITORY.length)));
  const origins = names.includes(ORIGINS);
  return {
    client,
    workDir,
    referencesOf: ({ source }): readonly Reference[] =>
      origins ? [...references, parseReference(source)] : references,
  };
}

function openTools({ config, workDir }: Options, host: CliHost) {
  const { env, cwd, signal } = host;
  return openBuildTools({
    ...hostPlacesOf(host),
    config:
      config === undefined
        ? { build: { insecureRegistries: [] } }
        : loadConfig(readConfigFiles([config], {}, host), { env }),
    workDir: resolve(cwd, workDir),
    signal,
    emit: () => undefined,
  });
}

/** Most entries shown of each kind; `-o json` has all. */
const SHOWN = 20;

export const describeRepair = (
  iso: string,
  { ok, damaged, problems, bytes }: RepairReport,
): Report => ({
  title: say`Repair of ${iso}`,
  body: [
    ...listShown(
      damaged.map((range) => lineOf(describeRange(range))),
      SHOWN,
    ),
    ...quoteProblems(problems.slice(0, SHOWN)),
    lineOf(
      say`damaged ${formatSize(bytes.damaged)} in ${damaged.length} extents, read ${formatSize(bytes.read)}, written ${formatSize(bytes.written)}`,
    ),
    ...(ok ? [lineOf(say`${iso} is whole`)] : []),
  ],
});

const describeRange = ({ offset, size, path, problem, source }: RepairedRange): Phrase => [
  source === undefined ? 'not repaired: ' : 'repaired: ',
  ...say`${path ?? 'structure'} (${size} bytes at ${offset}) ${problem}`,
  ...(source === undefined ? [] : say`; from ${source}`),
];
