import { resolve } from 'node:path';
import type { Command } from 'commander';
import { IntegrityError } from '../../base/errors.ts';
import { openMedium } from '../../media/open-medium.ts';
import { readBootstrapIgnition, readEmbeddedIgnition } from '../../media/read-ignition.ts';
import type { CliHost } from '../host.ts';
import { writeContent } from '../terminal/output.ts';

/** `sealift ignition show ISO`. */
export function registerIgnition(program: Command, host: CliHost): void {
  program
    .command('ignition')
    .description('the Ignition configs of a live ISO')
    .addHelpText('after', '\nExample:\n  $ sealift ignition show appliance.iso | jq .storage')
    .command('show')
    .description('print the config in the embed area')
    .argument('<iso>', 'CoreOS live ISO, of any maker')
    .option('--bootstrap', 'print the bootstrap config instead, which media of ours carry')
    .addHelpText(
      'after',
      '\nPrints all of it, secrets included.\n' +
        '\nExample:\n  $ sealift ignition show appliance.iso | jq -r ".storage.files[].path"',
    )
    .action(async (path: string, { bootstrap }: { bootstrap?: boolean }) => {
      const iso = await openMedium(resolve(host.cwd, path));
      try {
        const read = bootstrap === true ? readBootstrapIgnition : readEmbeddedIgnition;
        const text = await read(iso);
        if (text === undefined) throw noConfig(path, bootstrap === true);
        await writeContent(host, text.endsWith('\n') ? text : `${text}\n`);
      } finally {
        await iso.close();
      }
    });
}

const noConfig = (path: string, bootstrap: boolean): IntegrityError =>
  new IntegrityError(
    'ignition.none',
    `${path} has no ${bootstrap ? 'bootstrap' : 'embedded'} Ignition config`,
  );
