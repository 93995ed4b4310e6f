import { statSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import {
  ConfigError,
  UsageError,
  isErrno,
  type ErrorDetails,
  SealiftError,
} from '../../base/errors.ts';
import { kindOfAddress } from '../../base/http/address.ts';
import { checkKeyPair, type KeyPair } from '../../base/http/key-pair.ts';
import { waitFor, startTimer, type Timer } from '../../base/wait.ts';
import type { CliHost } from '../host.ts';
import { requireTrustedFile } from './trusted-file.ts';

/* Owns how a server listens: addresses, their refusals, and TLS files that are read again on change. */

export type TlsOptions = { readonly tlsCert?: string; readonly tlsKey?: string };

export function readTls(options: TlsOptions, host: Pick<CliHost, 'cwd'>): KeyPair | undefined {
  const { tlsCert, tlsKey } = options;
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new UsageError('usage.tls', '--tls-cert and --tls-key go together', {
      hint: `add ${tlsCert === undefined ? '--tls-cert' : '--tls-key'}`,
    });
  }
  const cert = readNamedFile('--tls-cert', resolve(host.cwd, tlsCert));
  requireTrustedFile('--tls-key', resolve(host.cwd, tlsKey));
  const key = readNamedFile('--tls-key', resolve(host.cwd, tlsKey));
  return checkKeyPair({ cert, key });
}

export function readNamedFile(option: string, path: string): string {
  try {
    return readInputFile(path, { domain: 'input' }).toString('utf8');
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('input.missing', `${option} names ${path}, which cannot be read`, {
      cause,
    });
  }
}

/** True if no other machine can connect. The unspecified addresses mean all of its addresses. */
export const isThisMachine = (address: string): boolean =>
  !['0.0.0.0', '::'].includes(address) && kindOfAddress(address) === 'loopback';

export const isLoopback = (host: string): boolean => host === 'localhost' || isThisMachine(host);

/** Waits until the signal, or an error of a server that listens. */
export async function waitForEnd(
  servers: readonly (Server | TlsServer)[],
  { signal }: Pick<CliHost, 'signal'>,
): Promise<void> {
  if (signal.aborted) return;
  await waitFor<never>(signal, (_resolve, reject) => {
    for (const server of servers) server.once('error', reject);
  }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

type Refusal = (message: string, details: ErrorDetails) => UsageError;

/** Refusals of an address that cannot be listened on, each with its own code. */
export type ListenRefusals = Readonly<Record<'inUse' | 'denied' | 'address', Refusal>>;

export type Address = { readonly host: string; readonly port: number };

async function listen(
  server: Server | TlsServer,
  { host, port, signal }: Address & { readonly signal: AbortSignal },
  refuse: ListenRefusals,
): Promise<void> {
  try {
    await waitFor<undefined>(signal, (resolve, reject) => {
      server.once('error', reject);
      server.once('listening', () => {
        resolve(undefined);
      });
      server.listen(port, host);
    });
  } catch (cause) {
    throw explainListening(cause, { host, port }, refuse);
  }
}

export type Listening = {
  readonly url: string;
  readonly address: string;
  readonly port: number;
};

export async function listenOn(
  server: Server | TlsServer,
  wanted: Address & { readonly signal: AbortSignal },
  refuse: ListenRefusals,
): Promise<Listening> {
  await listen(server, wanted, refuse);
  const { port, address, family } = server.address() as AddressInfo;
  const where = `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  return { url: `${'addContext' in server ? 'https' : 'http'}://${where}`, address, port };
}

function explainListening(
  cause: unknown,
  { host, port }: Address,
  refuse: ListenRefusals,
): unknown {
  if (isErrno(cause, 'EADDRINUSE')) {
    return refuse.inUse(`port ${port} of ${host} is in use`, {
      hint: 'give another port, or 0 for a free one',
    });
  }
  if (isErrno(cause, 'EACCES', 'EPERM')) {
    return refuse.denied(`port ${port} of ${host} is not permitted`, {
      hint: 'give a port from 1024 on',
    });
  }
  if (isErrno(cause, 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL', 'EAFNOSUPPORT')) {
    return refuse.address(`${host} is not an address of this machine`, {
      hint: 'give an address of this machine, 0.0.0.0 or :: for all of its addresses',
    });
  }
  return cause;
}

/** Milliseconds between two checks of the files. */
const INTERVAL = 1000;

type Told = {
  readonly use: (pair: KeyPair) => void;
  /** Called with the reason why the files cannot be used now; the previous pair stays in use. */
  readonly warn: (message: string) => void;
};

export type WatchedTls = {
  readonly pair: KeyPair | undefined;
  /** @returns a function that ends the watch */
  readonly watch: (told: Told) => () => void;
};

/**
 * Reads certificate and key, and later reports new ones, regardless of how they arrive: written,
 * renamed, or behind a link that points elsewhere. Both are read when one changes, and used when
 * they belong together. A pair that was replaced before watching began is used too.
 */
export function openTls(options: TlsOptions, host: Pick<CliHost, 'cwd'>): WatchedTls {
  const paths = [options.tlsCert, options.tlsKey].flatMap((path) =>
    path === undefined ? [] : [resolve(host.cwd, path)],
  );
  const look = (): string => paths.map(describeFile).join();
  let seen = look();
  const pair = readTls(options, host);
  return {
    pair,
    watch({ use, warn }) {
      let timer: Timer;
      const check = (): void => {
        timer = startTimer(INTERVAL, check);
        timer.unref();
        const now = look();
        if (now === seen) return;
        seen = now;
        try {
          const next = readTls(options, host);
          if (next) use(next);
        } catch (error) {
          if (!(error instanceof SealiftError)) throw error;
          warn(`the certificate is not renewed: ${error.message}`);
        }
      };
      check();
      return () => {
        timer.stop();
      };
    },
  };
}

/** Identifies the content of a file: by its inode, size and time. */
function describeFile(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return 'nothing'; // reading the file reports the reason
  }
}
