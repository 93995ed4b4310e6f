import { Argument, type Command } from 'commander';
import type { CliHost } from './host.ts';
import { renderCompletion, type Shell } from './completion-scripts.ts';
import { writeContent } from './terminal/output.ts';

/** `sealift completion bash|zsh|fish`. */
export function registerCompletion(program: Command, host: CliHost): void {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift completion bash > ~/.local/share/bash-completion/completions/sealift',
    )
    .action(async (shell: Shell) => {
      await writeContent(host, renderCompletion(shell, program));
    });
}
