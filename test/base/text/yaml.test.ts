import { Parser } from 'yaml';
import { describe, expect, it } from 'vitest';
import {
  composeDocuments,
  parse,
  parseAllDocuments,
  parseDocument,
} from '../../../src/base/text/yaml.ts';

/** A fault for each quote but the first. */
const FAULTY = `a: {${'""'.repeat(500)}}\n`;

describe('parsing YAML with many faults', () => {
  it.each([
    ['parseDocument', () => [parseDocument(FAULTY)]],
    ['parseAllDocuments', () => [...parseAllDocuments(FAULTY)]],
    ['composeDocuments', () => composeDocuments(new Parser().parse(FAULTY), FAULTY.length, {})],
  ])('records no stack for any of them: %s', (_name, read) => {
    const faults = read().flatMap(({ errors }) => errors);
    expect(faults.length).toBeGreaterThan(400);
    expect(faults.filter(({ stack }) => /\n\s+at /.test(stack ?? ''))).toEqual([]);
  });

  it('leaves the stacks of other errors as they were, whether it succeeds or throws', () => {
    const limit = Error.stackTraceLimit;
    expect(() => parse(FAULTY)).toThrow();
    expect(parse('a: 1')).toEqual({ a: 1 });
    expect(Error.stackTraceLimit).toBe(limit);
    expect(limit).toBeGreaterThan(0);
  });
});
