import { withoutUndefined } from '../without-undefined.ts';
import { IntegrityError } from '../errors.ts';

type Problem = 'malformed' | 'window-too-large' | 'too-large' | 'too-slow';

/** Why packed bytes are refused. The caller knows where they are from: see `explainDecodeError`. */
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
 * The refusal of `what` (`layer sha256:...`), with a code of the area it is from (`layer.malformed`).
 * Any other error counts as malformed bytes: it is one of a decoder.
 */
export function explainDecodeError(area: string, what: string, cause: unknown): IntegrityError {
  const { problem, expected, found } =
    cause instanceof DecodeError ? cause : ({ problem: 'malformed' } as Partial<DecodeError>);
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new IntegrityError(`${area}.${problem}`, `${what} cannot be unpacked: ${reason}`, {
    cause,
    hint: 'do not use it: get it again from where it was published',
    ...withoutUndefined({ expected, found }),
  });
}
