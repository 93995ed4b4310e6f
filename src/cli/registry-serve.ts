import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ConfigError, UsageError } from '../base/errors.ts';
import { openIso, type IsoImage } from '../iso/open-iso.ts';
import { createRegistryServer, type RequestEntry } from '../registry/server.ts';
import { isoRegistryTree } from '../stages/iso-registry-tree.ts';
import type { CliHost } from './host.ts';

type ServeOptions = {
  readonly host: string;
  readonly port: number;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly verbose?: boolean;
};

/** `sealift registry serve ISO`: until it is interrupted. */
export function registerRegistry(program: Command, host: CliHost): void {
  program
    .command('registry')
    .description('the registry that a medium carries')
    .addHelpText('after', '\nExample:\n  $ sealift registry serve appliance.iso')
    .command('serve')
    .description('serve it read-only, straight out of the ISO file, until interrupted')
    .argument('<iso>', 'ISO file with a registry')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'TCP port; 0 takes a free one', parsePort, 5000)
    .option('--tls-cert <file>', 'certificate (PEM); with --tls-key')
    .option('--tls-key <file>', 'private key (PEM)')
    .option('--verbose', 'tell every request on standard error')
    .addHelpText(
      'after',
      '\nEnds with exit code 130 on SIGINT and 143 on SIGTERM.\n' +
        '\nExample:\n  $ sealift registry serve appliance.iso --port 5000 &\n' +
        '  $ skopeo list-tags --tls-verify=false docker://127.0.0.1:5000/openshift/release',
    )
    .action(async (path: string, options: ServeOptions) => {
      const tls = await readTls(options, host);
      const iso = await openIso(resolve(host.cwd, path));
      try {
        await requireRegistry(iso, path);
        await serve(iso, { ...options, ...(tls && { tls }) }, host);
      } finally {
        await iso.close();
      }
    });
}

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port;
  throw new UsageError('usage.port', `--port is "${text}"`, {
    expected: 'a whole number from 0 to 65535',
    found: text,
  });
}

type Tls = { readonly cert: string; readonly key: string };

async function readTls({ tlsCert, tlsKey }: ServeOptions, host: CliHost): Promise<Tls | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new UsageError('usage.tls', '--tls-cert and --tls-key go together');
  }
  const [cert, key] = await Promise.all(
    [tlsCert, tlsKey].map((file) => readFile(resolve(host.cwd, file), 'utf8')),
  );
  return { cert: cert ?? '', key: key ?? '' };
}

async function requireRegistry(iso: IsoImage, path: string): Promise<void> {
  if ((await iso.find('/registry/docker/registry/v2'))?.kind === 'directory') return;
  throw new ConfigError('registry.none-on-iso', `${path} carries no registry`, {
    expected: '/registry/docker/registry/v2',
    found: 'nothing there',
  });
}

async function serve(
  iso: IsoImage,
  options: ServeOptions & { readonly tls?: Tls },
  host: CliHost,
): Promise<void> {
  const { tls, verbose } = options;
  const server = createRegistryServer(isoRegistryTree(iso), {
    ...(tls && { tls }),
    ...(verbose === true && { onRequest: (entry) => void host.stderr.write(formatRequest(entry)) }),
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  const { port, address, family } = server.address() as AddressInfo;
  const where = `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  host.stderr.write(
    `serving ${iso.path} on ${tls ? 'https' : 'http'}://${where}; stop with Ctrl-C\n` +
      `try: skopeo list-tags ${tls ? '' : '--tls-verify=false '}docker://${where}/openshift/release\n`,
  );
  if (!host.signal.aborted) await once(host.signal, 'abort');
  server.closeAllConnections();
  server.close();
  host.signal.throwIfAborted();
}

function formatRequest({ method, url, status, complete }: RequestEntry): string {
  return `${method} ${url} ${status}${complete ? '' : ' (broken off)'}\n`;
}
