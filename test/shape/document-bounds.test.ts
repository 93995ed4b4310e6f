import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineCounter, parseDocument, stringify } from 'yaml';
import { findYamlExcess, readYamlTokens, YamlExcess } from '../../src/shape/parse-text.ts';
import { runs } from '../support/properties.ts';

const DEEP = 100_000;
const TOO_DEEP = 'this is nested too deep';

describe('a YAML text that would exhaust the stack of its parser', () => {
  it.each([
    ['lists', '['.repeat(DEEP)],
    ['mappings', '{a: '.repeat(DEEP)],
    ['lists with closing brackets in quotes', '["]]", '.repeat(DEEP)],
    ['lists on one line', `${'- '.repeat(DEEP)}a`],
    ['lists on one line, with tabs', `${'-\t'.repeat(DEEP)}a`],
    ['values of values without a space between them', `{"a":1,"a"${':"a"'.repeat(DEEP)}}`],
    ['keys of keys', `${'? '.repeat(DEEP)}a`],
    [
      'lines, each further right',
      Array.from({ length: 300 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
    ],
    ['JSON', '[{"a":'.repeat(DEEP)],
  ])('is found before it is parsed: %s', (_, text) => {
    const excess = findYamlExcess(text);
    expect(excess?.message).toBe(TOO_DEEP);
    expect(excess?.offset).toBeLessThan(100_000);
  });

  it('is reported with its line', () => {
    const lines = new LineCounter();
    const excess = findYamlExcess(`a: 1\nb: ${'['.repeat(300)}`, lines);
    expect(lines.linePos(excess?.offset ?? 0).line).toBe(2);
  });
});

describe('a YAML text with aliases', () => {
  it('is refused if resolving them takes minutes, and passes with as many as people write', () => {
    expect(findYamlExcess('&a [*a,*a]: p\n'.repeat(800))?.message).toBe(
      'there are too many aliases',
    );
    const many = Array.from({ length: 40_000 }, (_, at) => `&b${at} x,*b${at}`).join(',');
    expect(findYamlExcess(`a: [${many}]`)?.message).toBe('there are too many aliases');
    expect(findYamlExcess(`a: &a x\n${'- *a\n'.repeat(100)}`)).toBeUndefined();
    expect(() => [...readYamlTokens(`a: [${many}]`, { hasOwnAliases: true })]).not.toThrow();
  });
});

describe('a YAML text that a person wrote', () => {
  it('passes at any length and at any depth that a person reads', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 20 }), fc.boolean(), (value, isFlow) => {
        const text = stringify(value, isFlow ? { collectionStyle: 'flow' } : {});
        expect(findYamlExcess(text)).toBeUndefined();
      }),
      { numRuns: runs(200) },
    );
  });

  it('passes when it has many brackets that do not nest', () => {
    expect(findYamlExcess('- [a, {b: c}]\n'.repeat(5000))).toBeUndefined();
  });

  it('is read as the parser itself reads its tokens', () => {
    const text = 'a: [1, {b: c}]\nd: |\n  text\n';
    const [document, ...others] = readYamlTokens(text);
    expect(others).toEqual([]);
    expect(document?.type).toBe('document');
    expect(parseDocument(text).errors).toEqual([]);
  });
});

describe('a YAML text with more lexemes than its reader allows', () => {
  it('is refused at the place at which it has too many', () => {
    const read = (): unknown => [...readYamlTokens('- a\n'.repeat(1000), { most: 100 })];
    expect(read).toThrow(YamlExcess);
    expect(read).toThrow('there are too many values');
  });
});
