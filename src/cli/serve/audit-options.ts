import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { digestCanonicalJson } from '../../base/text/json.ts';
import type { AuditSettings } from '../../service/audit/open.ts';
import { parseSyslogTarget, type SyslogTarget } from '../../service/audit/syslog-target.ts';
import type { CliHost } from '../host.ts';
import { refuseOption } from '../options.ts';

/* Owns the options of the audit log. */

export type AuditOptions = {
  readonly auditLog?: string;
  readonly acceptRestore?: boolean;
  readonly auditSyslog?: SyslogTarget;
};

export const addAuditOptions = (command: Command): Command =>
  command
    .option('--audit-log <file>', 'append who changed, fetched and was refused what, as JSON lines')
    .addOption(
      new Option(
        '--audit-syslog <target>',
        'with --audit-log: send each line to udp://HOST:PORT, tcp://HOST:PORT or unix:/dev/log as well',
      ).argParser(parseTarget),
    )
    .option(
      '--accept-restore',
      'with --audit-log: accept records that are older than the log, once',
    );

/** Options whose values may be secrets, or have some. */
const SECRET: readonly string[] = ['database', 'key', 'previousKey'];

/** Reads the options of the audit log. @returns the member `audit`; an empty object without `--audit-log` */
export function readAudit(
  options: AuditOptions & object,
  { cwd }: Pick<CliHost, 'cwd'>,
): { readonly audit?: AuditSettings } {
  const { auditLog, acceptRestore = false, auditSyslog: syslog } = options;
  if (auditLog === undefined) {
    if (syslog)
      throw new UsageError('usage.audit-syslog', '--audit-syslog needs --audit-log', {
        hint: 'name the file in which the chain is kept',
      });
    return {};
  }
  const shown = Object.entries(options).filter(([name]) => !SECRET.includes(name));
  const settings = digestCanonicalJson(Object.fromEntries(shown));
  return {
    audit: {
      file: resolve(cwd, auditLog),
      settings,
      acceptRestore,
      ...withoutUndefined({ syslog }),
    },
  };
}

function parseTarget(text: string): SyslogTarget {
  const target = parseSyslogTarget(text);
  if (target) return target;
  throw refuseOption('usage.audit-syslog', text, {
    expected: 'udp://HOST:PORT, tcp://HOST:PORT or unix:PATH',
  });
}
