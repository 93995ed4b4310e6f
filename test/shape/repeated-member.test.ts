import { expect, it } from 'vitest';
import { hasRepeatedMember } from '../../src/shape/repeated-member.ts';

it.each([
  ['{"a":1,"a":2}', true],
  ['{"a":1,"\\u0061" :2}', true],
  ['[{"b":[{"a":1},{"a":1}]},{"a":{"a":1}}]', false],
  ['{"x":{"a":{},"b":[],"a":{}}}', true],
  ['{"a":"a","b":"\\"a\\":","c":["a","a"]}', false],
  ['{"a":[{"a":1}],"a":1}', true],
  ['{"__proto__":1,"constructor":2}', false],
  ['"a"', false],
])('%s has a member twice: %s', (json, isRepeated) => {
  JSON.parse(json);
  expect(hasRepeatedMember(json)).toBe(isRepeated);
});
