import { dirname, join, relative, resolve } from 'node:path';
import { stat } from 'node:fs/promises';
import { Option, type Command } from 'commander';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';
import { withLock } from '../../base/disk/lock.ts';
import { formatSize } from '../../base/text/quantities.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import { copyWithParts } from '../../media/customize/copy-with-parts.ts';
import type { OverlayPart } from '../../media/customize/overlay.ts';
import { planCustomisation } from '../../media/customize/plan-customisation.ts';
import { planReset } from '../../media/customize/plan-reset.ts';
import { readCustomisation, type Customisation } from '../../media/customize/read-customisation.ts';
import { writeAreas } from '../../media/customize/write-areas.ts';
import { claimIso } from '../../media/output/claim-iso.ts';
import { isElsewhere } from '../../media/source/open-source.ts';
import { openIso } from '../../iso/open-iso.ts';
import type { CustomValues } from '../../openshift/customisation/custom-values.ts';
import { addProfiles } from '../../sites/network/nmstate/add-profiles.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { runWithProgress } from '../terminal/run-with-progress.ts';
import { addValueOptions, readValues, type ValueOptions } from './customize-values.ts';
import { placeInPlace } from './run-in-place.ts';
import { ISO_ARGUMENT, useIso, useWatched } from './use-named.ts';

type Options = ValueOptions & {
  readonly output?: string;
  readonly inPlace: boolean;
  readonly show: boolean;
  readonly reset: boolean;
  readonly force: boolean;
  readonly workDir: string;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** `sealift customize ISO [--output FILE | --in-place | --show]`. */
export function registerCustomize(program: Command, host: CliHost): void {
  const command = program
    .command('customize')
    .description("put a site's values into a live ISO, without building it again")
    .argument('<iso>', `CoreOS live ${ISO_ARGUMENT}, of any maker`)
    .option('--output <file>', 'the customised ISO to write')
    .option('--in-place', 'change the ISO at its place: a file or a block device', false)
    .option('--show', 'print what is set, without secrets', false)
    .option('--reset', 'restore the ISO as it was before', false);
  addValueOptions(command)
    .addOption(new Option('--force', 'customise again, and overwrite an output').default(false))
    .option('--work-dir <dir>', 'where the old bytes of a device are meanwhile', '.sealift')
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nOnly the areas that CoreOS leaves for an Ignition config and kernel arguments are written. The old bytes\n' +
        'are saved first: after a kill, the next call undoes what was begun.\n' +
        '\nExamples:\n' +
        '  $ sealift customize appliance.iso --ssh-key file:id.pub --pull-secret file:pull-secret.json --in-place\n' +
        '  $ sealift customize appliance.iso --infraenv site.yaml --output site.iso\n' +
        '  $ sealift customize appliance.iso --show\n' +
        '  $ sealift customize appliance.iso --reset --in-place',
    )
    .action(async (iso: string, options: Options) => {
      requireOneMode(options);
      if (options.show) return show(iso, options, host);
      const read = readValues(options, host);
      requireWork(options, read);
      const hosts = read.hosts && (await addProfiles(read.hosts, host));
      const values = { ...read, ...withoutUndefined({ hosts }) };
      const plan = options.reset
        ? planReset
        : (image: IsoImage) => planCustomisation(image, values, options);
      const done =
        options.output === undefined
          ? await changeInPlace(iso, { ...options, values, plan }, host)
          : await writeCopy(iso, { ...options, values, plan, output: options.output }, host);
      await writeFormatted({ host, ...options }, done, () => format(done));
    });
}

/** @throws UsageError `usage.in-place` */
function requireOneMode({ output, inPlace, show }: Options): void {
  const chosen = [output !== undefined && '--output', inPlace && '--in-place', show && '--show'];
  const found = chosen.filter((mode) => mode !== false);
  if (found.length === 1) return;
  throw new UsageError('usage.in-place', 'it is not said where the customised ISO goes', {
    expected: 'one of --output, --in-place and --show',
    found: found.length === 0 ? 'none' : found.join(' and '),
  });
}

/** @throws UsageError `usage.customize` */
function requireWork({ reset }: Options, values: CustomValues): void {
  const hasValues = Object.keys(values).length > 0;
  if (hasValues !== reset) return;
  throw new UsageError(
    'usage.customize',
    reset ? '--reset takes no values' : 'no value is given that the ISO should have',
    {
      hint: reset ? 'reset the ISO, then customise it' : 'give one, such as --ssh-key file:id.pub',
    },
  );
}

