import type { Command } from 'commander';
import {
  listGenerations,
  type ListedGeneration,
} from '../../recipes/config-iso/list-generations.ts';
import { DROP_IN_NAME } from '../../sites/state/site-places.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';
import { resolveGiven } from './config-iso-request.ts';
import { toPrintable } from '../../base/text/printable-text.ts';

type GenerationsOptions = {
  readonly out: string;
  readonly dropIn: boolean;
  readonly outputFormat: OutputFormat;
};

/** `sealift config-iso generations SITE`. */
export function registerConfigIsoGenerations(parent: Command, host: CliHost): void {
  parent
    .command('generations')
    .description('list the identities that a site has and had, without their secrets')
    .argument('<site>', 'name of a site; with --drop-in, directory of one site')
    .option('--out <dir>', 'where the site was built', 'config-isos')
    .option('--drop-in', 'SITE is the directory of one site that was built with --drop-in', false)
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nEach generation of keys, ids and password stays until a person removes its file. The one in use\n' +
        'is used again as long as it fits the inputs; "config-iso build --use-generation N" chooses another.\n' +
        '\nExample:\n  $ sealift config-iso generations alpha --out ./isos',
    )
    .action(async (site: string, { out, dropIn, outputFormat }: GenerationsOptions) => {
      const directory = resolveGiven(host.cwd, dropIn ? site : out, dropIn ? 'SITE' : '--out');
      const name = dropIn ? DROP_IN_NAME : site;
      const generations = await listGenerations(directory, name);
      await writeFormatted(host, outputFormat, {
        value: { site: name, generations },
        formatText: () => generations.map(formatGeneration).join('\n'),
      });
    });
}

function formatGeneration({ number, isInUse, identity }: ListedGeneration): string {
  const head = `generation ${number}${isInUse ? ', in use' : ''}`;
  if (!identity) return `${head}: damaged, its file is not the whole of what was written\n`;
  const { madeAt, clusterName, baseDomain, clusterId, infraId, fingerprint } = identity;
  return [
    head,
    `  made         ${madeAt}`,
    `  cluster      ${toPrintable(`${clusterName}.${baseDomain}`)}`,
    `  cluster id   ${toPrintable(clusterId)}`,
    `  infra id     ${toPrintable(infraId)}`,
    `  fingerprint  ${fingerprint}`,
    '',
  ].join('\n');
}
