import { describe, expect, test } from 'vitest';
import { formatProblem, type Problem } from '../../src/base/errors.ts';

const CASES: readonly (readonly [string, Problem, readonly string[]])[] = [
  [
    'in a text shows its line, a caret and the hint',
    {
      severity: 'error',
      code: 'config.unknown-key',
      file: 'a.yaml',
      line: 12,
      column: 3,
      path: 'a.b',
      lineText: '  b:',
      problem: 'no such key',
      hint: 'write "c"',
    },
    ['a.yaml:12:3: a.b: no such key', '  12 |   b:', '     |   ^', '  hint: write "c"'],
  ],
  [
    'of a row names the row',
    { severity: 'warning', code: 'sites.input', file: 's.csv', line: 7, problem: 'is not used' },
    ['s.csv:7: warning: is not used'],
  ],
  [
    'of a site shows both values',
    {
      severity: 'error',
      code: 'sites.changed',
      file: 'alpha',
      problem: 'changed',
      expected: '1',
      found: '2\u001b',
    },
    ['alpha: changed', '  expected 1', String.raw`  found    2\u001b`],
  ],
  [
    'of an image names it and its digest',
    {
      severity: 'warning',
      code: 'signature.image-refused',
      name: 'etcd',
      image: 'quay.io/a/etcd@sha256:0a',
      problem: 'it has no signature',
    },
    ['etcd: quay.io/a/etcd@sha256:0a: warning: it has no signature'],
  ],
  [
    'in an ISO names its bytes and the images that need them',
    {
      severity: 'error',
      code: 'verify.content',
      kind: 'content',
      path: '/a',
      offset: 2048,
      size: 10,
      images: Array.from({ length: 22 }, (_, index) => `i${index}`),
      problem: 'has other bytes',
    },
    [
      'content: /a: has other bytes',
      '  bytes 2048 to 2057',
      `  needed by ${Array.from({ length: 20 }, (_, index) => `i${index}`).join(', ')} and 2 more`,
    ],
  ],
];

describe('a problem', () => {
  test.each(CASES)('%s', (_what, problem, lines) => {
    expect(formatProblem(problem).split('\n')).toEqual(lines);
  });
});
