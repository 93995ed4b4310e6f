import { resolve } from 'node:path';
import type { Command } from 'commander';
import { checkConfig, readConfigText } from '../config/load-config.ts';
import { ConfigProblems, formatProblem, type ConfigProblem } from '../config/document/problem.ts';
import type { CliHost } from './host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from './terminal/output.ts';

type Verdict = {
  readonly file: string;
  readonly valid: boolean;
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly ConfigProblem[];
};

/** `sealift validate [CONFIG]`: no network; exit code 3 when there are problems. */
export function registerValidate(program: Command, host: CliHost): void {
  program
    .command('validate')
    .description('check a configuration without network')
    .argument('[config]', 'configuration file', 'appliance-config.yaml')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nNotes say what does not make the file wrong, but may stop a build on this machine.\n' +
        '\nExample:\n  $ sealift validate site-a/appliance-config.yaml',
    )
    .action(async (config: string, options: { outputFormat: OutputFormat }) => {
      const path = resolve(host.cwd, config);
      const text = await readConfigText(path);
      const { problems, notes } = checkConfig(text, path, { env: host.env, shownAs: config });
      const value: Verdict = { file: config, valid: problems.length === 0, problems, notes };
      await writeFormatted(host, options.outputFormat, { value, formatText: formatVerdict });
      if (problems.length > 0) throw new ConfigProblems(config, problems);
    });
}

/** Problems are left to stderr, where every failure is told. */
function formatVerdict({ file, valid, notes }: Verdict): string {
  const lines = notes.map((note) => formatProblem({ ...note, problem: `note: ${note.problem}` }));
  return [...lines, ...(valid ? [`${file} is valid`] : []), ''].join('\n');
}
