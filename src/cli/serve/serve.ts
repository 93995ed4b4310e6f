import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import type { KeyPair } from '../../base/http/key-pair.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { DURATION_FORM, parseDuration, parseSize, SIZE_FORM } from '../../base/text/words.ts';
import { withTimeLimit } from '../../base/wait.ts';
import type { OpenedService } from '../../service/service.ts';
import { hostPlacesOf, type CliHost } from '../host.ts';
import { addTo, refuseOption } from '../options.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import {
  isThisMachine,
  listenOn,
  type ListenRefusals,
  waitForEnd,
  type Address,
  openTls,
  type WatchedTls,
} from './listen.ts';
import { addServeAccess, readAuth, readDatabase, readKeys, type ServeAccess } from './access.ts';
import { addLimitOptions, type LimitOptions, readAddresses } from './limits.ts';
import { createServiceLog, type ServeLog } from './service-log.ts';
import { createOriginOption, parsePublicUrl, rulesOf } from './origins.ts';
import { registerRekey } from './rekey.ts';
import { warnOfSecrets } from './token.ts';

type ServeOptions = LimitOptions &
  ServeAccess & {
    readonly listen: Address;
    /** For images without TLS, beside the one with TLS. */
    readonly listenHttp?: Address;
    readonly data: string;
    readonly store: readonly string[];
    /** In bytes. */
    readonly cacheSize: number;
    readonly publicUrl?: string;
    readonly tlsCert?: string;
    readonly tlsKey?: string;
    readonly requireRegistry: readonly string[];
    readonly corsOrigin: readonly string[];
    readonly urlLifetime: number;
    readonly drain: number;
    readonly logFormat: LogFormat;
  };

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
  addLimitOptions(addServeAccess(command))
    .addOption(createLogFormatOption())
    .addHelpText('after', HELP)
    .action((options: ServeOptions) => serve(options, host));
  registerRekey(command, host);
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

async function serve(options: ServeOptions, host: CliHost): Promise<void> {
  const certificate = openTls(options, host);
  const isTls = certificate.pair !== undefined;
  if (options.listenHttp && !isTls) throw needsTls();
  const log = createServiceLog(host, options);
  // These modules are loaded for this command alone.
  const { openService } = await import('../../service/service.ts');
  warnOfSecrets(options, host, log.warn);
  const addresses = readAddresses(options);
  const closing = new AbortController(); // aborted after the last download
  const ports: { http?: number } = {};
  const service = await openService({
    data: resolve(host.cwd, options.data),
    ...readKeys(options, host),
    auth: readAuth(options, host),
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
    ending: host.signal,
    host: { ...hostPlacesOf(host), signal: closing.signal, emit: log.event },
    warn: log.warn,
    onAnswer: log.answer,
    ...withoutUndefined({ publicUrl: options.publicUrl, database: readDatabase(options, host) }),
  });
  try {
    await run(service, { options, host, log, ports, ...certificate });
  } finally {
    closing.abort();
    await service.close();
  }
  host.signal.throwIfAborted();
}

type Running = WatchedTls & {
  readonly options: ServeOptions;
  readonly host: CliHost;
  readonly log: ServeLog;
  readonly ports: { http?: number };
};

/** Listens, and answers until the signal; then lets downloads end. */
async function run(
  service: OpenedService,
  { options, host, log, ports, pair: tls, watch }: Running,
): Promise<void> {
  const { createServiceServer } = await import('../../service/server.ts');
  const create = (pair: KeyPair | undefined) =>
    createServiceServer(service, {
      addresses: readAddresses(options),
      limits: { connections: options.limitConnections, each: options.limitAddress },
      ...withoutUndefined({ tls: pair }),
    });
  const { signal } = host;
  const main = create(tls);
  const plain = options.listenHttp && create(undefined);
  const all = plain ? [main, plain] : [main];
  const shown = [await listenOn(main.server, { ...options.listen, signal }, REFUSE)];
  if (options.listenHttp && plain) {
    shown.push(await listenOn(plain.server, { ...options.listenHttp, signal }, REFUSE));
    ports.http = shown[1]?.port ?? 0;
  }
  const unwatch = watch({ use: main.renew, warn: log.warn });
  for (const { url, address } of shown) log.serving(url, address);
  host.allowGrace?.(options.drain + CLOSING);
  try {
    await waitForEnd(
      all.map(({ server }) => server),
      host,
    );
  } finally {
    unwatch();
    log.message('draining: no new connections; running downloads may finish');
    const drainAll = (limit: AbortSignal) => Promise.all(all.map(({ drain }) => drain(limit)));
    await withTimeLimit(options.drain, new AbortController().signal, drainAll).catch(() => {
      log.warn('downloads were cut off: they did not end within --drain');
    });
  }
}

const needsTls = (): UsageError =>
  new UsageError('usage.listen-http', '--listen-http needs --tls-cert and --tls-key', {
    hint: 'leave it out: without a certificate, --listen has no TLS',
  });

const isLoopback = (host: string): boolean => host === 'localhost' || isThisMachine(host);

const REFUSE: ListenRefusals = {
  inUse: (...about) => new UsageError('service.port-in-use', ...about),
  denied: (...about) => new UsageError('service.port-denied', ...about),
  address: (...about) => new UsageError('service.address', ...about),
};

/** Milliseconds in which the records are closed. */
const CLOSING = 5000;
