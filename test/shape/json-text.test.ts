import { expect, it } from 'vitest';
import { readJsonText, TYPED_JSON } from '../../src/shape/json-text.ts';

it.each([
  ['{"a":1,"a":2}', 'has "a" twice'],
  ['{"a":1,"\\u0061" :2}', 'has "a" twice'],
  ['[{"b":[{"a":1},{"a":1}]},{"a":{"a":1}}]', undefined],
  ['{"x":{"a":{},"b":[],"a":{}}}', 'has "a" twice'],
  ['{"a":"a","b":"\\"a\\":","c":["a","a"]}', undefined],
  ['{"a\\\\":1,"a":2}', undefined],
  ['{"a\\\\\\"":1,"a\\\\\\"":2}', 'has "a\\\\\\"" twice'],
  ['{"a":[{"a":1}],"a":1}', 'has "a" twice'],
  ['{"passwd":{},\n"storage":{},\n"passwd":{}}', 'has "passwd" twice, the second time in line 3'],
  ['{"__proto__":1,"constructor":2}', undefined],
  ['"a"', undefined],
  ['{"a":1,"a":2', 'is not JSON'],
  ['[NaN]', 'is not JSON'],
  [Buffer.from([0x22, 0xff, 0x22]), 'is not UTF-8'],
])('the text of a person is read strictly: %s', (json, why) => {
  expect(readJsonText(json, TYPED_JSON).why).toBe(why);
});

it('the last of two members counts in what a program wrote', () => {
  const { repeated, ...manner } = TYPED_JSON;
  expect(repeated).toBe('refused');
  expect(readJsonText('{"a":1,"a":2}', manner)).toEqual({ value: { a: 2 } });
});

it('a long string with many escapes takes neither stack nor time', () => {
  const text = JSON.stringify({ a: '\\"\n'.repeat(2 ** 20), b: '"'.repeat(2 ** 20) });
  expect(readJsonText(text, TYPED_JSON).why).toBeUndefined();
});
