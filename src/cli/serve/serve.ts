import { Option, type Command } from 'commander';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { redact } from '../../base/text/redact.ts';
import { DURATION_FORM, parseDuration, parseSize, SIZE_FORM } from '../../base/text/words.ts';
import { withTimeLimit } from '../../base/wait.ts';
import type { AnsweredRequest } from '../../service/app.ts';
import { hostPlacesOf, type CliHost } from '../host.ts';
import { addTo, refuseOption } from '../options.ts';
import { indentLines, writeEvent, writeMessage } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import {
  isThisMachine,
  listen,
  type ListenRefusals,
  waitForEnd,
  type Address,
  openTls,
} from './listen.ts';
import { addServeAccess, readAuth, readDatabase, readKeys, type ServeAccess } from './access.ts';
import { addLimitOptions, type LimitOptions, readAddresses } from './limits.ts';
import { createOriginOption, parsePublicUrl, rulesOf } from './origins.ts';
import { registerRekey } from './rekey.ts';
import { warnOfSecrets } from './token.ts';

type ServeOptions = LimitOptions &
  ServeAccess & {
    readonly listen: Address;
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
    .description('serve ISOs with values of customers, with the interface of assisted-service')
    .addOption(
      new Option('--listen <address>', 'host and port to listen on; port 0 takes a free one')
        .argParser(parseAddress)
        .default({ host: '127.0.0.1', port: 8090 }, '127.0.0.1:8090'),
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
    .addHelpText(
      'after',
      '\nIts interface is below /api/assisted-install, described at /api/assisted-install/openapi.json.\n' +
        'Ends with exit code 130 on SIGINT and 143 on SIGTERM.\n' +
        '\nA key is 32 bytes in hexadecimal digits: "(umask 077 && openssl rand -hex 32 > serve.key)" makes one.\n' +
        '\nExample:\n  $ sealift serve --data ./service --store ./isos --key file:serve.key',
    )
    .action((options: ServeOptions) => serve(options, host));
  registerRekey(command, host);
}

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
  const { pair: tls, watch } = openTls(options, host);
  const log = createLog(host, options);
  // These modules are loaded for this command alone.
  const { openService } = await import('../../service/service.ts');
  const { createServiceServer } = await import('../../service/server.ts');
  warnOfSecrets(options, host, log.warn);
  const addresses = readAddresses(options);
  const closing = new AbortController(); // aborted after the last download
  const service = await openService({
    data: resolve(host.cwd, options.data),
    ...readKeys(options, host),
    auth: readAuth(options, host),
    tenantLimits: { records: options.tenantRecords, bytes: options.tenantBytes },
    isTls: tls !== undefined,
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
    const { server, drain, renew } = createServiceServer(service, {
      addresses,
      limits: { connections: options.limitConnections, each: options.limitAddress },
      ...withoutUndefined({ tls }),
    });
    await listen(server, { ...options.listen, signal: host.signal }, REFUSE);
    const { port, address, family } = server.address() as AddressInfo;
    const where = `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
    const unwatch = watch({ use: renew, warn: log.warn });
    log.serving(`${tls ? 'https' : 'http'}://${where}`, address);
    host.allowGrace?.(options.drain + CLOSING);
    try {
      await waitForEnd(server, host);
    } finally {
      unwatch();
      log.message('draining: no new connections; running downloads may finish');
      await withTimeLimit(options.drain, new AbortController().signal, drain).catch(() => {
        log.warn('downloads were cut off: they did not end within --drain');
      });
    }
  } finally {
    closing.abort();
    await service.close();
  }
  host.signal.throwIfAborted();
}

const isLoopback = (host: string): boolean => host === 'localhost' || isThisMachine(host);

const REFUSE: ListenRefusals = {
  inUse: (...about) => new UsageError('service.port-in-use', ...about),
  denied: (...about) => new UsageError('service.port-denied', ...about),
  address: (...about) => new UsageError('service.address', ...about),
};

/** Milliseconds in which the records are closed. */
const CLOSING = 5000;

type ServeLog = {
  readonly serving: (url: string, address: string) => void;
  readonly message: (text: string) => void;
  readonly warn: (text: string) => void;
  readonly event: (event: object) => void;
  readonly answer: (request: AnsweredRequest) => void;
};

/**
 * Writes lines to standard error. Errors of the service are always reported, other requests only
 * with `--verbose`.
 */
function createLog(host: CliHost, { logFormat, auth, tlsCert }: ServeOptions): ServeLog {
  const isJson = logFormat === 'json';
  const write = (event: object): void => {
    writeEvent(host, { time: new Date(host.now()).toISOString(), ...event });
  };
  const warn: ServeLog['warn'] = (message) => {
    if (isJson) write({ type: 'warning', message });
    else writeMessage(host, `warning: ${indentLines(message)}\n`);
  };
  return {
    warn,
    event(event) {
      host.log?.record(event);
    },
    serving(url, address) {
      if (isJson) write({ type: 'serving', url });
      else writeMessage(host, `serving on ${url}; stop with Ctrl-C\n`);
      if (isThisMachine(address)) return;
      if (auth === 'none')
        warn('anyone who reaches it can read and change every record: see --auth');
      if (tlsCert === undefined) warn('traffic is not encrypted: see --tls-cert');
    },
    message(text) {
      if (isJson) write({ type: 'message', message: text });
      else writeMessage(host, `${text}\n`);
    },
    answer({ method, route, status, milliseconds, error }) {
      if (host.log?.level() !== 'verbose' && error === undefined) return;
      const problem = error === undefined ? undefined : redact(describe(error));
      const duration = Math.round(milliseconds);
      if (isJson) write({ type: 'answer', method, route, status, milliseconds: duration, problem });
      else {
        const why = problem === undefined ? '' : `: ${indentLines(problem)}`;
        writeMessage(host, `${method} ${route} ${status} ${duration} ms${why}\n`);
      }
    },
  };
}

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
