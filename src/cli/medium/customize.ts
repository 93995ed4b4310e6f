import { Option, type Command } from 'commander';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { withLease } from '../../base/disk/lease.ts';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import type { OverlayPart } from '../../media/areas.ts';
import { copyWithParts } from '../../media/customize/copy.ts';
import type { ResetTo } from '../../media/customize/reset.ts';
import { readCustomisation } from '../../media/customize/read.ts';
import { asideOf, writeAreas } from '../../media/customize/write.ts';
import { openGivenIso } from '../../media/delta/describe.ts';
import { isOurs } from '../../media/open.ts';
import { readMediumDefinitions } from '../../media/payload.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import { claimFile } from '../../outputs/file/claim.ts';
import { refuseStream } from '../../outputs/output.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import type { CliHost } from '../host.ts';
import { planNetworks } from '../networks.ts';
import { createWaitOption } from '../options.ts';
import { runWithProgress, ISO_ARGUMENT, useIso, useWatched } from '../named-media.ts';
import { BEGIN_AGAIN, sayAgain } from '../terminal/progress.ts';
import { createOutputOption, writeMessage, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { createPlan, type Plan } from './customize-plan.ts';
import { type Done, describeCustomisation, describeDone } from './customize-result.ts';
import {
  addValueOptions,
  listGiven,
  readConfigImage,
  readCustomizeValues,
  type ValueOptions,
} from './customize-values.ts';
import { placeInPlace } from './delta.ts';
import { writeReport } from '../terminal/report.ts';

type Options = ValueOptions & {
  readonly output?: string;
  readonly inPlace: boolean;
  readonly show: boolean;
  readonly reset?: ResetTo;
  readonly dropBuilt: boolean;
  readonly force: boolean;
  readonly wait: boolean;
  readonly workDir: string;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

const HELP =
  '\nOnly the areas that CoreOS leaves for an Ignition config and kernel arguments are written, and with --site\n' +
  'the area of a configuration image. The old bytes are saved first: after a kill, the next run undoes what\n' +
  'was begun.\n' +
  '\nExamples:\n' +
  '  $ sealift customize appliance.iso --ssh-key file:id.pub --pull-secret file:pull-secret.json --in-place\n' +
  '  $ sealift customize appliance.iso --infraenv site.yaml --output site.iso\n' +
  '  $ sealift customize appliance.iso --site agentconfig.noarch.iso --output site.iso\n' +
  '  $ sealift customize appliance.iso --show\n' +
  '  $ sealift customize appliance.iso --reset --in-place';

export function registerCustomize(program: Command, host: CliHost): void {
  const command = program
    .command('customize')
    .description("put a site's values into a live ISO, without building it again")
    .argument('<iso>', `CoreOS live ${ISO_ARGUMENT}, of any maker`)
    .option('--output <file>', 'the customised ISO to write')
    .option('--in-place', 'change the ISO in place: a file or a block device', false)
    .option('--show', 'print what is set, without secrets', false)
    .addOption(
      new Option(
        '--reset [state]',
        'restore the ISO as it was built; --reset=bare takes all values off, also those of the build',
      )
        .choices(['built', 'bare'])
        .preset('built'),
    )
    .option(
      '--drop-built',
      'overwrite the copy of the values that the build gave, which can hold secrets',
      false,
    );
  addValueOptions(command)
    .addOption(new Option('--force', 'customise again, and overwrite an output').default(false))
    .addOption(createWaitOption())
    .option(
      '--work-dir <dir>',
      'directory for the old bytes of a device while it is changed',
      '.sealift',
    )
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText('after', HELP)
    .action(async (iso: string, options: Options) => {
      requireOneMode(options);
      requireWork(options);
      if (options.show) return show(iso, options, host);
      const read = await readCustomizeValues(options, host, (kinds) =>
        useIso(iso, host, (image) => readMediumDefinitions(image, kinds, host.signal)),
      );
      const image = readConfigImage(options, host);
      if (!isWork(options) && !image && Object.keys(read).length === 0) throw noValue();
      const hosts = read.hosts && (await planNetworks(read.hosts, host));
      const values = { ...read, ...withoutUndefined({ hosts }) };
      const plan = createPlan(values, { ...options, reset: options.reset, image }, host);
      const done =
        options.output === undefined
          ? await changeInPlace(iso, { ...options, values, plan }, host)
          : await writeCopy(iso, { ...options, values, plan, output: options.output }, host);
      await writeReport({ host, ...options }, done, describeDone);
    });
}

function requireOneMode({ output, inPlace, show }: Options): void {
  const chosen = [output !== undefined && '--output', inPlace && '--in-place', show && '--show'];
  const found = chosen.filter((mode) => mode !== false);
  if (found.length === 1) return;
  throw new UsageError('usage.in-place', 'the customised ISO needs one place', {
    expected: 'one of --output, --in-place and --show',
    found: found.length === 0 ? 'none' : found.join(' and '),
  });
}

function requireWork(options: Options): void {
  const { show, reset } = options;
  const given = listGiven(options).join(', ');
  if (!show && !isWork(options) && given === '') throw noValue();
  if ((!show && !reset) || given === '') return;
  const mode = show ? '--show' : '--reset';
  throw new UsageError('usage.customize', `${mode} takes no values, but is given ${given}`, {
    hint: show ? `leave out ${given}` : 'reset the ISO, then customise it',
  });
}

const noValue = (): UsageError =>
  new UsageError('usage.customize', 'no value for the ISO is given', {
    hint: 'give one, such as --ssh-key file:id.pub',
  });

/** True if something is done without values. */
const isWork = ({ reset, dropBuilt }: Options): boolean => reset !== undefined || dropBuilt;

async function show(text: string, options: Options, host: CliHost): Promise<void> {
  const found = await useIso(text, host, (iso) => readCustomisation(iso));
  await writeReport({ host, ...options }, { iso: text, ...found }, () =>
    describeCustomisation(text, found),
  );
}

type Work = Options & {
  readonly values: CustomValues;
  readonly plan: Plan;
};

async function changeInPlace(text: string, work: Work, host: CliHost): Promise<Done> {
  if (isElsewhere(text)) {
    throw new UsageError('usage.in-place', `${text} cannot be changed in place`, {
      expected: 'a file or a block device',
      hint: 'write a copy with --output',
    });
  }
  const path = resolve(host.cwd, text);
  const { aside, lock } = await placeInPlace(path, resolve(host.cwd, work.workDir));
  const place = {
    signal: host.signal,
    wait: work.wait,
    warn(message: string) {
      writeMessage(host, `warning: ${message}\n`);
    },
    path,
    aside: asideOf(aside.replace(/\.apply$/, '')),
    lock,
  };
  host.continuation?.begin(() =>
    existsSync(place.aside) ? sayAgain(`${text} is customised in part`) : undefined,
  );
  const written = await writeAreas(place, work.plan);
  host.continuation?.end();
  return { output: text, action: actionOf(work, written.changed), ...written };
}

async function writeCopy(
  text: string,
  work: Work & { readonly output: string },
  host: CliHost,
): Promise<Done> {
  refuseStream(work.output);
  const output = resolve(host.cwd, work.output);
  const inputs = isElsewhere(text) ? [] : [resolve(host.cwd, text)];
  const { force, logFormat } = work;
  await claimFile({ output, force, inputs, workDir: join(dirname(output), '.sealift') }, isOurs);
  const stage = { stage: 'write ISO', logFormat, host, describeLeft: () => BEGIN_AGAIN };
  return runWithProgress(stage, (watched) =>
    withLease(`${output}.lock`, { ...watched, wait: work.wait }, () =>
      useWatched(text, { ...host, ...watched }, async (source) => {
        const isLocal = !isElsewhere(text);
        const original = isLocal ? (await stat(source.path)).mode & 0o777 : 0o644;
        const { parts, isPrivate } = await work.plan(await openGivenIso(source));
        const mode = isPrivate ? 0o600 : original | 0o600;
        const changed = await countChanged(source, parts);
        await copyWithParts(source, parts, { ...watched, output, isLocal, mode });
        return {
          output: relative(host.cwd, output),
          action: actionOf(work, changed),
          changed,
          undone: false,
        };
      }),
    ),
  );
}

/** Adds the sizes of the areas that differ from the original. */
async function countChanged(
  { read }: RandomAccess,
  parts: readonly OverlayPart[],
): Promise<number> {
  let changed = 0;
  for (const { offset, bytes } of parts) {
    const isSame = (await read(offset, bytes.length)).equals(bytes);
    changed += isSame ? 0 : bytes.length;
  }
  return changed;
}

const actionOf = ({ reset }: Options, changed: number): Done['action'] =>
  changed === 0 ? 'unchanged' : reset ? 'reset' : 'customised';
