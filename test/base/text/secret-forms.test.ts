import { describe, expect, it } from 'vitest';
import { listNameForms, listSecretForms } from '../../../src/base/text/secret-forms.ts';

describe('the forms of a secret', () => {
  it('are few for a token without special characters', () => {
    expect(listSecretForms('abcdefghijklmnop').length).toBeLessThan(12);
  });

  it('are complete for a password with special characters', () => {
    const texts = listSecretForms('a"b/c d\'e&f').map(({ text }) => text);
    for (const text of [
      String.raw`a\"b/c d'e&f`,
      "a%22b%2Fc%20d'e%26f",
      String.raw`a\"b/c d'e\u0026f`,
    ]) {
      expect(texts).toContain(text);
    }
  });

  it('are not made for texts longer than any secret or name', () => {
    expect(listSecretForms('x'.repeat((64 << 10) + 1))).toEqual([]);
    expect(listNameForms(`a1${'x'.repeat(1100)}`)).toEqual([]);
  });
});
