import { withoutUndefined } from '../../base/lists.ts';
import type { ClientAddresses } from '../../base/http/client-address.ts';
import { readVersion } from '../../base/program.ts';
import type { LedgerHead } from '../state/state.ts';
import { type Audit, createAudit } from './audit.ts';
import { openAuditFile, type AuditFile } from './file.ts';
import { createAuditLog, type AuditLog } from './log.ts';
import { createSyslog } from './syslog.ts';
import type { SyslogTarget } from './syslog-target.ts';

/* Owns the start of the audit log: it is open before the records are, and its end says which state they must have. */

export type AuditSettings = {
  readonly file: string;
  /** Digest of the settings with which the service starts, without secrets. */
  readonly settings: string;
  /** True if records are accepted that are older than the log. */
  readonly acceptRestore?: boolean;
  /** Receives a copy of each line. */
  readonly syslog?: SyslogTarget;
};

export type OpenedAudit = {
  readonly file: AuditFile;
  readonly log: AuditLog;
  readonly dropped: () => number;
  /** The last state of the records in the log. */
  readonly expected: LedgerHead | undefined;
  /** Has each entry name the present state of the records from now on. */
  readonly useHead: (head: () => LedgerHead) => void;
};

/** Opens the log. @throws errors of `openAuditFile` */
export async function openAudit(
  { file: path, syslog: target }: Pick<AuditSettings, 'file' | 'syslog'>,
  {
    now,
    env,
    ...options
  }: {
    readonly now: () => number;
    readonly env: NodeJS.ProcessEnv;
    readonly warn: (message: string) => void;
    readonly signal: AbortSignal;
  },
): Promise<OpenedAudit> {
  const file = await openAuditFile(path, options);
  const { warn } = options;
  let head: (() => LedgerHead) | undefined;
  const onLost = (count: number): void => {
    log.add({ event: 'syslog.lost', count });
  };
  const syslog = target && createSyslog(target, { env, warn, onLost });
  const written = createAuditLog({
    file,
    now,
    warn,
    head: () => head?.(),
    ...withoutUndefined({ onLine: syslog?.send }),
  });
  const log: AuditLog = {
    ...written,
    async close() {
      await written.close();
      await syslog?.close();
    },
  };
  if (file.torn > 0) log.add({ event: 'log.resume', torn: file.torn });
  return {
    file,
    log,
    dropped: () => syslog?.dropped() ?? 0,
    expected: file.tail.ledger,
    useHead(next) {
      head = next;
    },
  };
}

/** Notes the start of the service. @throws ApiFailure 503 */
export async function startAudit(
  { log, file, dropped }: OpenedAudit,
  { settings }: AuditSettings,
  tools: {
    readonly now: () => number;
    readonly addresses: ClientAddresses;
    readonly warn: (message: string) => void;
  },
): Promise<Audit> {
  if (file.tail.sequence === 0) tools.warn('the audit log begins: it has no earlier line');
  const version = readVersion();
  await log.write({ event: 'process.start', ...withoutUndefined({ version, settings }) });
  return createAudit(log, { ...tools, dropped });
}
