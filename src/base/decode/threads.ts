import { Worker } from 'node:worker_threads';
import { formatDuration } from '../text/words.ts';
import { startTimer, waitFor, type Timer } from '../wait.ts';
import { DecodeError } from './limits.ts';

/*
 * Owns unpacking outside the main thread: the threads of decode-worker.mjs, the reader that takes
 * a stream apart, and the Zstandard frames that are measured before they are unpacked.
 */

/** Formats that decode-worker.mjs unpacks. */
export type ThreadFormat = 'zstd' | 'xz';

export type ThreadOptions = {
  readonly signal: AbortSignal;
  /** Milliseconds for the answer to one message; default 30 s, and an answer takes some milliseconds. */
  readonly limit?: number;
};

/** The thread's answer to a message: see decode-worker.mjs. */
type Reply =
  | { readonly op: 'want' }
  | { readonly op: 'output'; readonly bytes: Uint8Array }
  | { readonly op: 'end' }
  | { readonly op: 'error'; readonly reason: string };

type Message = {
  /** Starts a stream. */
  readonly format?: ThreadFormat;
  /** More of the stream; a message without it is the end of the stream, or asks for more output. */
  readonly input?: Uint8Array;
  /** Ends a stream that is no longer needed; the answer is an error. */
  readonly isOver?: true;
};

const STEP_LIMIT = 30_000;

/** Mebibytes, without the memory of WebAssembly, which is at most a window and a half. */
const LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 64 };

type Thread = {
  readonly worker: Worker;
  settle?: { readonly resolve: (reply: Reply) => void; readonly reject: (error: unknown) => void };
};

/** A start takes a tenth of a second of processor time: threads that ended well wait for more. */
const idle: Thread[] = [];

/**
 * Unpacks a stream in a thread. No more is read than the thread asks for, and it makes no more than is taken.
 * A thread that does not answer in time is ended, as is one whose stream is not read to its end.
 *
 * @throws DecodeError; errors of the source; the signal's reason
 */
export async function* decodeInThread(
  format: ThreadFormat,
  source: AsyncIterable<Uint8Array>,
  options: ThreadOptions,
): AsyncGenerator<Buffer> {
  options.signal.throwIfAborted();
  const input = source[Symbol.asyncIterator]();
  const thread = idle.pop() ?? startThread();
  thread.worker.ref();
  let isWaiting = false;
  let isFree = false;
  try {
    let message: Message = { format };
    for (;;) {
      isWaiting = false;
      const reply = await ask(thread, message, options);
      isWaiting = true;
      message = {};
      if (reply.op === 'want') message = await nextInput(input);
      else if (reply.op === 'output') yield Buffer.from(reply.bytes.buffer);
      else {
        isFree = true;
        if (reply.op === 'end') return;
        throw new DecodeError('malformed', reply.reason);
      }
    }
  } finally {
    if (isWaiting && !isFree) isFree = await endStream(thread, format, options);
    if (isFree) {
      thread.worker.unref();
      idle.push(thread);
    } else void thread.worker.terminate();
    await input.return?.();
  }
}

/** True if the thread is ready for another stream: a thread for xz may still read ahead. */
async function endStream(
  thread: Thread,
  format: ThreadFormat,
  options: ThreadOptions,
): Promise<boolean> {
  if (format === 'xz' || options.signal.aborted) return false;
  return ask(thread, { isOver: true }, options).then(
    ({ op }) => op === 'error',
    () => false,
  );
}

function startThread(): Thread {
  const worker = new Worker(new URL('./decode-worker.mjs', import.meta.url), {
    resourceLimits: LIMITS,
  });
  const thread: Thread = { worker };
  worker.on('message', (reply: Reply) => thread.settle?.resolve(reply));
  worker.on('error', (error) => {
    thread.settle?.reject(error);
    const at = idle.indexOf(thread);
    if (at !== -1) idle.splice(at, 1);
  });
  return thread;
}

async function nextInput(input: AsyncIterator<Uint8Array>): Promise<Message> {
  const next = await input.next();
  // A copy, because sent memory is gone, and a view would take along all the memory that it is a part of.
  return next.done === true ? {} : { input: new Uint8Array(next.value) };
}

function ask(
  thread: Thread,
  message: Message,
  { signal, limit = STEP_LIMIT }: ThreadOptions,
): Promise<Reply> {
  let timer: Timer | undefined;
  return waitFor<Reply>(signal, (resolve, reject) => {
    thread.settle = { resolve, reject };
    timer = startTimer(limit, () => {
      reject(
        new DecodeError('too-slow', `the decoder did not answer for ${formatDuration(limit)}`),
      );
    });
    const { input } = message;
    thread.worker.postMessage(message, input ? [input.buffer as ArrayBuffer] : []);
  }).finally(() => timer?.stop());
}
