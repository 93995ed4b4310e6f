import { BUFFER_SIZE } from '../buffers.ts';
import type { FrontierOptions, PourFrontier } from '../frontier.ts';
import type { Slice } from '../hasher.ts';

/** Stands for the digest of the whole ISO where it is not computed: most of the bytes never pass through here. */
export function createPassing({
  spans,
  buffers,
  signal,
}: Pick<FrontierOptions, 'spans' | 'buffers' | 'signal'>): PourFrontier {
  const waiters: {
    readonly resolve: (slice: Slice) => void;
    readonly reject: (error: unknown) => void;
  }[] = [];
  let left = spans.length;
  let finish: () => void = () => undefined;
  const finished = new Promise<undefined>((resolve) => {
    finish = () => {
      resolve(undefined);
    };
  });
  if (left === 0) finish();
  signal.addEventListener('abort', () => {
    for (const { reject } of waiters.splice(0)) reject(signal.reason);
  });
  const release = ({ start }: Slice): void => {
    const slice = { start, size: BUFFER_SIZE };
    const waiter = waiters.shift();
    if (waiter) waiter.resolve(slice);
    else buffers.push(slice);
  };
  return {
    finished,
    readBack: 0,
    acquire: () =>
      new Promise((resolve, reject) => {
        const slice = signal.aborted ? undefined : buffers.pop();
        if (signal.aborted) reject(signal.reason as Error);
        else if (slice) resolve(slice);
        else waiters.push({ resolve, reject });
      }),
    release,
    offer: release,
    verify() {
      left -= 1;
      if (left === 0) finish();
    },
    restart: () => undefined,
    wasShort: () => waiters.length > 0,
    isAwaited: () => true,
    isSpilling: () => false,
    whileCatchingUp: (work) => work(),
  };
}
