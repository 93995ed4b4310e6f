import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';

/**
 * Does `work` and says, should the bytes be wrong, what was being read: an error with the same code
 * around the one that says what is wrong.
 */
export async function whileReading<Result>(
  what: string,
  work: () => Promise<Result> | Result,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw explainReading(what, error);
  }
}

/** The error to throw instead of `error`: unchanged when it is not an IntegrityError. */
export function explainReading(what: string, error: unknown): unknown {
  if (!(error instanceof IntegrityError)) return error;
  return new IntegrityError(error.code, `reading ${what}`, {
    cause: error,
    ...withoutUndefined({ hint: error.hint }),
  });
}

/** The sentences of an error and its causes, outermost first, as one line. */
export function formatCauses(error: Error): string {
  const inner = error.cause instanceof Error ? `: ${formatCauses(error.cause)}` : '';
  return error.message + inner;
}
