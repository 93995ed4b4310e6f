import type { FileHandle } from 'node:fs/promises';
import { explaining } from '../../../base/disk/disk-errors.ts';
import { writeWhole } from '../../../base/disk/files.ts';
import type { Lease } from '../../../base/disk/succession.ts';
import { IntegrityError } from '../../../base/errors.ts';
import { maxOf } from '../../../base/lists.ts';
import type { ByteRange } from '../../../base/random-access.ts';
import { rangesOverlap, type InPlaceStep } from './plan.ts';

export type StepFiles = {
  readonly path: string;
  readonly iso: FileHandle;
  readonly delta: FileHandle;
  /** Output of the patches. */
  readonly patched: FileHandle;
  /** Bytes that were saved aside. */
  readonly aside: FileHandle;
  /** Rejects if another run has taken over: its ISO must not get the bytes of this one. */
  readonly requireHeld: Lease['requireHeld'];
};

export type RunOptions = {
  readonly steps: readonly InPlaceStep[];
  /** Number of steps that are on the disk. */
  readonly done: number;
  /** First bytes of a half-changed ISO. */
  readonly marker: Uint8Array;
  readonly note: (done: number) => Promise<void>;
  readonly signal: AbortSignal;
  readonly onBytes: (size: number) => void;
};

type Place = ByteRange & { readonly file: FileHandle };

/** Numbers of steps and of bytes after which a flush happens in any case. */
const MOST_STEPS = 512;
const MOST_BYTES = 256 * 1024 * 1024;

/**
 * The bytes that a step reads are not overwritten before the step is on the disk and in the journal: after a
 * kill or a loss of power, the steps after the last recorded one run again. The first step that makes the ISO
 * unbootable, and all steps before the last one, are on the disk before the next step begins.
 */
export async function runSteps(files: StepFiles, options: RunOptions): Promise<void> {
  const { steps, signal, marker } = options;
  const log = createLog(files, options);
  const buffer = Buffer.allocUnsafe(maxOf(steps.map(sizeOfStep), 0));
  for (const [number, step] of steps.entries()) {
    if (number < options.done) continue;
    signal.throwIfAborted();
    const target = targetOf(step, files);
    if (!target) {
      await log.flush(number + 1);
      continue;
    }
    const isTurn = steps[number - 1]?.kind === 'close' || number === steps.length - 1;
    if (isTurn || log.needsFlush(target)) await log.flush(number);
    const source = sourceOf(step, files);
    const piece = await readStep(step, buffer, { source, marker });
    await explaining(files.path, async () => {
      await files.requireHeld();
      await writeWhole(target.file, piece, target.offset);
    });
    log.add(source, target.size);
    options.onBytes(step.kind === 'write' ? target.size : 0);
  }
  await log.flush(steps.length);
}

/** Creates a log of steps that are done but not yet recorded. */
function createLog(
  { path, iso, aside }: StepFiles,
  { note }: RunOptions,
): {
  /** True if a write there would overwrite bytes that a step may have to read again. */
  readonly needsFlush: (target: Place) => boolean;
  readonly flush: (done: number) => Promise<void>;
  readonly add: (source: Place | undefined, size: number) => void;
} {
  let sources: Place[] = [];
  let bytes = 0;
  return {
    needsFlush: (target) =>
      sources.length >= MOST_STEPS ||
      bytes >= MOST_BYTES ||
      sources.some((source) => source.file === target.file && rangesOverlap(source, target)),
    async flush(done) {
      await explaining(path, () => iso.datasync());
      await aside.datasync();
      await note(done);
      sources = [];
      bytes = 0;
    },
    add(source, size) {
      if (source) sources.push(source);
      bytes += size;
    },
  };
}

function targetOf(step: InPlaceStep, { iso, aside }: StepFiles): Place | undefined {
  if (step.kind === 'ready') return undefined;
  const { size } = step;
  if (step.kind === 'save') return { file: aside, offset: step.slot, size };
  return { file: iso, offset: step.offset, size };
}

function sourceOf(step: InPlaceStep, { iso, aside, delta, patched }: StepFiles): Place | undefined {
  if (step.kind === 'save') return { file: iso, offset: step.offset, size: step.size };
  if (step.kind !== 'write' || step.from.kind === 'zeros') return undefined;
  const { kind, offset } = step.from;
  return { file: { old: iso, slot: aside, delta, patched }[kind], offset, size: step.size };
}

const sizeOfStep = (step: InPlaceStep): number => (step.kind === 'ready' ? 0 : step.size);

type StepSource = { readonly source: Place | undefined; readonly marker: Uint8Array };

async function readStep(
  step: InPlaceStep,
  buffer: Buffer,
  { source, marker }: StepSource,
): Promise<Buffer> {
  const piece = buffer.subarray(0, sizeOfStep(step));
  if (!source) {
    piece.fill(0);
    if (step.kind === 'close') piece.set(marker);
    return piece;
  }
  for (let done = 0; done < piece.length;) {
    const position = source.offset + done;
    const { bytesRead } = await source.file.read(piece, done, piece.length - done, position);
    if (bytesRead === 0) {
      throw new IntegrityError('delta.shrunk', 'a file became shorter while it was read', {
        hint: 'leave the ISO, the delta and the files next to the ISO as they are, and run the command again',
      });
    }
    done += bytesRead;
  }
  return piece;
}
