import { describe, expect, it } from 'vitest';
import { variableOf } from '../../src/base/environment.ts';

describe('a variable of the environment', () => {
  it.each([
    [{}, undefined],
    [{ A: '' }, undefined],
    [{ A: 'a' }, 'a'],
    [{ A: '', B: 'b' }, 'b'],
    [{ A: 'a', B: 'b' }, 'a'],
    [{ A: ' ' }, ' '],
  ])('counts as not set if it is empty: %o', (env, text) => {
    expect(variableOf(env, 'A', 'B')).toBe(text);
  });
});
