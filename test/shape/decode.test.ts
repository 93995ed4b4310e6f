import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import {
  decode,
  decodeJson,
  formatSteps,
  GO_RULES,
  JSON_RULES,
  YAML_RULES,
  type Decoded,
} from '../../src/shape/decode.ts';
import {
  defaulted,
  FILLED,
  FLAG,
  FREE,
  INTEGER,
  integerFrom,
  list,
  mapping,
  matching,
  oneOf,
  noted,
  optional,
  otherwise,
  parsed,
  partial,
  record,
  refine,
  TEXT,
  transform,
} from '../../src/shape/shape.ts';
import { toJsonSchema } from '../../src/shape/to-json-schema.ts';

const PORT = record({
  name: TEXT,
  port: integerFrom(1, 65535),
  kind: optional(oneOf('tcp', 'udp')),
  hosts: defaulted(list(FILLED), () => []),
});

const tell = ({ findings }: Decoded<unknown>) =>
  findings.map(({ code, path }) => `${formatSteps(path)}: ${code}`);

describe('a record', () => {
  it('has its members and defaults, and lacks absent optional members', () => {
    const { value, findings } = decode(PORT, { name: 'a', port: 1 });
    expect(findings).toEqual([]);
    expect({ ...value }).toEqual({ name: 'a', port: 1, hosts: [] });
  });

  it('reports every fault with its path', () => {
    const read = decode(PORT, { port: 0, kind: 'sctp', hosts: ['a', '', 3], ports: 1 });
    expect(tell(read)).toEqual([
      'ports: unknown',
      'name: missing',
      'port: value',
      'kind: value',
      'hosts[1]: value',
      'hosts[2]: type',
    ]);
    expect(read.value).toBeUndefined();
  });

  it('loses only the members that are wrong, if they are optional', () => {
    const { value } = decode(partial({ a: TEXT, b: FLAG }), { a: 1, b: true });
    expect({ ...value }).toEqual({ b: true });
  });

  it('has the default in place of a wrong value', () => {
    const { value, findings } = decode(PORT, { name: 'a', port: 1, hosts: 'b' });
    expect(findings.map(({ code }) => code)).toEqual(['type']);
    expect({ ...value }).toEqual({ name: 'a', port: 1, hosts: [] });
  });

  it('keeps, leaves out or refuses members that it does not name', () => {
    const read = (others: 'kept' | 'left-out' | 'refused') =>
      decode(partial({ a: TEXT }, { others }), { a: 'x', b: 1 });
    expect({ ...read('kept').value }).toEqual({ a: 'x', b: 1 });
    expect({ ...read('left-out').value }).toEqual({ a: 'x' });
    expect(tell(read('refused'))).toEqual(['b: unknown']);
  });

  it('treats the names of prototypes as data', () => {
    const text = '{"__proto__": {"a": 1}, "constructor": "c", "toString": "d"}';
    const refused = decodeJson(partial({ a: TEXT }), text);
    expect(tell(refused)).toEqual([
      '__proto__: unknown',
      'constructor: unknown',
      'toString: unknown',
    ]);
    const { value = {} } = decodeJson(mapping(FREE), text);
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor', 'toString']);
    expect(decode(partial({ constructor: TEXT }), {}).findings).toEqual([]);
  });
});

describe("Go's rules", () => {
  const shape = record({ fooBar: TEXT, k: optional(TEXT) });

  it('match members regardless of case, but an exact name goes before', () => {
    expect({ ...decode(shape, { FOOBAR: 'a' }, GO_RULES).value }).toEqual({ fooBar: 'a' });
    const both = { FOOBAR: 'a', fooBar: 'b', foobar: 'c' };
    expect({ ...decode(shape, both, GO_RULES).value }).toEqual({ fooBar: 'b' });
    expect({ ...decode(shape, { 'fooBar': 'a', '\u212a': 'x' }, GO_RULES).value }).toEqual({
      fooBar: 'a',
      k: 'x',
    });
    expect(tell(decode(shape, { FOOBAR: 'a' }, JSON_RULES))).toEqual([
      'FOOBAR: unknown',
      'fooBar: missing',
    ]);
  });

  it('read null as absent', () => {
    expect(tell(decode(shape, { fooBar: null, k: null }, GO_RULES))).toEqual(['fooBar: missing']);
    expect(tell(decode(shape, { fooBar: 'a', k: null }))).toEqual(['k: type']);
  });
});

