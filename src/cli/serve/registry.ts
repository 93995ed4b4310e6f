import type { Command } from 'commander';
import { ConfigError, IntegrityError, UsageError } from '../../base/errors.ts';
import type { KeyPair } from '../../base/http/key-pair.ts';
import { toPrintable } from '../../base/text/words.ts';
import type { IsoImage } from '../../iso/index.ts';
import { findRegistryRoot, isoRegistryTree } from '../../media/tree.ts';
import {
  createRegistryServer,
  listRepositories,
  listTags,
  type RegistryTree,
  type ServedTree,
  type RequestEntry,
} from '../../registry/index.ts';
import type { CliHost } from '../host.ts';
import { parseWhole } from '../options.ts';
import { ISO_ARGUMENT, useIso } from '../named-media.ts';
import { indentLines, writeEvent, writeMessage } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { isThisMachine, listenOn, readTls, type ListenRefusals, waitForEnd } from './listen.ts';

type ServeOptions = {
  readonly host: string;
  readonly port: number;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly logFormat: LogFormat;
};

/** Registers `sealift registry serve ISO`, which runs until it is interrupted. */
export function registerRegistry(program: Command, host: CliHost): void {
  program
    .command('registry')
    .description('use the registry that a medium carries')
    .addHelpText('after', '\nExample:\n  $ sealift registry serve appliance.iso')
    .command('serve')
    .description('serve it read-only, straight from the ISO, until interrupted')
    .argument('<iso>', `${ISO_ARGUMENT}, with a registry`)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'TCP port; 0 takes a free one', parsePort, 5000)
    .option('--tls-cert <file>', 'certificate and its chain (PEM); with --tls-key')
    .option('--tls-key <file>', 'private key (PEM)')
    .addOption(createLogFormatOption())
    .addHelpText(
      'after',
      '\nEnds with exit code 130 on SIGINT and 143 on SIGTERM. With --log-format json the first line\n' +
        'has the member "url". To trust a private CA, clients need its certificate: skopeo and podman take\n' +
        'a directory in which it is called ca.crt (--cert-dir).\n' +
        '\nExample:\n  $ sealift registry serve appliance.iso --port 5000 &\n' +
        '  $ skopeo list-tags --tls-verify=false docker://127.0.0.1:5000/openshift/release',
    )
    .action(async (path: string, options: ServeOptions) => {
      const tls = readTls(options, host);
      return useIso(path, host, async (iso, name) => {
        const tree = isoRegistryTree(iso, await requireRegistry(iso, name));
        await serve({ iso, tree }, { ...options, ...(tls && { tls }) }, host);
      });
    });
}

const REFUSE: ListenRefusals = {
  inUse: (...about) => new UsageError('registry.port-in-use', ...about),
  denied: (...about) => new UsageError('registry.port-denied', ...about),
  address: (...about) => new UsageError('registry.address', ...about),
};

const parsePort = parseWhole('usage.port', [0, 65_535]);

async function requireRegistry(iso: IsoImage, path: string): Promise<string> {
  const root = await findRegistryRoot(iso);
  if (root !== undefined) return root;
  throw new ConfigError('registry.none-on-iso', `${path} carries no registry`, {
    expected: '/registry/docker/registry/v2, or that of an upgrade ISO below /oc-mirror/install',
    found: 'nothing there',
  });
}

async function serve(
  { iso, tree }: { readonly iso: IsoImage; readonly tree: ServedTree },
  options: ServeOptions & { readonly tls?: KeyPair },
  host: CliHost,
): Promise<void> {
  const { tls, logFormat } = options;
  const verbose = host.log?.level() === 'verbose';
  const log = createServeLog(host, { isJson: logFormat === 'json', verbose });
  const server = createRegistryServer(tree, {
    ...(tls && { tls }),
    onRequest: (entry) => {
      if (!host.signal.aborted) log.request(entry);
    },
  });
  const listening = await listenOn(server, { ...options, signal: host.signal }, REFUSE);
  try {
    const { url, address } = listening;
    const where = url.replace(/^https?:\/\//, '');
    log.serving({
      iso: iso.path,
      url,
      ...(await findExample(tree, `${tls ? '' : '--tls-verify=false '}docker://${where}`)),
    });
    if (!tls && !isThisMachine(address)) {
      log.warning(
        `anyone who reaches ${where} can read every image, and traffic is not encrypted: ` +
          'add --tls-cert and --tls-key, or listen on 127.0.0.1',
      );
    }
    await waitForEnd([server], host);
  } finally {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }
  host.signal.throwIfAborted();
}

/** Makes an example command for this medium: for a repository with tags if there is one. */
async function findExample(
  tree: RegistryTree,
  source: string,
): Promise<{ readonly example: string } | { readonly problem: string }> {
  const format = (name: string): string => `skopeo list-tags ${source}/${name}`;
  try {
    const repositories = (await listRepositories(tree)).sort();
    for (const repository of repositories) {
      if ((await listTags(tree, repository)).length > 0) return { example: format(repository) };
    }
    const [first] = repositories;
    return first === undefined ? { problem: 'its registry is empty' } : { example: format(first) };
  } catch (error) {
    // The undamaged parts can still be pulled.
    if (!(error instanceof IntegrityError)) throw error;
    return { problem: `its repositories cannot be listed: ${error.message}` };
  }
}

type Serving = {
  readonly iso: string;
  readonly url: string;
  readonly example?: string;
  /** Reason why no example can be given. */
  readonly problem?: string;
};

type ServeLog = {
  readonly serving: (serving: Serving) => void;
  readonly warning: (message: string) => void;
  readonly request: (entry: RequestEntry) => void;
};

/** Errors of the server are always reported, other requests only with `--verbose`. */
function createServeLog(
  host: CliHost,
  { isJson, verbose }: { readonly isJson: boolean; readonly verbose: boolean },
): ServeLog {
  const write = (event: object): void => {
    writeEvent(host, { time: new Date(host.now()).toISOString(), ...event });
  };
  return {
    serving(serving) {
      if (isJson) write({ type: 'serving', ...serving });
      else writeMessage(host, formatServing(serving));
    },
    warning(message) {
      if (isJson) write({ type: 'warning', message });
      else writeMessage(host, `warning: ${indentLines(message, host.redaction)}\n`);
    },
    request({ method, url, status, complete, error }) {
      if (!verbose && error === undefined) return;
      const asked = maskPath(url, host.redaction);
      const problem = error === undefined ? undefined : host.redaction.mask(describe(error));
      if (isJson) write({ type: 'request', method, url: asked, status, complete, problem });
      else {
        const end = complete ? '' : ' (broken off)';
        const why = problem === undefined ? '' : `: ${problem}`;
        writeMessage(host, `${method} ${asked} ${status}${end}${why}\n`);
      }
    },
  };
}

const formatServing = ({ iso, url, example, problem }: Serving): string =>
  `serving ${toPrintable(iso)} on ${url}; stop with Ctrl-C\n` +
  (example === undefined ? `note: ${problem ?? 'no example'}\n` : `try: ${example}\n`);

const ORIGIN = 'http://registry';

/** Masks a path: clients may put a token into the query. */
const maskPath = (url: string, { mask }: CliHost['redaction']): string =>
  mask(`${ORIGIN}${url}`).replace(ORIGIN, '');

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
