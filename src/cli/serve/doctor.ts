import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { ConfigError, formatProblem, isError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { fileOfReference } from '../../config/secrets.ts';
import type { DoctorFinding } from '../../service/doctor/finding.ts';
import type { NamedPath } from '../../service/doctor/files.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { readAuth, readDatabase, readKeys } from './access.ts';
import { isLoopback, readTls } from './listen.ts';
import type { ServeSettings } from './serve-options.ts';
import { lineOf, quoteText, writeReport } from '../terminal/report.ts';

/* Owns `serve doctor`, and `serve --strict`: they read the settings as `serve` does, and hold them to the rules. */

export const createDoctorOption = (): Option =>
  new Option('--strict', 'do not start while "serve doctor" has errors').default(false);

/** Registers `sealift serve doctor`; options of `serve` name what is examined. */
export function registerDoctor(serve: Command, host: CliHost): void {
  serve
    .command('doctor')
    .description('name the settings that a security officer would refuse, without listening')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nIt takes the options of "sealift serve", reads files, and opens neither records nor connections. Exit\n' +
        'code 3: at least one error; warnings are advice. "sealift serve --strict" refuses to start by the same rules.\n' +
        '\nExample:\n  $ sealift serve doctor --data ./service --key file:serve.key --listen 0.0.0.0:8090',
    )
    .action(async (_options: object, command: Command) => {
      const options = command.optsWithGlobals<ServeSettings & { outputFormat: OutputFormat }>();
      const findings = await examine(options, host);
      const errors = findings.filter(isError).length;
      const result = { errors, warnings: findings.length - errors, findings };
      await writeReport({ host, outputFormat: options.outputFormat }, result, (shown) => ({
        title: ['Settings of the service'],
        body: [
          ...shown.findings.flatMap((finding) => quoteText(formatFinding(finding))),
          lineOf([`${countOf(shown.errors, 'error')}, ${countOf(shown.warnings, 'warning')}`]),
        ],
      }));
      if (errors > 0) throw refusal(errors);
    });
}

/** Refuses settings, with all errors at once. */
export async function requireSound(
  options: ServeSettings,
  host: CliHost,
  warn: (message: string) => void,
): Promise<void> {
  const errors = (await examine(options, host)).filter(isError);
  for (const finding of errors) warn(formatFinding(finding));
  if (errors.length > 0) throw refusal(errors.length);
}

/** Warns of secrets that every user of the machine can see, by the rules of `serve doctor`. */
export async function warnOfSecrets(
  options: SecretSettings,
  host: Pick<CliHost, 'cwd'>,
  warn: (message: string) => void,
): Promise<void> {
  const { checkReaders } = await import('../../service/doctor/files.ts');
  const { checkCommandLine } = await import('../../service/doctor/keys.ts');
  const found = [
    ...listSecrets(options, host).flatMap(checkReaders),
    ...checkCommandLine({ databaseSource: options.database }),
  ];
  for (const finding of found.filter(isError)) warn(formatFinding(finding));
}

const formatFinding = (finding: DoctorFinding): string =>
  formatProblem({ ...finding, problem: `${finding.problem} [${finding.code}]` });

/** A message without the option that the finding is about. */
const withoutOption = (option: string, message: string): string =>
  message.startsWith(`${option}: `) ? message.slice(option.length + 2) : message;

const countOf = (count: number, noun: string): string =>
  count === 1 ? `1 ${noun}` : `${count} ${noun}s`;

const refusal = (count: number): ConfigError =>
  new ConfigError('doctor.refused', `${countOf(count, 'setting')} would be refused`, {
    hint: 'correct what is listed as an error; "sealift explain CODE" has more about each',
  });