describe('other shapes', () => {
  it('read null or a wrong value as another value', () => {
    const shape = list(otherwise(TEXT, ''));
    expect(decode(shape, ['a', null, 1])).toMatchObject({
      value: ['a', '', ''],
      findings: [{ path: [2], code: 'type' }],
    });
  });

  it('are refined and transformed', () => {
    const even = refine(INTEGER, (value) => (value % 2 === 0 ? undefined : 'is odd'));
    const shape = transform(list(even), (items) => items.length);
    expect(decode(shape, [2, 4])).toEqual({ value: 2, findings: [] });
    expect(decode(shape, [2, 3, 4])).toMatchObject({
      value: 2,
      findings: [{ path: [1], why: 'is odd' }],
    });
  });

  it('parse a scalar from its written text, if that is known, and see null only if they take it', () => {
    const seen = (value: unknown, written = ''): string => `${String(value)} ${written}`;
    const shape = partial({ one: parsed('one', seen, true), other: parsed('other', seen) });
    const rules = { ...YAML_RULES, writtenOf: (path: string) => `<${path}>` };
    expect(decode(shape, { one: null, other: null }, rules).value).toEqual({ one: 'null ' });
    expect(decode(shape, { one: 1, other: 'x' }, rules).value).toEqual({
      one: '1 <one>',
      other: 'x ',
    });
    const even = parsed('even', (value) => (value === 2 ? 2 : undefined));
    expect(decode(list(even), [1, 2])).toMatchObject({
      value: [2],
      findings: [{ path: [0], code: 'value', found: 1 }],
    });
  });

  it('note a value that they read, with the place that the whole has', () => {
    const shape = list(noted(TEXT, (text) => (text === 'a' ? 'is a' : undefined)));
    expect(decode(shape, ['a', 'b'], { ...YAML_RULES, path: ['top'] })).toMatchObject({
      value: ['a', 'b'],
      findings: [{ path: ['top', 0], code: 'noted', why: 'is a' }],
    });
  });

  it('know other names of members, of which a value has one', () => {
    const shape = partial({ port: TEXT }, { aliases: { ports: 'port' } });
    expect(decode(shape, { ports: 'a' })).toEqual({ value: { port: 'a' }, findings: [] });
    expect(decode(shape, { ports: 'a', port: 'b' })).toMatchObject({
      value: { port: 'a' },
      findings: [{ path: ['port'], why: 'duplicate field "port"' }],
    });
    expect(tell(decode(shape, { ports: 1 }))).toEqual(['ports: type']);
  });

  it('find an item that is twice in a list', () => {
    expect(tell(decode(list(TEXT, true), ['a', 'b', 'a']))).toEqual([': value']);
  });
});

describe('a JSON text', () => {
  it.each([
    ['is not JSON', '{'],
    ['is not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['has more than 16 levels', '['.repeat(17)],
  ])('%s', (why, text) => {
    expect(decodeJson(FREE, text)).toMatchObject({ findings: [{ code: 'syntax', why }] });
  });

  it('with a million faults has ten thousand findings', () => {
    const read = decode(
      list(TEXT),
      Array.from({ length: 1_000_000 }, () => 1),
    );
    expect(read.findings.length).toBe(10_000);
  });
});

describe('the JSON Schema of a shape', () => {
  const shape = record({
    a: TEXT,
    b: optional(integerFrom(0, 9)),
    c: optional(list(oneOf('x', 'y'), true)),
    d: optional(mapping(FLAG)),
    e: optional(matching(/^x+$/)),
    f: optional(FILLED),
    g: defaulted(FLAG, () => false),
  });
  const VALUES = ['', 'x', 'xx', 'q', 0, 9, 10, -1, 1.5, true, null, [], ['x'], ['x', 'x'], {}];
  const MORE = [...VALUES, ['q'], { k: true }, { k: 1 }];
  /** A generator of Park and Miller, so that every run has the same values. */
  const random = (() => {
    let state = 29;
    return (most: number): number => {
      state = (state * 48271) % 2147483647;
      return state % most;
    };
  })();

  it.each(['value', 'absent'] as const)(
    'accepts the documents that the shape accepts, of 5,000 random ones: null is %s',
    (nulls) => {
      const rules = { ...JSON_RULES, null: nulls };
      const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(
        toJsonSchema(shape, rules) as object,
      );
      const accepted = { good: 0, bad: 0 };
      for (let count = 0; count < 5000; count++) {
        const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].filter(() => random(5) === 0);
        const document: Readonly<Record<string, unknown>> = {
          ...(random(9) > 0 && { a: 'x' }),
          ...Object.fromEntries(names.map((name) => [name, MORE[random(MORE.length)]])),
        };
        // Go reads a required null as its zero value; our shapes require a value.
        if (nulls === 'absent' && JSON.stringify(document).includes('null')) continue;
        const isGood = decode(shape, document, rules).findings.length === 0;
        expect([document, isGood]).toEqual([document, validate(document)]);
        accepted[isGood ? 'good' : 'bad']++;
      }
      expect(Math.min(accepted.good, accepted.bad)).toBeGreaterThan(500);
    },
  );
});
