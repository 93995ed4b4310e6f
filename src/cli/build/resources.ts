import type { Command } from 'commander';
import { listResources } from '../../recipes/list-resources.ts';
import type { CliHost } from '../host.ts';
import { addLiveOptions, runLive, type LiveCommandOptions } from './live-command.ts';
import { writeFormatted } from '../terminal/output.ts';

/** `sealift resources [CONFIG]`: what a cluster is told of the media. */
export function registerResources(program: Command, host: CliHost): void {
  addLiveOptions(program.command('resources'))
    .description('print the cluster resources that make a cluster use the media')
    .argument('[config]', 'configuration file', 'appliance-config.yaml')
    .addHelpText(
      'after',
      '\nMirror sets, catalog sources, cluster catalogs, release signatures. Media carry them already,\n' +
        'cluster catalogs apart; this is for clusters that are there.\n' +
        '\nExample:\n  $ sealift resources | oc apply -f -',
    )
    .action(async (config: string, options: LiveCommandOptions) => {
      const value = await runLive({ config, options, host }, listResources);
      await writeFormatted(host, options.outputFormat, {
        value,
        formatText: (manifests) =>
          manifests.map(({ name, text }) => `---\n# ${name}\n${text}`).join(''),
      });
    });
}