async function examine(options: ServeSettings, host: CliHost): Promise<readonly DoctorFinding[]> {
  const { examineService } = await import('../../service/doctor/doctor.ts');
  const { readMachineFacts } = await import('../../service/doctor/facts.ts');
  const machine = await readMachineFacts();
  const { findings, ...read } = await readSettings(options, host);
  const { publicUrl, auditLog } = options;
  const now = host.now();
  const found = await examineService({
    files: { user: machine.user, ...listFiles(options, host) },
    keys: {
      source: options.key,
      hasPrevious: options.previousKey !== undefined,
      databaseSource: options.database,
      ...read.keys,
    },
    access: {
      ...options,
      publicUrl,
      hasIssuer: options.authIssuer !== undefined,
      hasAudience: options.authAudience !== undefined,
      isLoopback: isLoopback(options.listen.host),
      hasTls: options.tlsCert !== undefined,
      hasPlain: options.listenHttp !== undefined && !isLoopback(options.listenHttp.host),
      corsOrigins: options.corsOrigin,
      proxies: options.trustedProxy,
    },
    certificate: read.cert === undefined ? undefined : { cert: read.cert, publicUrl, now },
    machine: {
      ...machine,
      now,
      hasAuditLog: auditLog !== undefined,
      hasSyslog: options.auditSyslog !== undefined,
    },
  });
  return [...findings, ...found];
}

/** Reads what `serve` reads at its start. What it would refuse is a finding. */
async function readSettings(options: ServeSettings, host: CliHost) {
  const { readMasterKey } = await import('../../service/state/keys.ts');
  const { readDatabaseAccess } = await import('../../service/state/database-access.ts');
  const findings: DoctorFinding[] = [];
  const attempt = <Value>(option: string, read: () => Value): Value | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof SealiftError)) throw error;
      const { code, message, expected, found, hint } = error;
      const values = withoutUndefined({ expected, found, hint });
      findings.push({
        severity: 'error',
        code,
        file: option,
        problem: withoutOption(option, message),
        ...values,
      });
      return undefined;
    }
  };
  const key = attempt('--key', () => {
    const { key, previousKey } = readKeys(options, host);
    readMasterKey(key);
    if (previousKey) readMasterKey(previousKey, '--previous-key');
    return key;
  });
  const database = attempt('--database', () => readDatabase(options, host));
  const access = attempt('--database', () =>
    database === undefined ? undefined : readDatabaseAccess(database, host.env),
  );
  attempt('--auth', () => readAuth(options, host));
  const pair = attempt('--tls-cert', () => readTls(options, host));
  return { findings, keys: { key, databaseDoubt: access?.doubt }, cert: pair?.cert };
}

type SecretSettings = Pick<ServeSettings, 'key' | 'previousKey' | 'database' | 'tlsKey'>;

const listSecrets = (
  { key, previousKey, database, tlsKey }: SecretSettings,
  { cwd }: Pick<CliHost, 'cwd'>,
): readonly NamedPath[] =>
  [
    { option: '--key', path: fileOfReference(key, cwd) },
    { option: '--previous-key', path: fileOfReference(previousKey ?? '', cwd) },
    { option: '--database', path: fileOfReference(database ?? '', cwd) },
    { option: '--tls-key', path: tlsKey === undefined ? undefined : resolve(cwd, tlsKey) },
  ].flatMap(({ option, path }) => (path === undefined ? [] : [{ option, path }]));

const REMOTE = /^[a-z0-9]+:\/\//;

function listFiles(options: ServeSettings, { cwd }: Pick<CliHost, 'cwd'>) {
  const named = (option: string, path: string | undefined): readonly NamedPath[] =>
    path === undefined || REMOTE.test(path) ? [] : [{ option, path: resolve(cwd, path) }];
  return {
    secrets: listSecrets(options, { cwd }),
    trusted: [...named('--tls-cert', options.tlsCert), ...named('--auth-keys', options.authKeys)],
    data: resolve(cwd, options.data),
    stores: options.store.flatMap((place) => named('--store', place)).map(({ path }) => path),
    ...withoutUndefined({
      auditLog: options.auditLog === undefined ? undefined : resolve(cwd, options.auditLog),
    }),
  };
}
