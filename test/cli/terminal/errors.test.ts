import { expect, test } from 'vitest';
import { IntegrityError, RegistryError } from '../../../src/base/errors.ts';
import { explainNetworkFailure } from '../../../src/base/http/network-failure.ts';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { describeError } from '../../../src/cli/terminal/errors.ts';

const tell = (error: unknown): string => describeError(error, createRedaction()).text;

test('a refused connection is described with its code once', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), {
    code: 'ECONNREFUSED',
  });
  const text = tell(explainNetworkFailure('127.0.0.1:1', cause));
  expect(text.match(/ECONNREFUSED/g)).toHaveLength(1);
  expect(text.match(/127\.0\.0\.1:1/g)).toHaveLength(1);
});

test('an unknown host is described with the code that its sentence does not have', () => {
  const cause = Object.assign(new Error('getaddrinfo ENOTFOUND a.example'), { code: 'ENOTFOUND' });
  expect(tell(explainNetworkFailure('a.example', cause)).match(/ENOTFOUND/g)).toHaveLength(1);
});

test('a value that is compared with another is shown even if the sentence has it', () => {
  const values = { expected: '2', found: '1' };
  expect(tell(new IntegrityError('a.b', 'it has 1 byte', values))).toContain('found:    1');
});

test('a value alone is shown unless the sentence has it', () => {
  expect(tell(new RegistryError('a.b', 'the host refuses', { found: '503' }))).toContain('503');
});
