import { Parser } from 'yaml';
import { describe, expect, it } from 'vitest';
import {
  composeDocuments,
  parse,
  parseAllDocuments,
  parseDocument,
} from '../../src/shape/parse-text.ts';

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

  it('does not change the stacks of other errors, whether it succeeds or throws', () => {
    const limit = Error.stackTraceLimit;
    expect(() => parse(FAULTY)).toThrow();
    expect(parse('a: 1')).toEqual({ a: 1 });
    expect(Error.stackTraceLimit).toBe(limit);
    expect(limit).toBeGreaterThan(0);
  });
});

describe('parsing YAML whose cost in the library grows with the square of its size', () => {
  it.each(['1.1', '1.2'] as const)(
    'refuses 10,000 keys that are lists, and reads 20,000 ordered keys, in bounded time: YAML %s',
    (version) => {
      const keys = Array.from({ length: 10_000 }, (_, at) => `[&b${at} x]: 1\n`).join('');
      const ordered = Array.from({ length: 20_000 }, (_, at) => `a${at}: b`).join();
      const options = { version, uniqueKeys: false };
      const { user } = process.cpuUsage();
      expect(() => parse(keys, options)).toThrow('all keys must be strings');
      const read = parse(`a: !!omap [${ordered}]`, { ...options, logLevel: 'error' });
      expect(read).toMatchObject({ a: expect.arrayContaining([{ a19999: 'b' }]) as unknown });
      expect(process.cpuUsage().user - user).toBeLessThan(8_000_000);
    },
  );
});

describe('parsing YAML 1.1', () => {
  it("reads addresses and times as text, as Go's parser does: it has no numbers of base 60", () => {
    const text = 'mac: 52:54:00:12:34:56\ntime: 1:30\nfloat: 1:30.5\nnumber: 1_000\n';
    const expected = { mac: '52:54:00:12:34:56', time: '1:30', float: '1:30.5', number: 1000 };
    expect(parse(text, { version: '1.1' })).toEqual(expected);
    expect(parseDocument(text, { version: '1.1' }).toJS()).toEqual(expected);
  });
});
