import type { Digest } from '../digest.ts';
import type { ResumableFile } from '../disk/resumable-file.ts';
import type { IntegrityError } from '../errors.ts';
import { bringVerified } from './bring-verified.ts';
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
 * Fills a file with an object, verified: what an earlier run left is hashed and continued. What is there
 * when it fails stays in the file, but wrong bytes.
 *
 * @throws what `explainWrong` gives; the errors of `readSources` and of the disk
 */
export const fillFile = <S extends Source>(
  file: ResumableFile,
  options: FillOptions<S>,
): Promise<void> =>
  bringVerified(async (attempt) => {
    const { wanted, signal, onProgress } = options;
    const used = new Set<Source>();
    const prefix = attempt.usePrefix ? Math.min(options.prefix, wanted.limit) : 0;
    let start = prefix;
    await file.rewind(start, signal);
    const sources = attempt.rank(options.sources);
    const reading = readSources(sources, wanted, { ...options, ...attempt, offset: start });
    try {
      for await (const { offset, bytes, source, total } of reading) {
        if (offset !== file.size()) {
          start = offset;
          await file.rewind(start, signal);
          if (options.cutsOff) await file.cutOff();
          used.clear();
        }
        used.add(source);
        await file.append(bytes);
        onProgress?.(file.size(), total);
      }
    } finally {
      await file.flush();
    }
    const found = file.digest();
    const isRight = wanted.digest === undefined || found === wanted.digest;
    const size = file.size();
    if (!isRight) await file.rewind(0, signal);
    await file.cutOff();
    if (isRight) return undefined;
    const from = [...used].map(({ name }) => name);
    const hasPrefix = prefix > 0 && start === prefix;
    return { used, hasPrefix, error: wanted.explainWrong({ found, size, from }) };
  });
