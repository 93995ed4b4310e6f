import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, parseDocument } from 'yaml';
import {
  fillTemplate,
  findValueFault,
  holesOf,
  parseTemplate,
  placeHoles,
} from '../../../src/sites/sources/template.ts';
import { findContextFault, normalizeValue } from '../../../src/sites/sources/holes.ts';

/** What a reader makes of a filled template, or why the value is refused. */
function fill(
  text: string,
  value: string,
): { readonly tree: unknown } | { readonly fault: string } {
  const template = placeHoles(parseTemplate(text));
  expect(template.faults).toEqual([]);
  for (const { context, indent } of holesOf(template)) {
    const fault = context && findContextFault(normalizeValue(value), context, indent);
    if (fault !== undefined) return { fault };
  }
  const filled = fillTemplate(template, new Map([['v', value]]));
  expect(parseDocument(filled, { uniqueKeys: false }).errors, filled).toEqual([]);
  return {
    tree: parse(filled, { schema: 'failsafe', logLevel: 'silent', uniqueKeys: false }) as unknown,
  };
}

const HOSTILE = [
  'x"\nreleaseRegistry: "evil.example.com',
  "x'\nreleaseRegistry: 'evil.example.com",
  'x\nreleaseRegistry: evil.example.com',
  'x\n  other: evil.example.com',
  'x\n\n# y',
  'C:\\new "folder" #1',
  "it's",
  'a: b',
  'a #b',
  '#b',
  '- a',
  '--- a',
  '---\na',
  '...',
  '| a',
  '&a b',
  '*a',
  '!t b',
  '{a: b}, c: d',
  'a, b: c',
  ']',
  '{{ v }}',
  '  indented\nless',
  '\n\n    x\n  y',
  'a\t# b',
  '%a',
  '? a',
  '"quoted" more',
];

const value = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string(),
  fc
    .array(
      fc.constantFrom(
        'a',
        ' ',
        '\n',
        ':',
        '#',
        '-',
        '"',
        "'",
        '{',
        '}',
        '[',
        ',',
        '\\',
        '\t',
        '&x',
        '*x',
        '|',
        '>',
      ),
    )
    .map((parts) => parts.join('')),
);
const safe = value.filter((text) => findValueFault(text) === undefined);

describe('a value that is put into a hole stays inside it', () => {
  it('in double quotes, unchanged', () => {
    fc.assert(
      fc.property(safe, (text) => {
        const wanted = { tree: { a: { b: `<${normalizeValue(text)}>` }, c: 'd' } };
        expect(fill('a:\n  b: "<{{ v }}>"\nc: d\n', text)).toEqual(wanted);
        expect(fill('{"a": {"b": "<{{ v }}>"}, "c": "d"}', text)).toEqual(wanted);
      }),
    );
  });

  it('in single quotes, or it is refused for its line breaks', () => {
    fc.assert(
      fc.property(safe, (text) => {
        const normal = normalizeValue(text);
        expect(fill("a:\n  b: '<{{ v }}>'\nc: d\n", text)).toEqual(
          normal.includes('\n')
            ? { fault: 'has a line break' }
            : { tree: { a: { b: `<${normal}>` }, c: 'd' } },
        );
      }),
    );
  });

  it('in a block scalar, or it is refused for its first character', () => {
    fc.assert(
      fc.property(safe, (text) => {
        const normal = normalizeValue(text);
        const tree = { a: { b: `${normal}\nend\n` }, c: 'd' };
        const filled = fill('a:\n  b: |\n    {{ v }}\n    end\nc: d\n', text);
        if (/^\s/.test(normal)) expect(filled).toEqual({ fault: 'begins with white space' });
        else if (normal !== '') expect(filled).toEqual({ tree });
        expect(fill('a:\n  b: |\n    x{{ v }}\n    end\nc: d\n', text)).toEqual({
          tree: { a: { b: `x${normal}\nend\n` }, c: 'd' },
        });
      }),
    );
  });

  it('in a comment, which has no meaning', () => {
    fc.assert(
      fc.property(safe, (text) => {
        expect(fill('a: b # {{ v }}\nc: d\n', text)).toEqual({ tree: { a: 'b', c: 'd' } });
      }),
    );
  });

  it.each([
    ['a:\n  b: x{{ v }}y\nc: d\n', (text: string) => ({ a: { b: `x${text}y` }, c: 'd' })],
    ['a: {b: x{{ v }}y}\nc: d\n', (text: string) => ({ a: { b: `x${text}y` }, c: 'd' })],
    ['a:\n  - x{{ v }}y\nc: d\n', (text: string) => ({ a: [`x${text}y`], c: 'd' })],
    ['x{{ v }}y: b\nc: d\n', (text: string) => ({ [`x${text}y`]: 'b', c: 'd' })],
  ])('within a plain text, or it is refused: %j', (template, build) => {
    fc.assert(
      fc.property(safe, (text) => {
        const filled = fill(template, text);
        if ('tree' in filled) expect(filled.tree).toEqual(build(normalizeValue(text)));
      }),
    );
  });

  it.each([
    'a:\n  b: {{ v }}\nc: d\n',
    'a:\n  b:\n    {{ v }}\nc: d\n',
    'a: {b: {{ v }}}\nc: d\n',
    'a: {b: [\n  {{ v }}\n ]}\nc: d\n',
  ])('as a whole node, without a change to its neighbours: %j', (template) => {
    fc.assert(
      fc.property(safe, (text) => {
        const filled = fill(template, text);
        if ('tree' in filled)
          expect(filled.tree).toEqual({ a: { b: expect.anything() as unknown }, c: 'd' });
      }),
    );
  });
});

