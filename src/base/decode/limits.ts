import { Transform } from 'node:stream';
import type { Header } from 'tar-stream';
import { IntegrityError } from '../errors.ts';
import { withoutUndefined } from '../lists.ts';
import { formatSize } from '../text/words.ts';

/*
 * Owns the limits of reading untrusted bytes: the error for packed bytes, the bound on their
 * expansion, and budgets for a whole reading.
 */

type Problem = 'malformed' | 'window-too-large' | 'too-large' | 'too-slow';

/** The reason why packed bytes are refused. The caller knows their origin: see `explainDecodeError`. */
export class DecodeError extends Error {
  readonly problem: Problem;
  readonly expected: string | undefined;
  readonly found: string | undefined;

  constructor(
    problem: Problem,
    message: string,
    values: { readonly expected?: string; readonly found?: string } = {},
  ) {
    super(message);
    this.problem = problem;
    this.expected = values.expected;
    this.found = values.found;
  }
}

/**
 * The refusal of `what` (`layer sha256:...`), with a code of its area (`layer.malformed`). Any
 * other error counts as malformed bytes: it comes from a decoder.
 */
export function explainDecodeError(area: string, what: string, cause: unknown): IntegrityError {
  const { problem, expected, found } =
    cause instanceof DecodeError ? cause : ({ problem: 'malformed' } as Partial<DecodeError>);
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new IntegrityError(`${area}.${problem}`, `${what} cannot be unpacked: ${reason}`, {
    cause,
    hint: 'do not use it; download it again from where it was published',
    ...withoutUndefined({ expected, found }),
  });
}

/** Layers of images unfold 2 to 20 times; runs of zeros 1,000 times in gzip and 30,000 in zstd. */
const MAX_RATIO = 250;

/** Smaller unpacked sizes are not checked: they cost seconds at most. */
const RATIO_FLOOR = 256 * 1024 ** 2;

/** Ten times the largest layer in a catalog or release image. */
const MAX_TOTAL = 64 * 1024 ** 3;

/**
 * Passes unpacked bytes on, whether they are taken or skipped, as long as they are not too many for `packed`
 * bytes: the cost of a stream stays in proportion to its size, and is bounded in total.
 *
 * @throws DecodeError `too-large`, as the error of the stream
 */
export function createExpansionGuard(packed: number): Transform {
  const limit = Math.min(MAX_TOTAL, Math.max(RATIO_FLOOR, packed * MAX_RATIO));
  let size = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size <= limit) done(null, chunk);
      else done(tooLarge(packed, limit));
    },
  });
}

const tooLarge = (packed: number, limit: number): DecodeError =>
  new DecodeError('too-large', `its ${packed} bytes unpack to more than ${formatSize(limit)}`, {
    expected: `at most ${limit} bytes`,
    found: `more than ${limit} bytes`,
  });

/**
 * Checks the size of an entry; call it for each one. tar-stream gives a binary size that is neither positive
 * nor negative as null, in spite of its types, and then waits for the end of the entry forever.
 *
 * @throws the error that `explain` makes of the fault
 */
export function requireSize({ size }: Header, explain: (cause: Error) => unknown): void {
  if (Number.isSafeInteger(size)) return;
  throw explain(new Error('an entry has a size that is not a number'));
}

/** The remaining cost of one reading, by kind: bytes, entries, or anything else that grows with its input. */
export type DecodeBudget<Kind extends string> = {
  /** @throws the error that `refuse` of {@link createBudget} makes, when more than the limit is taken */
  readonly take: (kind: Kind, amount: number) => void;
  /** The rest, for readers that can be given a limit; {@link take} must still be called afterwards. */
  readonly left: (kind: Kind) => number;
  readonly reset: () => void;
};

/** Bounds a reading as a whole: a bound for each part is not enough if the input chooses their number. */
export function createBudget<Kind extends string>(
  limits: Readonly<Record<Kind, number>>,
  refuse: (kind: Kind, limit: number) => Error,
): DecodeBudget<Kind> {
  let left: Record<Kind, number> = { ...limits };
  return {
    take(kind, amount) {
      left[kind] -= amount;
      if (left[kind] < 0) throw refuse(kind, limits[kind]);
    },
    left: (kind) => left[kind],
    reset() {
      left = { ...limits };
    },
  };
}
