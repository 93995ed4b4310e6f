import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findJsonFault } from '../../src/shape/json-fault.ts';

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

describe('the place of a fault in a text that is not JSON', () => {
  it.each([
    ['', 1, 1],
    ['{"auths"', 1, 9],
    ['{\n  "auths": {\n    "a": 1,\n  }\n}', 4, 3],
    ['{"a": 1} x', 1, 10],
    ["{'a': 1}", 1, 2],
    ['{"a" 1}', 1, 6],
    ['[1 2]', 1, 4],
    ['[1,\r\n 01]', 2, 2],
    ['{"a": "b\nc"}', 1, 7],
    ['{"a": tru}', 1, 7],
    ['[TRUE]', 1, 2],
  ])('of %j is line %i, column %i', (text, line, column) => {
    expect(findJsonFault(text)).toEqual({ line, column });
  });

  it('is there for exactly those texts that JSON.parse refuses', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', ':', ',', '"a"', '1', '-0.5e3', 'null', ' ');
    const pieces = fc.array(piece, { maxLength: 9 }).map((each) => each.join(''));
    fc.assert(
      fc.property(fc.oneof(pieces, fc.json(), fc.string()), (text) => {
        expect(findJsonFault(text) === undefined).toBe(isJson(text));
      }),
    );
  });
});
