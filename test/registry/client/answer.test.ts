import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseChallenges, type Challenge } from '../../../src/registry/client/answer.ts';

const plain = (challenges: readonly Challenge[]) =>
  challenges.map(({ scheme, parameters }) => ({ scheme, parameters: { ...parameters } }));

/** The header's text for a list of challenges: all values are quoted. */
function formatChallenges(challenges: readonly Challenge[]): string {
  return challenges.map(formatChallenge).join(', ');
}

function formatChallenge({ scheme, parameters }: Challenge): string {
  const list = Object.entries(parameters).map(
    ([name, value]) => `${name}="${value.replaceAll(/["\\]/g, '\\$&')}"`,
  );
  return [scheme, list.join(', ')].filter((part) => part !== '').join(' ');
}

describe('the parser of WWW-Authenticate', () => {
  it('reads the challenge of a token server', () => {
    const header =
      'Bearer realm="https://quay.io/v2/auth",service="quay.io",scope="repository:a/b:pull"';
    expect(plain(parseChallenges(header))).toEqual([
      {
        scheme: 'bearer',
        parameters: {
          realm: 'https://quay.io/v2/auth',
          service: 'quay.io',
          scope: 'repository:a/b:pull',
        },
      },
    ]);
  });

  it('reads several challenges of one line and of several lines, with commas inside quotes', () => {
    const header = ['Basic realm="a, b", Bearer realm=c', 'Negotiate YWJj==, Digest realm="d"'];
    expect(plain(parseChallenges(header))).toEqual([
      { scheme: 'basic', parameters: { realm: 'a, b' } },
      { scheme: 'bearer', parameters: { realm: 'c' } },
      { scheme: 'negotiate', parameters: {} },
      { scheme: 'digest', parameters: { realm: 'd' } },
    ]);
  });

  it('has no challenge without a header', () => {
    expect(parseChallenges(undefined)).toEqual([]);
    expect(parseChallenges('')).toEqual([]);
  });

  const token = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
  const challenge = fc.record({
    scheme: token,
    parameters: fc.dictionary(token, fc.string({ unit: 'grapheme-ascii' }), { maxKeys: 4 }),
  });

  it('gives back every challenge that is formatted', () => {
    fc.assert(
      fc.property(fc.array(challenge, { maxLength: 4 }), (challenges) => {
        expect(plain(parseChallenges(formatChallenges(challenges)))).toEqual(plain(challenges));
      }),
    );
  });

  it('terminates for any text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(Array.isArray(parseChallenges(text))).toBe(true);
      }),
    );
    expect(parseChallenges(`Bearer realm="${'\\'.repeat(50_000)}`)).toHaveLength(1);
    expect(parseChallenges(`${' ,'.repeat(50_000)}Basic`)).toHaveLength(1);
  });
});
