import { unwatchFile, watchFile, type Stats } from 'node:fs';
import { resolve } from 'node:path';
import { SealiftError } from '../../base/errors.ts';
import type { KeyPair } from '../../registry/server/key-pair.ts';
import type { CliHost } from '../host.ts';
import { readTls, type TlsOptions } from './listen.ts';

/** Milliseconds between two looks at the files. */
const INTERVAL = 1000;

type Told = {
  readonly use: (pair: KeyPair) => void;
  /** Told why what the files have now cannot be used; what was there before stays in use. */
  readonly warn: (message: string) => void;
};

/**
 * Tells of a new certificate and key when the files have them, however they get there: written, renamed, or behind
 * a link that points elsewhere. Both are read when one changes, and used when they belong together.
 *
 * @returns ends it
 */
export function watchTls(options: TlsOptions, host: CliHost, { use, warn }: Told): () => void {
  const paths = [options.tlsCert, options.tlsKey].flatMap((path) =>
    path === undefined ? [] : [resolve(host.cwd, path)],
  );
  const look = (now: Stats, before: Stats): void => {
    if (now.mtimeMs === before.mtimeMs && now.ino === before.ino && now.size === before.size) {
      return;
    }
    try {
      const pair = readTls(options, host);
      if (pair) use(pair);
    } catch (error) {
      if (!(error instanceof SealiftError)) throw error;
      warn(`the certificate is not renewed: ${error.message}`);
    }
  };
  for (const path of paths) watchFile(path, { interval: INTERVAL, persistent: false }, look);
  return () => {
    for (const path of paths) unwatchFile(path, look);
  };
}
