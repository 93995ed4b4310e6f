import type { Command } from 'commander';
import type { ConfigNames } from '../config/load.ts';
import { findConfigArgument, productArgument, toNames } from './find-product.ts';
import type { CliHost } from './host.ts';
import { addLockOptions, refuseLockInFront } from './lock-options.ts';
import { createRehearseOption } from './medium/rehearse-built.ts';
import { createVerifyOption } from './medium/verify.ts';
import type { ProductFlags, ProductRow, ProductTable } from './product.ts';
import { createSecretsOption } from './secrets-elsewhere.ts';
import { createForceOption } from './terminal/output.ts';

/** Registers `sealift build [live-iso] [CONFIG]`, and the other products as commands below it. */
export function registerBuild(program: Command, host: CliHost, products: ProductTable): void {
  const [first, ...others] = products;
  // Options after the name of another product belong to that product, and both levels must know it.
  const build = addBuildOptions(first, program.enablePositionalOptions().command('build'))
    .enablePositionalOptions()
    .helpCommand(false)
    .description('build a medium; after an interruption, run it again to continue')
    .usage('[options] [product] [config...]')
    .argument(...productArgument([first]))
    .addHelpText('after', HELP)
    .action(async (args: readonly string[], options: ProductFlags) => {
      const config = await findConfigArgument(args, { products, named: [first] }, host);
      await first.build({ config, options, host });
    });
  build.hook('preSubcommand', refuseLockInFront);
  for (const row of others) {
    addBuildOptions(row, build.command(row.name))
      .description(row.words?.build.description ?? '')
      .addHelpText('after', row.words?.build.help ?? '')
      .action((config: string | ConfigNames, options: ProductFlags) =>
        row.build({ config: toNames(config), options, host }),
      );
  }
}

const HELP =
  '\nProducts: live-iso (default), and those listed as commands.\n' +
  '\nWith --force, a block device that is not in use is overwritten, and read again at the end.\n' +
  '\nSOURCE_DATE_EPOCH, in seconds since 1970, is the time of the ISO and of all files on it; without\n' +
  'it, they have the time at which the release was made.\n' +
  '\nExamples:\n  $ sealift build live-iso appliance-config.yaml --output ove.iso\n' +
  '  $ sealift build live-iso appliance-config.yaml --output s3://media/nightly.iso\n' +
  '  $ sealift build live-iso appliance-config.yaml --output oci://registry.example.com/media/ove:nightly\n' +
  '  $ sealift lock && sealift build --locked';

function addBuildOptions({ addOptions, plans, hasSecrets }: ProductRow, build: Command): Command {
  const command = addLockOptions(addOptions(build))
    .option('--plan <file>', `take exactly the images of ${plans}, even if tags have moved`)
    .addOption(createVerifyOption());
  if (hasSecrets) command.addOption(createSecretsOption());
  return command.addOption(createRehearseOption()).addOption(createForceOption());
}
