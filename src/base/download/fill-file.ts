import type { Digest } from '../digest.ts';
import type { ResumableFile } from '../disk/resumable-file.ts';
import type { IntegrityError } from '../errors.ts';
import { bringVerified, type Attempt } from './bring-verified.ts';
import { readSources, type ReadOptions, type Wanted } from './read-sources.ts';
import type { Source } from './source.ts';

export type FillOptions<S extends Source> = {
  readonly sources: readonly S[];
  readonly wanted: Wanted<S> & {
    /** Absent where only what is made of the bytes can be compared. */
    readonly digest?: Digest;
    /** `from` names the sources of wrong bytes. */
    readonly explainWrong: (wrong: {
      readonly found: Digest;
      readonly size: number;
      readonly from: readonly string[];
    }) => IntegrityError;
  };
  /** Bytes at the front of the file that an earlier run left. */
  readonly prefix: number;
  /**
   * Whether what stands behind the place where a source starts over is cut off: where it may be of another
   * object. Else it stays, so that the next run can build on it when this one ends before.
   */
  readonly cutsOff: boolean;
  /** Told the bytes that are here so far; they fall where a source starts over. */
  readonly onProgress?: (bytes: number, total?: number) => void;
} & Pick<ReadOptions, 'signal' | 'bodyTime'>;

/**
 * Fills a file with an object, verified: what an earlier run left is hashed and continued. Where that was wrong, it
 * alone is brought again, before everything else is. What is there when it fails stays in the file, but wrong bytes.
 *
 * @throws what `explainWrong` gives; the errors of `readSources` and of the disk
 */
export async function fillFile<S extends Source>(
  file: ResumableFile,
  options: FillOptions<S>,
): Promise<void> {
  const { wanted, signal } = options;
  /** Where the bytes of a prefix ended that may be all that is wrong. */
  let end: number | undefined;
  await bringVerified(async (attempt) => {
    const front = end;
    end = undefined;
    const behind = file.size();
    const prefix = attempt.usePrefix ? Math.min(options.prefix, wanted.limit) : 0;
    const { used, start } = await readInto(file, { ...options, attempt, prefix, end: front });
    if (front !== undefined) await file.rewind(behind, signal);
    const found = file.digest();
    if (wanted.digest === undefined || found === wanted.digest) {
      await file.cutOff();
      return undefined;
    }
    const size = file.size();
    const isFrontAlone = front === undefined && isContinued({ prefix, start }) && size > prefix;
    if (isFrontAlone) end = prefix;
    else await empty(file, signal);
    const from = [...used].map(({ name }) => name);
    const hasPrefix = front !== undefined || isContinued({ prefix, start });
    return { used, hasPrefix, error: wanted.explainWrong({ found, size, from }) };
  });
}

const isContinued = ({ prefix, start }: { readonly prefix: number; readonly start: number }) =>
  prefix > 0 && start === prefix;

async function empty(file: ResumableFile, signal: AbortSignal): Promise<void> {
  await file.rewind(0, signal);
  await file.cutOff();
}

type Reading<S extends Source> = FillOptions<S> & {
  readonly attempt: Attempt;
  /** Byte to end at, where what stands behind it is to stay; default: the end of the object. */
  readonly end: number | undefined;
};

/** @returns whose bytes it took, and the byte that the last run of them began at */
async function readInto<S extends Source>(
  file: ResumableFile,
  options: Reading<S>,
): Promise<{ readonly used: ReadonlySet<Source>; readonly start: number }> {
  const { wanted, signal, onProgress, attempt, prefix, end = Infinity } = options;
  const used = new Set<Source>();
  let start = prefix;
  await file.rewind(start, signal);
  const open: Wanted<S>['open'] = (source, { offset, ...asked }) =>
    wanted.open(source, { ...asked, offset, ...(end < Infinity && { size: end - offset }) });
  const sources = attempt.rank(options.sources);
  const given = { ...options, ...attempt, offset: start };
  try {
    for await (const chunk of readSources(sources, { ...wanted, open }, given)) {
      const { offset, bytes, source, total } = chunk;
      if (offset !== file.size()) {
        start = offset;
        await file.rewind(start, signal);
        if (options.cutsOff) await file.cutOff();
        used.clear();
      }
      used.add(source);
      await file.append(bytes.subarray(0, end - offset));
      onProgress?.(file.size(), total);
      if (file.size() >= end) break;
    }
  } finally {
    await file.flush();
  }
  return { used, start };
}
