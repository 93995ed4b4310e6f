import { resolve } from 'node:path';
import type { Command } from 'commander';
import { formatReadableJson } from '../../base/text/canonical-json.ts';
import { formatSize } from '../../base/text/quantities.ts';
import type { ConfigIso } from '../../sites/read-config-iso.ts';
import { showConfigIso } from '../../recipes/config-iso/show-config-iso.ts';
import type { CliHost } from '../host.ts';
import { toPrintable, toPrintableLines } from '../../base/text/printable-text.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';

/** `sealift config-iso show ISO`. */
export function registerConfigIsoShow(parent: Command, host: CliHost): void {
  parent
    .command('show')
    .description('print what a configuration ISO holds, without its secrets')
    .argument('<iso>', 'configuration ISO of any maker')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift config-iso show isos/alpha.iso')
    .action(async (iso: string, { outputFormat }: { outputFormat: OutputFormat }) => {
      const value = await showConfigIso(resolve(host.cwd, iso));
      await writeFormatted(host, outputFormat, {
        value,
        formatText: (value) => formatIso(iso, value),
      });
    });
}

function formatIso(iso: string, { volumeId, size, entries, manifest }: ConfigIso): string {
  return [
    `${iso}: label ${volumeId}, ${formatSize(size)}`,
    ...entries.map(({ path, size, digest }) =>
      digest === undefined
        ? `  ${toPrintable(path)}`
        : `  ${toPrintable(path)}  ${size} bytes, ${digest}`,
    ),
    'manifest',
    ...toPrintableLines(formatReadableJson(manifest))
      .trimEnd()
      .split('\n')
      .map((line) => `  ${line}`),
    '',
  ].join('\n');
}
