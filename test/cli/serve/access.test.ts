import { expect, it } from 'vitest';
import { readAuth } from '../../../src/cli/serve/access.ts';

const URL = 'https://issuer.example/keys.json';

it.each([
  [{}, 'usage.auth-keys'],
  [{ authKeys: URL }, 'usage.auth-issuer'],
  [{ authKeys: URL, authIssuer: 'https://issuer.example' }, 'usage.auth-audience'],
])('keys that may sign tokens for others need issuer and audience: %o', (options, code) => {
  const asked = { auth: 'rhsso', authLifetime: 1000, ...options } as const;
  expect(() => readAuth(asked, { cwd: '/' })).toThrow(
    expect.objectContaining({ code, exitCode: 2 }),
  );
});

it('keys from a URL are those of the issuer that is named', () => {
  const rules = { authIssuer: 'https://issuer.example', authAudience: 'sealift' };
  const asked = { auth: 'rhsso', authKeys: URL, authLifetime: 1000, ...rules } as const;
  expect(readAuth(asked, { cwd: '/' })).toEqual({
    type: 'rhsso',
    keys: URL,
    lifetime: 1000,
    issuer: 'https://issuer.example',
    audience: 'sealift',
  });
});
