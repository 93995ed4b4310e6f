import type { Command } from 'commander';
import { formatReadableJson } from '../../base/text/json.ts';
import { listResources } from '../../stages/show.ts';
import type { ConfigNames } from '../../config/load.ts';
import { createConfigArgument } from '../common-options.ts';
import type { CliHost } from '../host.ts';
import { addLiveOptions, runLive, type LiveCommandOptions } from './recipe-command.ts';
import { createForceOption } from '../terminal/output.ts';
import { writeTexts } from '../write-texts.ts';

/** `sealift resources [CONFIG]`: what a cluster needs to know of the media. */
export function registerResources(program: Command, host: CliHost): void {
  addLiveOptions(program.command('resources'), {
    flags: '--output <file>',
    description: 'write them there, not to stdout',
  })
    .addOption(createForceOption())
    .description('print the cluster resources that make a cluster use the media')
    .addArgument(createConfigArgument())
    .addHelpText(
      'after',
      '\nMirror sets, catalog sources, cluster catalogs, release signatures. Media carry them already,\n' +
        'cluster catalogs apart; this is for existing clusters.\n' +
        '\nExample:\n  $ sealift resources | oc apply -f -',
    )
    .action(async (config: ConfigNames, options: LiveCommandOptions) => {
      const { output: path, force = false, ...live } = options;
      const value = await runLive({ config, options: live, host }, listResources);
      const text =
        options.outputFormat === 'json'
          ? formatReadableJson(value)
          : value.map(({ name, text }) => `---\n# ${name}\n${text}`).join('');
      const rule = { force, inputs: config };
      await writeTexts(host, [{ path: path ?? '-', text }], rule);
    });
}