describe('a value that is not a text', () => {
  const lists: readonly (readonly [string, string, unknown])[] = [
    ['a: {{ v }}\n', '[x, y]', { a: ['x', 'y'] }],
    ['a: {{ v }} # why\n', '{b: c}', { a: { b: 'c' } }],
    ['a: {{ v }}\n', '"x: y"', { a: 'x: y' }],
    ['a:\n  {{ v }}\nb: c\n', 'x:\n- y\n- z: 1\n', { a: { x: ['y', { z: '1' }] }, b: 'c' }],
    ['# manifest\n{{ v }}\n', 'x: # a\n  y: z', { x: { y: 'z' } }],
    ['a: {{ v }}\n', '28', { a: '28' }],
  ];
  it.each(lists)('can be a whole node: %j %j', (template, text, tree) => {
    expect(fill(template, text)).toEqual({ tree });
  });

  it.each([
    ['a: {{ v }}\n', 'x:\n- y'],
    ['a:\n  {{ v }}\n', 'x: 1\n---\ny: 2'],
    ['a: {{ v }}\n', '{b: &x c}'],
    ['a: {{ v }}\n', '[x'],
    ['{{ v }}: b\n', 'x: 1\ny'],
    ['a: {{ v }}\n', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['a:\n  {{ v }}\n', '- '.repeat(100_000)],
  ])('is refused if it could leave its hole: %j %.20j', (template, text) => {
    expect(fill(template, text)).toEqual({ fault: 'cannot be a plain YAML text' });
  });
});

describe('a template is refused', () => {
  it.each([
    ['a: &{{ v }} b\n', 1, 'hole "v" is not inside a text'],
    ['a: 1\nb: *{{ v }}\n', 2, 'hole "v" is not inside a text'],
    ['a:\n  {{ v }}\n  b: c\n', 2, 'is not YAML with a word in place of each hole'],
    ['a: "{{ v }}\n', 1, 'is not YAML with a word in place of each hole'],
  ])('if no value could be put in: %j', (text, line, problem) => {
    const { faults } = placeHoles(parseTemplate(text));
    expect(faults).toEqual([
      { line: expect.any(Number) as number, problem: expect.stringContaining(problem) as string },
    ]);
    expect(faults[0]?.line).toBeGreaterThanOrEqual(line);
  });
});