async function show(text: string, options: Options, host: CliHost): Promise<void> {
  const found = await useIso(text, host, (iso) => readCustomisation(iso));
  await writeFormatted({ host, ...options }, { iso: text, ...found }, () =>
    formatCustomisation(text, found),
  );
}

type Work = Options & {
  readonly values: CustomValues;
  readonly plan: (iso: IsoImage) => Promise<readonly OverlayPart[]>;
};

type Done = {
  readonly output: string;
  readonly action: 'customised' | 'reset';
  /** Bytes of the areas that are other than before. */
  readonly changed: number;
  /** Whether an earlier run that was killed was undone first. */
  readonly undone: boolean;
};

const actionOf = ({ reset }: Options): Done['action'] => (reset ? 'reset' : 'customised');

/** A pull secret and an Ignition config are for those alone who may read the ISO. */
const isPrivate = ({ pullSecret, ignitionOverride }: CustomValues): boolean =>
  pullSecret !== undefined || ignitionOverride !== undefined;

async function changeInPlace(text: string, work: Work, host: CliHost): Promise<Done> {
  if (isElsewhere(text)) {
    throw new UsageError('usage.in-place', `${text} cannot be changed in place`, {
      expected: 'a file or a block device',
      hint: 'write a copy with --output',
    });
  }
  const path = resolve(host.cwd, text);
  const { aside, lock } = await placeInPlace(path, resolve(host.cwd, work.workDir));
  const place = { path, aside: aside.replace(/\.apply$/, '.customize'), lock };
  const written = await writeAreas(place, work.plan, isPrivate(work.values));
  return { output: text, action: actionOf(work), ...written };
}

async function writeCopy(
  text: string,
  work: Work & { readonly output: string },
  host: CliHost,
): Promise<Done> {
  const output = resolve(host.cwd, work.output);
  const inputs = isElsewhere(text) ? [] : [resolve(host.cwd, text)];
  const { force, logFormat, values } = work;
  await claimIso({ output, force, inputs, workDir: join(dirname(output), '.sealift') });
  return withLock(`${output}.lock`, () =>
    runWithProgress({ stage: 'write ISO', logFormat, host }, (watched) =>
      useWatched(text, { ...host, ...watched }, async (source) => {
        const isLocal = !isElsewhere(text);
        const original = isLocal ? (await stat(source.path)).mode & 0o777 : 0o644;
        const mode = isPrivate(values) ? 0o600 : original | 0o600;
        const parts = await work.plan(await openIso(source));
        await copyWithParts(source, parts, { ...watched, output, isLocal, mode });
        const changed = parts.reduce((sum, { bytes }) => sum + bytes.length, 0);
        return {
          output: relative(host.cwd, output),
          action: actionOf(work),
          changed,
          undone: false,
        };
      }),
    ),
  );
}

const format = ({ output, action, changed, undone }: Done): string =>
  [
    ...(undone ? [`${output} had been left half-way: that was undone first`] : []),
    changed === 0
      ? `${output} is as asked already`
      : `${output} is ${action === 'reset' ? 'restored' : 'customised'}: ${formatSize(changed)} of areas written`,
    '',
  ].join('\n');

function formatCustomisation(
  iso: string,
  { customised, ignition, kernelArguments }: Customisation,
): string {
  const rows = [...listIgnition(ignition), ...listArguments(kernelArguments)];
  return [
    `${iso} is ${customised ? 'customised' : 'not customised'}`,
    ...rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(15)}${value}`])),
    '',
  ].join('\n');
}

type Row = readonly [name: string, value: string | undefined];

const listIgnition = (ignition: Customisation['ignition']): readonly Row[] => [
  ['room', `${formatSize(ignition.used)} of ${formatSize(ignition.size)} used`],
  ...ignition.sshKeys.map((key): Row => ['ssh key', key]),
  ['pull secret', ignition.pullSecret ? 'set, not shown' : undefined],
  ['rendezvous ip', ignition.rendezvousIp],
  ...Object.entries(ignition.proxy ?? {}),
  ['time servers', ignition.ntpSources.join(', ') || undefined],
  ['trust bundle', ignition.trustBundle ? 'set' : undefined],
  ...Object.entries(ignition.hostnames).map(([mac, name]): Row => ['host name', `${mac} ${name}`]),
  ...ignition.networkFiles.map((name): Row => ['network', name]),
];

function listArguments(kargs: Customisation['kernelArguments']): readonly Row[] {
  if (!kargs) return [];
  const isDefault = kargs.now === kargs.default;
  return [
    ['kernel args', kargs.now],
    ['  default', isDefault ? undefined : kargs.default],
  ];
}
