import type { Command } from 'commander';
import { isInstallationConfig } from '../sites/installation.ts';
import {
  checkConfig,
  nameConfig,
  readConfigFiles,
  type ConfigInput,
  type ConfigNames,
} from '../config/load.ts';
import { ConfigProblems, formatProblem, type DocumentProblem } from '../base/errors.ts';
import { LIVE_ISO_RULES } from '../stages/rules.ts';
import { createConfigArgument, createSetOption } from './common-options.ts';
import { refuseOverlays } from './building/recipe-command.ts';
import { readInstallation } from './building/requests/installation-request.ts';
import { readSurroundings } from './building/requests/live-request.ts';
import type { CliHost } from './host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from './terminal/output.ts';

type Verdict = {
  readonly file: string;
  readonly valid: boolean;
  readonly problems: readonly DocumentProblem[];
  readonly notes: readonly DocumentProblem[];
};

/** `sealift validate [CONFIG]`: no network; exit code 3 when there are problems. */
export function registerValidate(program: Command, host: CliHost): void {
  program
    .command('validate')
    .description('check a configuration without network')
    .addArgument(
      createConfigArgument(
        'configuration of an appliance, later files laid over, or of an installation ISO',
      ),
    )
    .addOption(createSetOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nNotes say what does not make the file wrong, but may stop a build on this machine.\n' +
        '\nExamples:\n  $ sealift validate site-a/appliance-config.yaml\n' +
        '  $ sealift validate base.yaml nightly.yaml --set ocpRelease.version=4.22.1',
    )
    .action(async (names: ConfigNames, { set, outputFormat }: Options) => {
      const input = readConfigFiles(names, { set }, host);
      const { path, text } = input.files[0];
      const isInstallation = isInstallationConfig(path, text);
      if (isInstallation) refuseOverlays(names, set);
      const { problems, notes } = await (isInstallation ? checkInstallation : checkAppliance)(
        input,
        host,
      );
      const file = nameConfig(input);
      const value: Verdict = { file, valid: problems.length === 0, problems, notes };
      await writeFormatted({ host, outputFormat }, value, formatVerdict);
      if (problems.length > 0) throw new ConfigProblems(file, problems);
    });
}

type Options = { readonly set?: readonly string[]; readonly outputFormat: OutputFormat };

type Found = Pick<Verdict, 'problems' | 'notes'>;

type Check = (input: ConfigInput, host: CliHost) => Found | Promise<Found>;

/** By the rules of `build live-iso`; what is wrong beside the file is an error of its own. */
const checkAppliance: Check = (input, host) => {
  const check = checkConfig(input, { env: host.env, rules: LIVE_ISO_RULES });
  if (check.problems.length === 0) readSurroundings(input.files[0].path, host);
  return check;
};

/** By the rules of `build installation-iso`. */
const checkInstallation: Check = async ({ files: [{ path, shownAs }] }, host) => {
  try {
    const { notes } = await readInstallation(path, shownAs, host);
    return { problems: [], notes: notes.map((note) => toProblem(note, shownAs)) };
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    return { problems: error.problems, notes: [] };
  }
};

/** What has no place in the file is said of all of it. */
const toProblem = (note: DocumentProblem | string, file: string): DocumentProblem =>
  typeof note === 'string'
    ? { ...NOTE, file, line: 1, column: 1, path: '', lineText: '', problem: note }
    : { ...note, severity: NOTE.severity };

const NOTE = { severity: 'note', code: 'config.note' } as const;

/** Problems are left to stderr, where every failure is reported. */
function formatVerdict({ file, valid, notes }: Verdict): string {
  const lines = notes.map(formatProblem);
  return [...lines, ...(valid ? [`${file} is valid`] : []), ''].join('\n');
}
