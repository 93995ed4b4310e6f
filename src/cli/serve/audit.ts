import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { isDigestHex } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { ConfigError } from '../../base/errors.ts';
import type { CliHost } from '../host.ts';
import { refuseOption } from '../options.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { lineOf, say, writeReport } from '../terminal/report.ts';

type VerifyOptions = { readonly expect?: string; readonly outputFormat: OutputFormat };

/** Registers `sealift audit verify`, which needs no key and no records. */
export function registerAudit(program: Command, host: CliHost): void {
  const audit = program
    .command('audit')
    .description('check the audit log of "sealift serve"')
    .addHelpText('after', '\nExample:\n  $ sealift audit verify audit.log');
  audit
    .command('verify')
    .description('check that each line follows from the one before, and print the last hash')
    .argument('<file...>', 'files of one log, the oldest first')
    .addOption(
      new Option(
        '--expect <hash>',
        'hash that was printed or sent elsewhere before: the log must still have it',
      ).argParser(parseHash),
    )
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nWithout --expect, a log that was made again as a whole is not noticed: keep the last hash elsewhere.\n' +
        'Exit code 8: a line was changed, moved or left out, or the expected hash is not there.\n' +
        '\nExample:\n  $ sealift audit verify audit.log.1 audit.log --expect 6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b',
    )
    .action(async (files: readonly string[], { expect, outputFormat }: VerifyOptions) => {
      const { verifyAuditLog } = await import('../../service/audit/verify.ts');
      const paths = files.map((file) => resolve(host.cwd, file));
      const verified = await verifyAuditLog(paths, expect).catch((error: unknown) => {
        if (!isUnreadable(error)) throw error;
        throw new ConfigError('input.missing', 'an audit log cannot be read', { cause: error });
      });
      await writeReport({ host, outputFormat }, verified, (result) => {
        const { lines, first, last, expectedAt, isFromBeginning } = result;
        const earlier = isFromBeginning
          ? []
          : say`; lines before ${first.sequence} are in earlier files`;
        return {
          title: ['Verification of an audit log'],
          body: [
            lineOf(say`${lines} lines, each follows from the one before${earlier}`),
            ...(expectedAt === undefined
              ? []
              : [lineOf(say`the expected hash is that of line ${expectedAt}`)]),
            lineOf(say`last line: ${last.sequence} of ${last.time}`),
            lineOf(say`last hash: ${last.hash}`),
          ],
        };
      });
    });
}

function parseHash(text: string): string {
  if (isDigestHex(text)) return text;
  throw refuseOption('usage.expect', text, { expected: '64 hex digits' });
}
