import { createHash } from 'node:crypto';
import { digestFromHex, type Digest } from '../../base/digest.ts';
import { waitFor } from '../../base/wait.ts';

/** The digest of bytes that come in parts, several at a time, each of which waits for those before it. */
export type WholeDigest = {
  /** Resolves when the bytes are taken, or nobody wants them any more. @throws the signal's reason */
  readonly take: (offset: number, bytes: Uint8Array, signal: AbortSignal) => Promise<void>;
  /** undefined where it was given up, or bytes are missing. */
  readonly finish: (size: number) => Digest | undefined;
};

/** Given up as soon as bytes come that it has already: nothing takes them out of it again. */
export function createWholeDigest(): WholeDigest {
  const hash = createHash('sha256');
  let position = 0;
  let isGivenUp = false;
  let waiting: (() => void)[] = [];
  const wake = (): void => {
    const all = waiting;
    waiting = [];
    for (const resume of all) resume();
  };
  return {
    async take(offset, bytes, signal) {
      while (!isGivenUp && offset > position) {
        await waitFor<undefined>(signal, (resolve) => {
          waiting.push(() => {
            resolve(undefined);
          });
        });
      }
      isGivenUp ||= offset < position;
      if (!isGivenUp) {
        hash.update(bytes);
        position += bytes.length;
      }
      wake();
    },
    finish: (size) =>
      isGivenUp || position !== size ? undefined : digestFromHex(hash.digest('hex')),
  };
}
