import type { Command } from 'commander';
import { resolve } from 'node:path';
import { withoutUndefined } from '../../base/lists.ts';
import type { CliHost } from '../host.ts';
import {
  createOutputOption,
  writeFormatted,
  writeMessage,
  type OutputFormat,
} from '../terminal/output.ts';
import { readDatabase, readKeys, type ServeAccess } from './access.ts';

type RekeyOptions = ServeAccess & {
  readonly data: string;
  readonly outputFormat: OutputFormat;
};

/** Registers `sealift serve rekey`, which ends; options of `serve` name the records and the keys. */
export function registerRekey(serve: Command, host: CliHost): void {
  serve
    .command('rekey')
    .description('change the key of the records from --previous-key to --key')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nWith --database, services go on meanwhile: start each of them with both keys first, and with\n' +
        '--key alone afterwards. Records in files are changed while no service uses them; a service that\n' +
        'starts with both keys does so itself. Without --previous-key, records of the first format are\n' +
        'encrypted as the later ones are.\n' +
        '\nExample:\n  $ sealift serve rekey --data ./service --database env:DATABASE --key file:new.key --previous-key file:serve.key',
    )
    .action(async (_options: object, command: Command) => {
      const options = command.optsWithGlobals<RekeyOptions>();
      const { rekeyRecords } = await import('../../service/state/rekey.ts');
      const done = await rekeyRecords({
        data: resolve(host.cwd, options.data),
        ...readKeys(options, host),
        ...withoutUndefined({ database: readDatabase(options, host) }),
        env: host.env,
        signal: host.signal,
        warn: (message) => {
          writeMessage(host, `warning: ${message}\n`);
        },
      });
      await writeFormatted(
        { host, outputFormat: options.outputFormat },
        done,
        () =>
          `${done.keys} keys changed to --key, ${done.records} records of the first format encrypted again\n`,
      );
    });
}
