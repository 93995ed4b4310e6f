import { Option, type Command } from 'commander';
import { variableOf } from '../base/environment.ts';
import { UsageError, ConfigProblems, type DocumentProblem } from '../base/errors.ts';
import { formatReadableJson } from '../base/text/json.ts';
import {
  describeConfig,
  formatConfig,
  listSources,
  toJson,
  type Effective,
  type EnvironmentValues,
} from '../config/effective.ts';
import {
  checkConfig,
  nameConfig,
  readConfigFiles,
  type ConfigNames,
  type ConfigInput,
} from '../config/load.ts';
import { IMAGE_POLICY_VARIABLE } from '../openshift/release/image-policy.ts';
import { isInstallationConfig } from '../sites/installation.ts';
import { LIVE_ISO_RULES } from '../stages/rules.ts';
import type { CliHost } from './host.ts';
import { createConfigArgument, createSetOption, createStrictOption, harden } from './options.ts';
import { readInstallation } from './ask-installation.ts';
import { checkSurroundings } from './ask-appliance.ts';
import { refuseOverlays } from './build-installation-iso.ts';
import { writeResult, createOutputOption, type OutputFormat } from './terminal/output.ts';
import { type Report, lineOf, quoteProblems, say, writeReport } from './terminal/report.ts';

/* This file owns `config show` and `validate`, which read a configuration without network. */

type Options = {
  readonly set?: readonly string[];
  readonly outputFormat: 'text' | 'json' | 'yaml';
};

export function registerConfig(program: Command, host: CliHost): void {
  const config = program
    .command('config')
    .description('inspect a configuration')
    .addHelpText('after', '\nExample:\n  $ sealift config show base.yaml nightly.yaml');
  config
    .command('show')
    .description(
      'print the configuration after overlays and defaults, with the source of each value',
    )
    .addArgument(createConfigArgument())
    .addOption(createSetOption())
    .addOption(
      new Option('-o, --output-format <format>', 'how the result is printed')
        .choices(['text', 'yaml', 'json'])
        .default('text'),
    )
    .addHelpText(
      'after',
      '\nThe text is YAML with the source of each value in a comment; -o yaml leaves the comments out. Secrets\n' +
        'are shown as references, or masked. A configuration with problems is shown, and then refused.\n' +
        '\nExample:\n  $ sealift config show base.yaml nightly.yaml --set ocpRelease.version=4.22.1',
    )
    .action(async (names: ConfigNames, { set, outputFormat }: Options) => {
      const input = readConfigFiles(names, { set }, host);
      refuseInstallation(input.files[0]);
      const { problems } = checkConfig(input, { env: host.env });
      const effective = describeConfig(input, readVariables(host.env));
      if (effective) await writeResult(host, format(effective, outputFormat));
      if (problems.length > 0) throw new ConfigProblems(nameConfig(input), problems);
    });
}

function format(effective: Effective, outputFormat: Options['outputFormat']): string {
  if (outputFormat !== 'json') return formatConfig(effective, outputFormat === 'text');
  return formatReadableJson({
    configuration: toJson(effective),
    sources: Object.fromEntries(listSources(effective)),
  });
}

function refuseInstallation({
  path,
  text,
}: {
  readonly path: string;
  readonly text: string;
}): void {
  if (!isInstallationConfig(path, text)) return;
  throw new UsageError(
    'usage.other-product',
    '"config show" is for the configuration of an appliance',
    {
      expected: 'the configuration of an appliance',
      found: 'that of an installation ISO',
      hint: 'check it with "sealift validate"',
    },
  );
}

/** Reads the settings that a variable decides unless the configuration has them. */
function readVariables(env: NodeJS.ProcessEnv): EnvironmentValues {
  const keys = variableOf(env, 'OCP_SIGNATURE_VERIFICATION_PK');
  const values = new Map<string, { readonly variable: string; readonly value: boolean | string }>();
  if (variableOf(env, IMAGE_POLICY_VARIABLE) !== undefined) {
    values.set('build.disableImagePolicy', { variable: IMAGE_POLICY_VARIABLE, value: true });
  }
  if (keys !== undefined) {
    values.set('build.signatureKeys', { variable: 'OCP_SIGNATURE_VERIFICATION_PK', value: keys });
  }
  return values;
}

type Verdict = {
  readonly file: string;
  readonly valid: boolean;
  readonly problems: readonly DocumentProblem[];
  readonly notes: readonly DocumentProblem[];
};

/** Registers `sealift validate [CONFIG]`: no network; exit code 3 when there are problems. */
export function registerValidate(program: Command, host: CliHost): void {
  program
    .command('validate')
    .description('check a configuration without network')
    .addArgument(
      createConfigArgument(
        'configuration of an appliance (later files override earlier ones) or of an installation ISO',
      ),
    )
    .addOption(createSetOption())
    .addOption(createStrictOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nNotes are about things that are not wrong in the file, but may stop a build on this machine: a\n' +
        'secret that is absent, for example. With --strict, for pipelines, each is an error.\n' +
        '\nExamples:\n  $ sealift validate site-a/appliance-config.yaml\n' +
        '  $ sealift validate base.yaml nightly.yaml --set ocpRelease.version=4.22.1',
    )
    .action(async (names: ConfigNames, { set, strict, outputFormat }: ValidateOptions) => {
      const input = readConfigFiles(names, { set }, host);
      const { path, text } = input.files[0];
      const isInstallation = isInstallationConfig(path, text);
      if (isInstallation) refuseOverlays(names, set);
      const found = await (isInstallation ? checkInstallation : checkAppliance)(input, host);
      const { problems, notes } = strict ? hardenNotes(found) : found;
      const file = nameConfig(input);
      const value: Verdict = { file, valid: problems.length === 0, problems, notes };
      await writeReport({ host, outputFormat }, value, describeVerdict);
      if (problems.length > 0) throw new ConfigProblems(file, problems);
    });
}

type ValidateOptions = {
  readonly set?: readonly string[];
  readonly strict: boolean;
  readonly outputFormat: OutputFormat;
};

type Found = Pick<Verdict, 'problems' | 'notes'>;

const hardenNotes = ({ problems, notes }: Found): Found => ({
  problems: [...problems, ...notes.map(harden)],
  notes: [],
});

type Check = (input: ConfigInput, host: CliHost) => Found | Promise<Found>;

/** Checks by the rules of `build live-iso`; problems of files next to it are thrown one by one. */
const checkAppliance: Check = (input, host) => {
  const check = checkConfig(input, { env: host.env, rules: LIVE_ISO_RULES });
  if (check.problems.length === 0) checkSurroundings(input.files[0].path, host);
  return check;
};

const checkInstallation: Check = async ({ files: [{ path, shownAs }] }, host) => {
  try {
    const { notes } = await readInstallation(path, shownAs, host);
    return { problems: [], notes: notes.map((note) => toProblem(note, shownAs)) };
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return { problems: error.problems, notes: [] };
  }
};

/** Converts a note to a problem of severity `note`; a note without a place is at 1:1. */
const toProblem = (note: DocumentProblem | string, file: string): DocumentProblem =>
  typeof note === 'string'
    ? { ...NOTE, file, line: 1, column: 1, path: '', lineText: '', problem: note }
    : { ...note, severity: NOTE.severity };

const NOTE = { severity: 'note', code: 'config.note' } as const;

/** Describes the verdict without problems: they go to stderr, where every failure is reported. */
export const describeVerdict = ({ file, valid, notes }: Verdict): Report => ({
  title: say`Check of ${file}`,
  body: [...quoteProblems(notes), ...(valid ? [lineOf(say`${file} is valid`)] : [])],
});
