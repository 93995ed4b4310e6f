import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { SealiftError } from '../../base/errors.ts';
import { startTimer, type Timer } from '../../base/wait.ts';
import type { KeyPair } from '../../base/http/server.ts';
import type { CliHost } from '../host.ts';
import { readTls, type TlsOptions } from './listen.ts';

/** Milliseconds between two looks at the files. */
const INTERVAL = 1000;

type Told = {
  readonly use: (pair: KeyPair) => void;
  /** Told why what the files have now cannot be used; what was there before stays in use. */
  readonly warn: (message: string) => void;
};

/** A pair, and what tells of another one. */
export type WatchedTls = {
  readonly pair: KeyPair | undefined;
  /** @returns ends it */
  readonly watch: (told: Told) => () => void;
};

/**
 * Reads certificate and key, and later tells of new ones, however they get there: written, renamed, or behind a
 * link that points elsewhere. Both are read when one changes, and used when they belong together. A pair that
 * was replaced before watching began is used too.
 *
 * @throws what `readTls` throws
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

/** Another file of the same name has another text. */
function describeFile(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return 'nothing'; // whoever reads it says why
  }
}
