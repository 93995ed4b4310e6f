import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isInstallationConfig } from '../sites/installation/read-installation-config.ts';
import { checkConfig, readConfigText } from '../config/load-config.ts';
import { ConfigProblems, formatProblem, type DocumentProblem } from '../base/problem.ts';
import { LIVE_ISO_RULES } from '../recipes/live-iso/live-iso-rules.ts';
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
    .argument(
      '[config]',
      'configuration of an appliance or of an installation ISO',
      'appliance-config.yaml',
    )
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nNotes say what does not make the file wrong, but may stop a build on this machine.\n' +
        '\nExample:\n  $ sealift validate site-a/appliance-config.yaml',
    )
    .action(async (config: string, options: { outputFormat: OutputFormat }) => {
      const path = resolve(host.cwd, config);
      const text = readConfigText(path);
      const check = isInstallationConfig(path, text) ? checkInstallation : checkAppliance;
      const { problems, notes } = await check({ path, text, shownAs: config }, host);
      const value: Verdict = { file: config, valid: problems.length === 0, problems, notes };
      await writeFormatted({ host, ...options }, value, formatVerdict);
      if (problems.length > 0) throw new ConfigProblems(config, problems);
    });
}

type Given = { readonly path: string; readonly text: string; readonly shownAs: string };

type Found = Pick<Verdict, 'problems' | 'notes'>;

type Check = (given: Given, host: CliHost) => Found | Promise<Found>;

/** By the rules of `build live-iso`; what is wrong beside the file is an error of its own. */
const checkAppliance: Check = ({ path, text, shownAs }, host) => {
  const options = { env: host.env, shownAs, rules: LIVE_ISO_RULES };
  const check = checkConfig(text, path, options);
  if (check.problems.length === 0) readSurroundings(path, host);
  return check;
};

/** By the rules of `build installation-iso`. */
const checkInstallation: Check = async ({ path, shownAs }, host) => {
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
