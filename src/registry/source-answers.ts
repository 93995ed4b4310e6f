import {
  ConfigError,
  DiskError,
  IntegrityError,
  RegistryError,
  type SealiftError,
} from '../base/errors.ts';
import type { SourceAnswer } from '../base/download/source.ts';
import { withoutUndefined } from '../base/members.ts';

const NOT_FOUND = new Set(['registry.manifest-unknown', 'blob.unknown']);

const OUT_OF_REACH = new Set([
  'registry.unreachable',
  'registry.unknown-host',
  'registry.not-asked',
  'proxy.unreachable',
  'proxy.unavailable',
  'proxy.unknown-host',
  'proxy.forbidden',
]);

/** Refused for what was shown to it, or for what it showed: a password, a token, a certificate. */
const CREDENTIALS = new Set([
  'registry.unauthorized',
  'registry.forbidden',
  'registry.realm',
  'registry.token',
  'registry.certificate',
  'proxy.unauthorized',
  'proxy.certificate',
]);

export const isNotFound = ({ error }: SourceAnswer): boolean => NOT_FOUND.has(error.code);

export const isOutOfReach = ({ error }: SourceAnswer): boolean => OUT_OF_REACH.has(error.code);

/**
 * How much an answer says about the cause, 0 first. "Not found" is certain only where no other source
 * gave a reason of its own (5xx, 429), and a source that was not reached says nothing about an image.
 */
function rankOf({ error }: SourceAnswer): number {
  if (error instanceof IntegrityError) return 0;
  if (error instanceof ConfigError || CREDENTIALS.has(error.code)) return 1;
  if (OUT_OF_REACH.has(error.code)) return 4;
  return NOT_FOUND.has(error.code) ? 3 : 2;
}

/** The answer that decides code and exit code; of equal ones the first: a mirror's before its origin's. */
export const findWorst = (answers: readonly SourceAnswer[]): SourceAnswer =>
  answers.reduce((worst, answer) => (rankOf(answer) < rankOf(worst) ? answer : worst));

/**
 * One error for all sources of an image or a blob, at least one. A single answer speaks for itself; several stand
 * in the text in the order of asking, with code, hint and both values of the worst.
 */
export function joinAnswers(answers: readonly SourceAnswer[]): SealiftError {
  const { error } = findWorst(answers);
  if (answers.length === 1) return error;
  return restate(
    error,
    answers.map(({ source, error: { message } }) => `${source}: ${message}`).join('; '),
  );
}

/** The same failure in a wider sentence: its code, exit code, hint and both values; it is the cause. */
export function restate(
  cause: SealiftError,
  message: string,
  hint: string | undefined = cause.hint,
): SealiftError {
  const { code, expected, found } = cause;
  const Domain = [IntegrityError, ConfigError, DiskError].find((one) => cause instanceof one);
  return new (Domain ?? RegistryError)(code, message, {
    ...withoutUndefined({ expected, found, hint }),
    cause,
  });
}
