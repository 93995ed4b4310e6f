import type { Digest } from '../base/digest.ts';
import type { HttpRequestEvent } from '../base/http/report-requests.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { RetryEvent } from '../base/retry.ts';
import type { Json } from '../base/text/json.ts';
import {
  fingerprintOf,
  type NetworkCount,
  type PlainInputs,
  type Stage,
  type StageContext,
  type Step,
  type StageStore,
} from './stage.ts';

/** The reason why a stage runs instead of being reused. */
export type StageReason = 'never-reused' | 'first-run' | 'inputs-changed' | 'result-unusable';

/** Events of a run, in order: one line each of `--log-format json`, without secrets. */
export type BuildEvent =
  | { readonly type: 'stage-started'; readonly stage: string; readonly reason?: StageReason }
  /** The stage's inputs did not change: its last result is used. */
  | { readonly type: 'stage-reused'; readonly stage: string }
  /** Bytes so far; `total` if it is known; `note` names the current item. */
  | {
      readonly type: 'stage-progress';
      readonly stage: string;
      readonly bytes: number;
      readonly total?: number;
      readonly note?: string;
      /** Bytes of the network, if they are counted apart from those of the output. */
      readonly network?: NetworkCount;
      /** Items that are done, of a stage that counts no bytes. */
      readonly items?: { readonly done: number; readonly total: number; readonly name: string };
    }
  | { readonly type: 'stage-done'; readonly stage: string; readonly milliseconds: number }
  | { readonly type: 'stage-failed'; readonly stage: string; readonly message: string }
  | RetryEvent
  | HttpRequestEvent
  | { readonly type: 'warning'; readonly message: string };

export type EventListener = (event: BuildEvent) => void;

/** Inputs as values or as promises of other stages' results, which the stage then waits for. */
type Pending<I> = { readonly [K in keyof I]: I[K] | Promise<I[K]> };

export type StageTime = {
  readonly stage: string;
  readonly milliseconds: number;
  readonly reused: boolean;
};

/** Runs stages as soon as their inputs are ready. It knows no particular stage. */
export type Engine<Tools> = {
  /** @param after awaited before the stage starts; its value is not part of the fingerprint */
  run: <I extends PlainInputs<I>, O>(
    stage: Stage<I, O, Tools>,
    inputs: Pending<I>,
    after?: Promise<unknown>,
  ) => Promise<O>;
  times: () => readonly StageTime[];
  readonly signal: AbortSignal;
};

export type EngineOptions<Tools> = {
  /** Tools shared by all stages; never part of a fingerprint. */
  readonly tools: Tools;
  readonly store: StageStore;
  /** Digest of the program. Results of another program are not reused, except random ones. */
  readonly program: Digest;
  /** 32 random bytes of this work directory. */
  readonly sealKey: Uint8Array;
  /** Ends the run from outside. */
  readonly signal: AbortSignal;
  readonly emit: EventListener;
  readonly now?: () => number;
};

export function createEngine<Tools>(options: EngineOptions<Tools>): Engine<Tools> {
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const times: StageTime[] = [];
  const run = { ...options, signal, times };
  return {
    signal,
    times: () => times,
    run(stage, inputs, after) {
      const result = runStage(stage, { inputs, after }, run).catch((error: unknown) => {
        // A failure that only follows from an earlier one is not reported.
        if (!signal.aborted) {
          const message = error instanceof Error ? error.message : String(error);
          options.emit({ type: 'stage-failed', stage: stage.name, message });
          stop.abort(error);
        }
        throw options.signal.aborted ? options.signal.reason : stop.signal.reason;
      });
      result.catch(() => undefined); // the caller may await it later, or never if another stage failed
      return result;
    },
  };
}

type Run<Tools> = EngineOptions<Tools> & { readonly times: StageTime[] };

async function runStage<I extends object, O, Tools>(
  stage: Step<I, O, Tools>,
  given: { readonly inputs: Pending<I>; readonly after: Promise<unknown> | undefined },
  run: Run<Tools>,
): Promise<O> {
  const inputs = await settleInputs(given.inputs);
  await given.after;
  run.signal.throwIfAborted();
  const known = await findKnown(stage, inputs, run);
  if (typeof known === 'string') return perform(stage, { inputs, reason: known }, run);
  run.emit({ type: 'stage-reused', stage: stage.name });
  run.times.push({ stage: stage.name, milliseconds: 0, reused: true });
  return known.result;
}

async function perform<I extends object, O, Tools>(
  stage: Step<I, O, Tools>,
  { inputs, reason }: { readonly inputs: I; readonly reason: StageReason },
  run: Run<Tools>,
): Promise<O> {
  const { now = () => performance.now(), emit, store } = run;
  const { name, reuse } = stage;
  const started = now();
  emit({ type: 'stage-started', stage: name, reason });
  if (reuse?.kind === 'same-program') await store.remove(name);
  const made = await stage.run(inputs, run.tools, contextOf(name, run));
  const result = await keep(stage, { inputs, made }, run);
  const milliseconds = Math.round(now() - started);
  run.times.push({ stage: name, milliseconds, reused: false });
  emit({ type: 'stage-done', stage: name, milliseconds });
  return result;
}

/** @returns the new result, or a random one that another build of this work directory stored first */
async function keep<I extends object, O, Tools>(
  stage: Step<I, O, Tools>,
  { inputs, made }: { readonly inputs: I; readonly made: O },
  run: Run<Tools>,
): Promise<O> {
  if (!stage.reuse) return made;
  const entry = { stage: stage.name, fingerprint: fingerprint(stage, inputs, run) };
  if (stage.reuse.kind === 'drawn') return (await run.store.writeDrawn(entry, made as Json)) as O;
  await run.store.write(entry, made as Json);
  return made;
}

/** The earlier result if the stage allows its reuse, otherwise the reason to run. */
async function findKnown<I extends object, O, Tools>(
  stage: Step<I, O, Tools>,
  inputs: I,
  run: Run<Tools>,
): Promise<{ readonly result: O } | StageReason> {
  if (!stage.reuse) return 'never-reused';
  const entry = { stage: stage.name, fingerprint: fingerprint(stage, inputs, run) };
  const { reuse } = stage;
  const isDrawn = reuse.kind === 'drawn';
  const known = await (isDrawn ? run.store.readDrawn(entry) : run.store.read(entry));
  if (!known) return !isDrawn && (await run.store.has(stage.name)) ? 'inputs-changed' : 'first-run';
  const result = known.result as O; // written by this stage: JSON of its own shape
  const isUsable = reuse.kind === 'drawn' || (await reuse.isUsable(result));
  return isUsable ? { result } : 'result-unusable';
}

const fingerprint = <I extends object, O, Tools>(
  { name, reuse }: Step<I, O, Tools>,
  inputs: I,
  { program, sealKey }: Run<Tools>,
): Digest =>
  fingerprintOf({ stage: name, inputs, sealKey, ...(reuse?.kind !== 'drawn' && { program }) });

function contextOf<Tools>(stage: string, { signal, emit }: Run<Tools>): StageContext {
  return {
    signal,
    onProgress(bytes, total, about = {}) {
      emit({ type: 'stage-progress', stage, bytes, ...withoutUndefined({ total }), ...about });
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
