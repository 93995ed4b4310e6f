import { closeSync, readFileSync, rmSync } from 'node:fs';
import type { Digest } from '../base/digest.ts';
import { nameAside } from '../base/disk/aside.ts';
import { unlessAbsent } from '../base/disk/files.ts';
import { createFileSync, fillFileSync } from '../base/disk/open-file.ts';
import { publishFileSync } from '../base/disk/publish.ts';
import { formatReadableJson, type Json } from '../base/text/json.ts';
import type { EventListener } from './engine.ts';
import { fingerprintOf, type PlainInputs, parseEntry } from './stage.ts';

/** A stage that runs once for each item of a list. Like every stage, it is a value at the top of a module. */
export type MappedStage<Inputs extends PlainInputs<Inputs>, Output, Tools, Item> = {
  /** Verb and noun. */
  readonly name: string;
  /** Plural noun for the progress note: `sites`. */
  readonly items: string;
  /** Returns the inputs of an item. Called when the item's turn comes: there may be ten thousand. */
  readonly bind: (item: Item, tools: Tools) => Inputs | Promise<Inputs>;
  readonly run: (inputs: Inputs, tools: Tools, signal: AbortSignal) => Promise<Output>;
  /** Returns the output for an item that failed. Rethrows errors that concern all items. */
  readonly recover: (name: string, error: unknown) => Output;
  /** The output of the same inputs and program, if all it names still exists. Absent: always runs. */
  readonly reuse?: (earlier: Output, inputs: Inputs, tools: Tools) => Output | undefined;
};

type Named = {
  readonly name: string;
  /** Path of the item's record, for a stage with `reuse`. */
  readonly record?: string;
};

export type MapOptions<Tools> = {
  readonly tools: Tools;
  /** Number of items that run at the same time. */
  readonly atOnce: number;
  /** The digest of the program: for a stage with `reuse`. */
  readonly program?: Digest;
  readonly signal: AbortSignal;
  readonly emit: EventListener;
  /** Milliseconds. */
  readonly now: () => number;
};

/**
 * Runs a stage for every item, in their order, and emits the events of one stage. After an abort, or
 * the first failure that the stage does not recover from, no further item begins; the error is thrown when
 * the running items have ended.
 *
 * @returns the outputs by the names of the items, in their order
 */
export async function mapStage<I extends PlainInputs<I>, O, T, Item>(
  stage: MappedStage<I, O, T, Item>,
  items: readonly (Item & Named)[],
  options: MapOptions<T>,
): Promise<ReadonlyMap<string, O>> {
  const { atOnce, signal, emit, now } = options;
  const started = now();
  emit({ type: 'stage-started', stage: stage.name });
  const counter = createCounter(stage, items.length, options);
  const outputs: O[] = [];
  const left = items.entries();
  let failure: { readonly reason: unknown } | undefined;
  const runLane = async (): Promise<void> => {
    for (const [index, item] of left) {
      if (failure || signal.aborted) return;
      try {
        outputs[index] = await runItem(stage, item, options);
        counter.advance();
      } catch (reason) {
        failure ??= { reason };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, runLane));
  if (signal.aborted) counter.report();
  signal.throwIfAborted();
  if (failure) throw failure.reason;
  emit({ type: 'stage-done', stage: stage.name, milliseconds: Math.round(now() - started) });
  return new Map(items.map(({ name }, index) => [name, outputs[index] as O]));
}

async function runItem<I extends PlainInputs<I>, O, T, Item>(
  stage: MappedStage<I, O, T, Item>,
  item: Item & Named,
  { tools, program, signal }: MapOptions<T>,
): Promise<O> {
  const { reuse } = stage;
  const { name, record: path } = item;
  try {
    const inputs = await stage.bind(item, tools);
    if (!reuse || path === undefined || program === undefined) {
      return await stage.run(inputs, tools, signal);
    }
    const fingerprint = fingerprintOf({ stage: stage.name, inputs, program });
    const earlier = readRecord(path, fingerprint);
    const known = earlier && reuse(earlier.result as O, inputs, tools); // written by this stage
    if (known !== undefined) return known;
    const output = await stage.run(inputs, tools, signal);
    await writeRecord(path, formatReadableJson({ fingerprint, result: output as Json }));
    return output;
  } catch (error) {
    return stage.recover(name, error);
  }
}

function readRecord(path: string, fingerprint: Digest): { readonly result: Json } | undefined {
  const text = unlessAbsent(() => readFileSync(path, 'utf8'));
  const record = text === undefined ? undefined : parseEntry(text);
  return record?.fingerprint === fingerprint ? record : undefined;
}

/** Not synced: everything the record names is checked before reuse. */
async function writeRecord(path: string, text: string): Promise<void> {
  const aside = await nameAside(path);
  const file = createFileSync(aside);
  try {
    fillFileSync(file, text);
    publishFileSync(file, aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Shortest time between two progress events. */
const INTERVAL_MS = 100;

/** Counts finished items and emits progress events; `report` emits the number of now. */
function createCounter(
  { name: stage, items }: { readonly name: string; readonly items: string },
  total: number,
  { emit, now }: Pick<MapOptions<unknown>, 'emit' | 'now'>,
): { readonly advance: () => void; readonly report: () => void } {
  const started = now();
  let done = 0;
  let first: number | undefined;
  let emitted = started;
  const report = (time = now()): void => {
    emitted = time;
    const left = estimateLeft({ started, first: first ?? time, time, done, total });
    const note = `${done} of ${total} ${items}${formatLeft(left)}`;
    emit({ type: 'stage-progress', stage, bytes: 0, note, items: { done, total, name: items } });
  };
  return {
    report,
    advance() {
      done++;
      const time = now();
      first ??= time;
      if (time - emitted >= INTERVAL_MS || done === total) report(time);
    },
  };
}

type Course = {
  readonly started: number;
  /** When the first item was done. */
  readonly first: number;
  readonly time: number;
  readonly done: number;
  readonly total: number;
};

/**
 * Estimated seconds left, or 0 if it is too early to say. The first items run in parallel, so the rate is
 * measured from the end of the first one, and only after as much time again has passed.
 */
function estimateLeft({ started, first, time, done, total }: Course): number {
  const passed = time - first;
  if (done < 2 || passed < first - started) return 0;
  return Math.round((passed / (done - 1) / 1000) * (total - done));
}

function formatLeft(seconds: number): string {
  if (seconds < 2) return '';
  return seconds < 120 ? `, ${seconds} s left` : `, ${Math.round(seconds / 60)} min left`;
}
