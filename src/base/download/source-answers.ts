import {
  ConfigError,
  DiskError,
  IntegrityError,
  RegistryError,
  type SealiftError,
} from '../errors.ts';
import { withoutUndefined } from '../lists.ts';
import type { SourceAnswer } from './sources.ts';

/*
 * Owns what failures of sources mean by their codes, and the one error that is made of the answers of several sources.
 */

type Meaning = {
  /** `credential`: of either side, a password, a token, a certificate. */
  readonly kind?: 'not-found' | 'out-of-reach' | 'credential';
  /** The predicate of its sentence about a host, if the whole host fails by it. */
  readonly ofHost?: string;
};

const MEANINGS: ReadonlyMap<string, Meaning> = new Map([
  ['registry.manifest-unknown', { kind: 'not-found' }],
  ['blob.unknown', { kind: 'not-found' }],
  ['registry.unreachable', { kind: 'out-of-reach', ofHost: 'is unreachable' }],
  ['registry.unknown-host', { kind: 'out-of-reach', ofHost: 'is not known to DNS' }],
  ['registry.not-asked', { kind: 'out-of-reach' }],
  ['registry.unavailable', { ofHost: 'is unavailable' }],
  ['registry.unauthorized', { kind: 'credential' }],
  ['registry.forbidden', { kind: 'credential' }],
  ['registry.realm', { kind: 'credential' }],
  ['registry.token', { kind: 'credential' }],
  ['registry.certificate', { kind: 'credential', ofHost: 'is not trusted' }],
  ['proxy.unreachable', { kind: 'out-of-reach', ofHost: 'is behind a proxy that is unreachable' }],
  ['proxy.unavailable', { kind: 'out-of-reach', ofHost: 'is behind a proxy that cannot reach it' }],
  [
    'proxy.unknown-host',
    { kind: 'out-of-reach', ofHost: 'is behind a proxy that is not known to DNS' },
  ],
  ['proxy.forbidden', { kind: 'out-of-reach', ofHost: 'is forbidden by the proxy' }],
  [
    'proxy.unauthorized',
    { kind: 'credential', ofHost: 'is behind a proxy that asks for a password' },
  ],
  ['proxy.certificate', { kind: 'credential' }],
]);

const kindOf = ({ error }: SourceAnswer): Meaning['kind'] => MEANINGS.get(error.code)?.kind;

export const isNotFound = (answer: SourceAnswer): boolean => kindOf(answer) === 'not-found';

export const isOutOfReach = (answer: SourceAnswer): boolean => kindOf(answer) === 'out-of-reach';

/** RFC 9110 15.6: a gateway's answers if its server is down. 500 may be about one image only. */
const SERVER_IS_DOWN = new Set(['502', '503', '504']);

/** The predicate of a sentence about a host that failed as a whole; undefined for a failure of one request. */
export const describeHostFailure = ({ code, found = '' }: SealiftError): string | undefined =>
  code !== 'registry.unavailable' || SERVER_IS_DOWN.has(found)
    ? MEANINGS.get(code)?.ofHost
    : undefined;

/**
 * The rank of an answer by what it reveals about the cause; 0 reveals most. "Not found" is certain
 * only if no other source gave its own reason (5xx, 429), and a source that was not reached reveals
 * nothing about an image.
 */
function rankOf(answer: SourceAnswer): number {
  if (answer.error instanceof IntegrityError) return 0;
  if (answer.error instanceof ConfigError) return 1;
  const kind = kindOf(answer);
  return kind === undefined ? 2 : RANKS[kind];
}

const RANKS = { 'credential': 1, 'not-found': 3, 'out-of-reach': 4 } as const;

/** The answer that decides code and exit code; of equal ones the first: a mirror's before its origin's. */
export const findWorst = (answers: readonly SourceAnswer[]): SourceAnswer =>
  answers.reduce((worst, answer) => (rankOf(answer) < rankOf(worst) ? answer : worst));

/**
 * One error for all sources of an image or a blob, at least one. A single answer is used as it is;
 * several appear in the text in the order of asking, with code, hint and both values of the worst.
 */
export function joinAnswers(answers: readonly SourceAnswer[]): SealiftError {
  const { error } = findWorst(answers);
  if (answers.length === 1) return error;
  return restate(
    error,
    answers.map(({ source, error: { message } }) => `${source}: ${message}`).join('; '),
  );
}

/** The same failure, as the cause, in a wider sentence with its code, exit code, hint and both values. */
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
