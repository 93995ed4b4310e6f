import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { formatNetworkConfig } from '../../src/nmstate/format.ts';
import { FREE, record, type Plain } from '../../src/shape/shape.ts';
import { readSiteDocument } from '../../src/sites/documents.ts';

/** Reads as the files of sites are read. */
function read(text: string): Plain {
  const indented = text.replaceAll(/^(?=.)/gm, '  ');
  const file = { path: 'a.yaml', bytes: Buffer.from(`a:\n${indented}`), shownAs: 'a.yaml' };
  const { value, problems } = readSiteDocument(file, record({ a: FREE }));
  expect(problems).toEqual([]);
  return value.a ?? null;
}

describe('the normal form of a network configuration', () => {
  it('sorts keys, does not indent lists, and quotes strings that YAML 1.1 would misread', () => {
    const text = formatNetworkConfig({
      interfaces: [
        {
          'name': 'eth0',
          'type': 'ethernet',
          'state': 'up',
          'mac-address': '00:00:00:00:00:00',
          'ipv4': {
            enabled: true,
            dhcp: false,
            address: [{ 'prefix-length': 23, 'ip': '192.168.122.2' }],
          },
        },
      ],
    });
    expect(text).toBe(
      [
        'interfaces:',
        '- ipv4:',
        '    address:',
        '    - ip: 192.168.122.2',
        '      prefix-length: 23',
        '    dhcp: false',
        '    enabled: true',
        '  mac-address: "00:00:00:00:00:00"',
        '  name: eth0',
        '  state: up',
        '  type: ethernet',
        '',
      ].join('\n'),
    );
  });

  it.each([
    ['52:54:00:aa:bb:cc', '52:54:00:aa:bb:cc'],
    ['52:54:00:11:22:33', '"52:54:00:11:22:33"'],
    ['2001:db8::1', '2001:db8::1'],
    ['::1', '::1'],
    ['fe80::', "'fe80::'"],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['802.3ad', '802.3ad'],
    ['1.5', '"1.5"'],
    ['010', '"010"'],
    ['0x1f', '"0x1f"'],
    ['1_000', '"1_000"'],
    ['off', '"off"'],
    ['null', '"null"'],
    ['', '""'],
    ['2026-01-02', '"2026-01-02"'],
    ["it's: a", "'it''s: a'"],
    ['- a', "'- a'"],
    ['#a', "'#a'"],
    ['a #b', "'a #b'"],
    ['two\nlines', '"two\\nlines"'],
    ['\u0085', '"\\u0085"'],
  ])('writes %j as %s', (value, text) => {
    expect(formatNetworkConfig({ a: value })).toBe(`a: ${text}\n`);
  });

  it('writes empty collections on one line', () => {
    expect(formatNetworkConfig({ a: [], b: {}, c: null, d: [[], {}, [1, [2]]] })).toBe(
      'a: []\nb: {}\nc: null\nd:\n- []\n- {}\n- - 1\n  - - 2\n',
    );
  });
});

const TEXT = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom(...Array.from('0123456789abcdefxo:.-+_ #\'"{}[],&*!|>%@`~=<?yn\n\t')),
  }),
  fc.constantFrom('yes', 'No', 'ON', '~', '<<', '.inf', '.NaN', '0o17', '0b1', '1e3', '1:30', '-'),
);

const TREE = fc.letrec<{ tree: Plain; map: Plain }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    TEXT,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('tree')),
    tie('map'),
  ),
  map: fc.dictionary(TEXT, tie('tree')),
}));

/** Without prototypes and with keys in one order, as JSON has them. */
const plain = (value: Plain): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );

describe('the normal form of any tree', () => {
  it('is read as the same tree by our own reader', () => {
    fc.assert(
      fc.property(TREE.map, (tree) => {
        fc.pre(plain(tree) !== '{}');
        expect(plain(read(formatNetworkConfig(tree)))).toBe(plain(tree));
      }),
    );
  });

  it.each(['1.1', '1.2'] as const)('is read as the same tree by a reader of YAML %s', (version) => {
    fc.assert(
      fc.property(TREE.map, (tree) => {
        const text = formatNetworkConfig(tree);
        // This reader takes e0 for a number without digits, which no other does.
        fc.pre(version === '1.2' || !/(?:^| )[-+]?\.?[eE][-+]?\d/m.test(text));
        const other = parse(text, { version, merge: true, prettyErrors: false }) as Plain;
        expect(plain(other)).toBe(plain(tree));
      }),
    );
  });

  it('is its own normal form', () => {
    fc.assert(
      fc.property(TREE.map, (tree) => {
        fc.pre(plain(tree) !== '{}');
        const text = formatNetworkConfig(tree);
        expect(formatNetworkConfig(read(text))).toBe(text);
      }),
    );
  });
});
