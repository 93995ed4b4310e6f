import { digestOf, type Digest } from '../base/digest.ts';
import { formatCanonicalJson, type Json } from '../base/canonical-json.ts';
import type { EventListener } from './events.ts';
import type { StageStore } from './stage-store.ts';

/** What a running stage may use of the engine. */
export type StageContext = {
  /** Aborted when the run is interrupted or another stage failed. */
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number, note?: string) => void;
  readonly warn: (message: string) => void;
};

/** Values, or promises of other stages' results: what a stage waits for is what it is made from. */
type Pending<I> = { readonly [K in keyof I]: I[K] | Promise<I[K]> };

export type StageOptions<I, O> = {
  readonly name: string;
  /** Raised when the same inputs give another result than before. */
  readonly version?: number;
  /** Everything the result depends on; JSON values, no secret. Its digest is the fingerprint. */
  readonly inputs: Pending<I>;
  /** Awaited before the stage starts; what it gives does not make the result stale. */
  readonly after?: Promise<unknown>;
  readonly run: (inputs: I, context: StageContext) => Promise<O>;
  /** Whether a result of an earlier run may stand for a new one; absent: never. */
  readonly isUsable?: (result: O) => Promise<boolean> | boolean;
};

export type StageTime = {
  readonly stage: string;
  readonly milliseconds: number;
  readonly reused: boolean;
};

/** Runs stages as soon as what they wait for is there. Knows none of them. */
export type Engine = {
  stage: <I extends object, O>(options: StageOptions<I, O>) => Promise<O>;
  times: () => readonly StageTime[];
  readonly signal: AbortSignal;
};

/**
 * @param signal ends the run from outside
 */
export function createEngine(options: {
  readonly store: StageStore;
  readonly signal: AbortSignal;
  readonly emit: EventListener;
  readonly now?: () => number;
}): Engine {
  const now = options.now ?? (() => performance.now());
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const times: StageTime[] = [];

  const runStage = async <I extends object, O>(stage: StageOptions<I, O>): Promise<O> => {
    const inputs = await settleInputs(stage.inputs);
    await stage.after;
    signal.throwIfAborted();
    const fingerprint = fingerprintOf(stage, inputs);
    const known = await readKnown(stage, fingerprint, options.store);
    if (!known) return makeAnew(stage, inputs, fingerprint);
    options.emit({ type: 'stage-reused', stage: stage.name });
    times.push({ stage: stage.name, milliseconds: 0, reused: true });
    return known.result;
  };

  const makeAnew = async <I extends object, O>(
    stage: StageOptions<I, O>,
    inputs: I,
    fingerprint: Digest,
  ): Promise<O> => {
    const started = now();
    options.emit({ type: 'stage-started', stage: stage.name });
    if (stage.isUsable) await options.store.remove(stage.name);
    const result = await stage.run(inputs, contextOf(stage.name, signal, options.emit));
    if (stage.isUsable) await options.store.write(stage.name, fingerprint, result as Json);
    const milliseconds = Math.round(now() - started);
    times.push({ stage: stage.name, milliseconds, reused: false });
    options.emit({ type: 'stage-done', stage: stage.name, milliseconds });
    return result;
  };

  return {
    signal,
    times: () => times,
    stage(stage) {
      const result = runStage(stage).catch((error: unknown) => {
        // What fails because something else failed first is no news.
        if (!signal.aborted) {
          const message = error instanceof Error ? error.message : String(error);
          options.emit({ type: 'stage-failed', stage: stage.name, message });
          stop.abort(error);
        }
        throw options.signal.aborted ? options.signal.reason : stop.signal.reason;
      });
      result.catch(() => undefined); // a recipe may await it later, or never when another one failed
      return result;
    },
  };
}

/** The result of an earlier run, where the stage says that it may stand for a new one. */
async function readKnown<I, O>(
  stage: StageOptions<I, O>,
  fingerprint: Digest,
  store: StageStore,
): Promise<{ readonly result: O } | undefined> {
  if (!stage.isUsable) return undefined;
  const known = await store.read(stage.name, fingerprint);
  if (!known) return undefined;
  const result = known.result as O; // written by this stage: JSON of its own shape
  return (await stage.isUsable(result)) ? { result } : undefined;
}

function contextOf(stage: string, signal: AbortSignal, emit: EventListener): StageContext {
  return {
    signal,
    onProgress(bytes, total, note) {
      const details = {
        ...(total !== undefined && { total }),
        ...(note !== undefined && { note }),
      };
      emit({ type: 'stage-progress', stage, bytes, ...details });
    },
    warn(message) {
      emit({ type: 'warning', message });
    },
  };
}

async function settleInputs<I extends object>(pending: Pending<I>): Promise<I> {
  const entries: [string, unknown][] = Object.entries(pending);
  const settled = await Promise.all(
    entries.map(async ([key, value]) => [key, await value] as const),
  );
  return Object.fromEntries(settled) as I;
}

function fingerprintOf<I extends object, O>(stage: StageOptions<I, O>, inputs: I): Digest {
  const { name, version = 1 } = stage;
  return digestOf(formatCanonicalJson({ name, version, inputs: inputs as unknown as Json }));
}
