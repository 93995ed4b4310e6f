import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { DURATION_FORM, parseDuration, parseSize, SIZE_FORM } from '../../base/text/words.ts';
import { hostPlacesOf, type CliHost } from '../host.ts';
import { addTo, refuseOption } from '../options.ts';
import { createLogFormatOption } from '../terminal/progress.ts';
import { type Address, isLoopback, openTls } from './listen.ts';
import { addAuditOptions, readAudit } from './audit-options.ts';
import { addServeAccess, readAuth, readDatabase, readKeys } from './access.ts';
import { createDoctorOption, registerDoctor, requireSound, warnOfSecrets } from './doctor.ts';
import { addLimitOptions, readAddresses } from './limits.ts';
import { createServiceLog } from './service-log.ts';
import { runAlone } from './run-alone.ts';
import { openPool, runWorkers } from './run-workers.ts';
import { createOriginOption, parsePublicUrl, rulesOf } from './origins.ts';
import { registerRekey } from './rekey.ts';
import type { ServeSettings } from './serve-options.ts';

/** Registers `sealift serve`, which runs until it is interrupted. */
export function registerServe(program: Command, host: CliHost): void {
  const command = program
    .command('serve')
    .enablePositionalOptions(false) // `serve rekey` has its options, too
    .description('serve ISOs with values of customers, with the interface of assisted-service')
    .addOption(
      new Option('--listen <address>', 'host and port to listen on; port 0 takes a free one')
        .argParser(parseAddress)
        .default({ host: '127.0.0.1', port: 8090 }, '127.0.0.1:8090'),
    )
    .addOption(
      new Option(
        '--listen-http <address>',
        'with --tls-cert: serve images without TLS here',
      ).argParser(parseAddress),
    )
    .requiredOption('--data <dir>', 'folder for records and overlays; created if it is missing')
    .option(
      '--store <place>',
      'folder with ISOs of sealift, or the https://, s3:// or oci:// address of one; may be repeated',
      addTo,
      [],
    )
    .addOption(
      new Option('--cache-size <size>', 'disk space below --data to cache parts of remote ISOs')
        .argParser(parseCacheSize)
        .default(16 * 2 ** 30, '16GiB'),
    )
    .addOption(
      new Option(
        '--digest-rate <size>',
        'bytes a second that are hashed for the SHA-256 of images; 0: it is not computed',
      )
        .argParser(parseDigestRate)
        .default(100 * 2 ** 20, '100MiB'),
    )
    .option(
      '--public-url <url>',
      'beginning of the URLs of images (default: that of the request)',
      parsePublicUrl,
    )
    .option('--tls-cert <file>', 'certificate and its chain (PEM); with --tls-key')
    .option('--tls-key <file>', 'private key (PEM)')
    .option(
      '--require-registry <host>',
      'registry that every pull secret must have auth for; may be repeated',
      addTo,
      [],
    )
    .addOption(createOriginOption())
    .addOption(createTimeOption('url-lifetime', 'how long the URL of an image is valid', '4h'))
    .addOption(createTimeOption('drain', 'how long downloads may go on after SIGTERM', '10m'));
  addAuditOptions(addLimitOptions(addServeAccess(command)))
    .addOption(createDoctorOption())
    .addOption(createLogFormatOption())
    .addHelpText('after', HELP)
    .action((options: ServeSettings) => serve(options, host));
  registerRekey(command, host);
  registerDoctor(command, host);
}

const HELP =
  '\nIts interface is below /api/assisted-install, described at /api/assisted-install/openapi.json.\n' +
  'Ends with exit code 130 on SIGINT and 143 on SIGTERM.\n' +
  '\nA key is 32 bytes in hexadecimal digits: "(umask 077 && openssl rand -hex 32 > serve.key)" makes one.\n' +
  '\nExample:\n  $ sealift serve --data ./service --store ./isos --key file:serve.key';

const TIMES = { 'url-lifetime': 4 * 3_600_000, 'drain': 600_000 };

const createTimeOption = (name: keyof typeof TIMES, description: string, shown: string): Option =>
  new Option(`--${name} <duration>`, description)
    .argParser((text) => {
      const time = parseDuration(text);
      if (time !== undefined) return time;
      throw name === 'drain'
        ? refuseOption('usage.drain', text, { expected: DURATION_FORM })
        : refuseOption('usage.url-lifetime', text, { expected: DURATION_FORM });
    })
    .default(TIMES[name], shown);

function parseAddress(text: string): Address {
  const [, inner, plain = inner, port] =
    /^(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? [];
  if (plain !== undefined && Number(port) <= 65_535) {
    return { host: plain === '' ? '::' : plain, port: Number(port) };
  }
  throw refuseOption('usage.listen', text, { expected: 'HOST:PORT, [IPv6]:PORT or :PORT' });
}

function parseCacheSize(text: string): number {
  const size = parseSize(text) ?? 0;
  if (size > 0) return size;
  throw refuseOption('usage.cache-size', text, { expected: SIZE_FORM });
}

function parseDigestRate(text: string): number {
  const size = text === '0' ? 0 : parseSize(text);
  if (size !== undefined) return size;
  throw refuseOption('usage.digest-rate', text, { expected: `${SIZE_FORM}, or 0` });
}

async function serve(options: ServeSettings, host: CliHost): Promise<void> {
  const certificate = openTls(options, host);
  const isTls = certificate.pair !== undefined;
  if (options.listenHttp && !isTls) throw needsTls();
  const log = createServiceLog(host, options);
  if (options.strict) await requireSound(options, host, log.warn);
  // These modules are loaded for this command alone.
  const { openService } = await import('../../service/service.ts');
  await warnOfSecrets(options, host, log.warn);
  const closing = new AbortController(); // aborted after the last download
  const ports: { http?: number } = {};
  const pool = await openPool(options, { host, warn: log.warn });
  const addresses = readAddresses(options, pool !== undefined);
  const service = await openService({
    data: resolve(host.cwd, options.data),
    ...readKeys(options, host),
    auth: readAuth(options, host),
    ...readAudit(options, host),
    tenantLimits: { records: options.tenantRecords, bytes: options.tenantBytes },
    isTls,
    ports,
    isLocal: options.auth === 'none' && isLoopback(options.listen.host),
    urlLifetime: options.urlLifetime,
    addresses,
    budgets: {
      tenant: options.limitTenant,
      rate: options.limitCalls,
      bodies: options.limitBodies,
      bodiesEach: options.limitBodiesEach,
    },
    ...rulesOf(options),
    now: host.now,
    stores: options.store,
    cacheLimit: options.cacheSize,
    digestRate: options.digestRate,
    ending: host.signal,
    host: { ...hostPlacesOf(host), signal: closing.signal, emit: log.event },
    warn: log.warn,
    onAnswer: log.answer,
    ...(pool && { workers: pool, elsewhere: pool.countTenant }),
    ...withoutUndefined({ publicUrl: options.publicUrl, database: readDatabase(options, host) }),
  });
  try {
    const running = { options, host, log, ports, ...certificate };
    await (pool ? runWorkers(service, running, pool) : runAlone(service, running));
  } finally {
    closing.abort();
    await service.close();
  }
  host.signal.throwIfAborted();
}

const needsTls = (): UsageError =>
  new UsageError('usage.listen-http', '--listen-http needs --tls-cert and --tls-key', {
    hint: 'leave it out: without a certificate, --listen has no TLS',
  });
