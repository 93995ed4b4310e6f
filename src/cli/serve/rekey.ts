import type { Command } from 'commander';
import { resolve } from 'node:path';
import { withoutUndefined } from '../../base/lists.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, writeMessage, type OutputFormat } from '../terminal/output.ts';
import type { OpenedAudit } from '../../service/audit/open.ts';
import { type AuditOptions, readAudit } from './audit-options.ts';
import { readDatabase, readKeys, type ServeAccess } from './access.ts';
import { lineOf, say, writeReport } from '../terminal/report.ts';

type RekeyOptions = ServeAccess &
  AuditOptions & {
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
      const warn = (message: string): void => {
        writeMessage(host, `warning: ${message}\n`);
      };
      const { audit: settings } = readAudit(options, host);
      const { openAudit } = await import('../../service/audit/open.ts');
      const audit = settings && (await openAudit(settings, { ...host, warn }));
      const rekey = () =>
        rekeyRecords({
          data: resolve(host.cwd, options.data),
          ...readKeys(options, host),
          ...withoutUndefined({ database: readDatabase(options, host) }),
          env: host.env,
          signal: host.signal,
          warn,
        });
      const done = await noted(audit, rekey);
      await writeReport({ host, outputFormat: options.outputFormat }, done, () => ({
        title: ['Keys of records'],
        body: [
          lineOf(
            say`${done.keys} keys changed to --key, ${done.records} records of the first format encrypted again`,
          ),
        ],
      }));
    });
}

/** Changes the key, and notes it in the audit log. */
async function noted<Done extends { readonly keys: number; readonly records: number }>(
  audit: OpenedAudit | undefined,
  rekey: () => Promise<Done>,
): Promise<Done> {
  try {
    const done = await rekey();
    await audit?.log.write({ event: 'records.rekey', ...done });
    return done;
  } finally {
    await audit?.log.close();
  }
}
