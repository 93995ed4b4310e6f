import { resolve } from 'node:path';
import type { Command } from 'commander';
import { digestOf } from '../../base/digest.ts';
import { DifferenceError } from '../../base/errors.ts';
import {
  diffConfigIsos,
  type ConfigIsoDifference,
} from '../../recipes/config-iso/show-config-iso.ts';
import type { CliHost } from '../host.ts';
import { toPrintable, toPrintableLines } from '../../base/text/printable-text.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';

/** `sealift config-iso diff A B`: exit code 8 when they differ. */
export function registerConfigIsoDiff(parent: Command, host: CliHost): void {
  parent
    .command('diff')
    .description('tell what two configuration ISOs do not have in common, without secrets')
    .argument('<a>', 'configuration ISO')
    .argument('<b>', 'configuration ISO')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift config-iso diff old/alpha.iso new/alpha.iso')
    .action(async (a: string, b: string, { outputFormat }: { outputFormat: OutputFormat }) => {
      const differences = await diffConfigIsos(resolve(host.cwd, a), resolve(host.cwd, b));
      await writeFormatted(host, outputFormat, {
        value: { differences },
        formatText: ({ differences }) => formatDifferences(differences),
      });
      if (differences.length === 0) return;
      throw new DifferenceError(
        'config-iso.differences',
        `${a} and ${b} have ${differences.length} differences`,
      );
    });
}

const formatDifferences = (differences: readonly ConfigIsoDifference[]): string =>
  differences.length === 0
    ? 'no differences\n'
    : differences.map((difference) => `${formatDifference(difference)}\n`).join('');

/** What is masked on both sides changed all the same. */
function formatDifference({ kind, path, a, b }: ConfigIsoDifference): string {
  const head = `${kind} ${toPrintable(path)}:`;
  if (a === undefined) return `${head} only in B: ${indent(b ?? '')}`;
  if (b === undefined) return `${head} only in A: ${indent(a)}`;
  if (a === b) return `${head} a secret that changed`;
  return `${head}\n  A: ${indent(a)}\n  B: ${indent(b)}`;
}

/** Nobody compares certificates by eye. */
const indent = (text: string): string =>
  text.startsWith('-----BEGIN ')
    ? `PEM of ${digestOf(text)}`
    : toPrintableLines(text.trimEnd()).replaceAll('\n', '\n     ');
