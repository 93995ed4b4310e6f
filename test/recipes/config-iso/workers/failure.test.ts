import { describe, expect, it } from 'vitest';
import {
  ConfigError,
  DiskError,
  InterruptedError,
  SealiftError,
} from '../../../../src/base/errors.ts';
import { isErrno } from '../../../../src/base/errno.ts';
import {
  decodeFailure,
  encodeFailure,
} from '../../../../src/recipes/config-iso/workers/failure.ts';

/** As a message to another thread goes. */
const send = (thrown: unknown): unknown => decodeFailure(structuredClone(encodeFailure(thrown)));

const FULL = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC', errno: -28 });

describe('an error on its way between threads', () => {
  it.each([
    new ConfigError('config.word', 'a is b', { expected: 'a', found: 'b', hint: 'write a' }),
    new DiskError('disk.full', 'the disk is full', { cause: FULL }),
    new InterruptedError('SIGTERM'),
  ])('keeps class, code, values, hint and exit code: $name', (error) => {
    const arrived = send(error) as SealiftError;
    expect(arrived).toBeInstanceOf(error.constructor);
    expect(arrived).toBeInstanceOf(SealiftError);
    for (const key of ['name', 'message', 'stack', 'code', 'expected', 'found', 'hint'] as const) {
      expect([key, arrived[key]]).toEqual([key, error[key]]);
    }
    expect(arrived.exitCode).toBe(error.exitCode);
  });

  it("keeps its causes, and the system's codes of them", () => {
    const { cause } = send(new DiskError('disk.full', 'full', { cause: FULL })) as Error;
    expect(isErrno(cause, 'ENOSPC')).toBe(true);
    expect((cause as Error).message).toBe(FULL.message);
  });

  it('stays a bug when it was one', () => {
    const arrived = send(new TypeError('x is undefined')) as Error;
    expect(arrived).not.toBeInstanceOf(SealiftError);
    expect([arrived.name, arrived.message]).toEqual(['TypeError', 'x is undefined']);
  });

  it('need not be an error', () => {
    expect(send('a word')).toBe('a word');
    expect(send(undefined)).toBeUndefined();
  });
});
