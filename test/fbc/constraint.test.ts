import fc from 'fast-check';
import { compare } from 'semver';
import { describe, expect, test } from 'vitest';
import {
  compareBuilds,
  compareBundleVersions,
  parseBundleVersion,
  parseVersionRange,
} from '../../src/fbc/version.ts';
import { completeVersion, parseConstraint } from '../../src/fbc/constraint.ts';

type Row = readonly [constraint: string, accepted: readonly string[], refused: readonly string[]];

const ROWS: readonly Row[] = [
  ['>=1.2.0', ['1.2.0', '1.10.0', '2.0.0'], ['1.1.9', '0.9.0']],
  ['=>1.2.0', ['1.2.0'], ['1.1.9']],
  ['>1.2.0', ['1.2.1'], ['1.2.0']],
  ['<1.2.0', ['1.1.9'], ['1.2.0']],
  ['<=1.2.0', ['1.2.0'], ['1.2.1']],
  [' <=1.2.0', ['1.2.0'], ['1.2.1']],
  ['=1.2.0', ['1.2.0', '1.2.0+7'], ['1.2.1']],
  ['1.2.0', ['1.2.0'], ['1.2.1']],
  ['!=1.2.0', ['1.2.1'], ['1.2.0', '1.2.0+7']],
  ['~1.2.3', ['1.2.3', '1.2.9'], ['1.2.2', '1.3.0']],
  ['~1.2', ['1.2.0', '1.2.9'], ['1.3.0']],
  ['~1', ['1.0.0', '1.9.0'], ['2.0.0']],
  ['^1.2.3', ['1.2.3', '1.9.0'], ['1.2.2', '2.0.0']],
  ['^0.2.3', ['0.2.3', '0.2.9'], ['0.3.0', '1.0.0']],
  ['^0.0.3', ['0.0.3'], ['0.0.4', '0.1.0']],
  ['^0.0', ['0.0.0', '0.0.9'], ['0.1.0']],
  ['^0', ['0.0.0', '0.9.0'], ['1.0.0']],
  ['<=1.2', ['1.2.0', '1.2.99', '0.1.0'], ['1.3.0']],
  ['<=1', ['1.99.0'], ['2.0.0']],
  ['>=1.2', ['1.2.0'], ['1.1.99']],
  ['>1.2', ['1.3.0', '2.0.0'], ['1.2.5', '1.2.0', '0.9.0']],
  ['>11', ['12.0.0'], ['11.1.0']],
  ['=1.2', ['1.2.0', '1.2.7'], ['1.3.0', '1.1.0']],
  ['!=1.2', ['1.3.0', '2.2.0'], ['1.2.0', '1.2.7']],
  ['!=1', ['2.0.0'], ['1.5.0']],
  ['1.2.x', ['1.2.7'], ['1.3.0']],
  ['*', ['0.0.1', '9.9.9'], ['1.0.0-rc.1']],
  ['>=1.0.0 <=2.0.0', ['1.0.0', '2.0.0'], ['2.0.1', '0.9.0']],
  ['>=1.0.0, <2.0.0', ['1.5.0'], ['2.0.0']],
  ['>=1.0.0,<2.0.0', ['1.5.0'], ['2.0.0']],
  ['<1.0.0 || >=2.0.0', ['0.9.0', '2.0.0'], ['1.5.0']],
  ['1.0.0 - 2.0.0', ['1.0.0', '2.0.0'], ['2.0.1']],
  ['>= v1.2.0', ['1.2.0'], ['1.1.0']],
  ['>=0.8.0 <=0.8.0', ['0.8.0+0.1634606167.p', '0.8.0'], ['0.8.1']],
  ['>=1.34.1', ['1.34.1'], ['1.47.1-5', '4.17.0-202410011205']],
  ['>=1.34.1-5', ['1.47.1-5', '1.34.1-5', '1.34.1'], ['1.34.1-4']],
  ['>=1.0.0 <2.0.0-0', ['1.5.0-rc.1'], ['2.0.0']],
  ['>=1.0.0-0 || >=3.0.0', ['3.1.0-rc.1'], ['0.9.0-alpha']],
  ['>=3.0.0 || <1.0.0-0', ['0.9.0-rc.1'], ['3.1.0-rc.1']],
];

describe('a version constraint', () => {
  test.each(ROWS)('%s accepts exactly the versions that it should', (text, accepted, refused) => {
    const constraint = parseConstraint(text);
    expect(accepted.filter((version) => !constraint.accepts(version))).toEqual([]);
    expect(refused.filter((version) => constraint.accepts(version))).toEqual([]);
  });

  test.each([
    '',
    '>=',
    'latest',
    '>=1.2.0 || ',
    '>=1.2.3.4',
    '>=1.0.0<2.0.0',
    '>=1..2',
    '>=1.0.0-',
  ])('refuses %j', (text) => {
    expect(() => parseConstraint(text)).toThrow(
      expect.objectContaining({ code: 'catalog.constraint' }),
    );
  });

  test('accepts only semantic versions', () => {
    expect(
      ['', 'v1.0.0', '1.0', '01.0.0', '1.0.0-01'].filter(parseConstraint('*').accepts),
    ).toEqual([]);
  });

  test('accepts bounds without minor and patch, and with a "v"', () => {
    expect(['1', '1.2', 'v1.2.3-4+5', '1.2.x', '', 'a', '1.2.3.4'].map(completeVersion)).toEqual([
      '1.0.0',
      '1.2.0',
      '1.2.3-4+5',
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

const number = fc.nat(12).map(String);
const word = fc.constantFrom('0', '1', '9', '10', 'a', 'b', 'rc', '202410011205', '-', 'A');
const version = fc
  .tuple(number, number, number, fc.array(word, { maxLength: 3 }))
  .map(([major, minor, patch, words]) => {
    const core = `${major}.${minor}.${patch}`;
    return words.length === 0 ? core : `${core}-${words.join('.')}`;
  });

function read(text: string): NonNullable<ReturnType<typeof parseBundleVersion>> {
  const parsed = parseBundleVersion(text);
  if (parsed === undefined) throw new Error(`${text} is not a valid version`);
  return parsed;
}

describe('the order of versions', () => {
  test('follows semantic versioning', () => {
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(Math.sign(compareBundleVersions(read(a), read(b)))).toBe(compare(a, b));
      }),
    );
  });

  test('holds for numbers of any length', () => {
    const long = '9007199254740993';
    expect(compareBundleVersions(read(`1.0.0-${long}`), read('1.0.0-9007199254740992'))).toBe(1);
    expect(compareBundleVersions(read(`${long}.0.0`), read('9007199254740992.0.0'))).toBe(1);
  });

  test('sorts rebuilds of a version, though none has precedence', () => {
    const [older, newer] = [read('0.8.0+0.1634606167.p'), read('0.8.0+0.1645735250.p')];
    expect(compareBundleVersions(older, newer)).toBe(0);
    expect(compareBuilds(older, newer)).toBeLessThan(0);
    expect(compareBuilds(read('1.0.0+010'), read('1.0.0+9'))).toBeGreaterThan(0);
  });
});

describe('a range that a bundle requires', () => {
  test.each<Row>([
    ['>=1.2.0 <2.0.0', ['1.2.0', '1.9.0', '2.0.0-rc.1'], ['2.0.0', '1.2.0-rc.1']],
    ['<1.0.0 || >=2.0.0', ['0.9.0', '2.0.0'], ['1.0.0']],
    ['1.2.3', ['1.2.3', '1.2.3+4'], ['1.2.4']],
    ['==1.2.3', ['1.2.3'], ['1.2.4']],
    ['!1.2.3', ['1.2.4'], ['1.2.3']],
    ['1.2.x', ['1.2.0', '1.2.9'], ['1.3.0', '1.1.9']],
    ['1.x', ['1.0.0', '1.9.9'], ['2.0.0']],
    ['>1.2.x', ['1.3.0'], ['1.2.9']],
    ['<=1.2.x', ['1.2.9'], ['1.3.0']],
    ['!=1.2.x', ['1.3.0', '1.1.0'], ['1.2.5']],
    ['> 1.0.0 < 2.0.0', ['1.5.0'], ['2.0.0']],
  ])('%s accepts exactly the versions that it should', (text, accepted, refused) => {
    const accepts = parseVersionRange(text);
    expect(accepted.map((found) => accepts?.(read(found)))).toEqual(accepted.map(() => true));
    expect(refused.map((found) => accepts?.(read(found)))).toEqual(refused.map(() => false));
  });

  test.each(['', '>=', '~1.2.3', '1.2', '>=1.0.0 ||', 'any'])('is not written as %j', (text) => {
    expect(parseVersionRange(text)).toBeUndefined();
  });
});

test('long runs of spaces are parsed in linear time', () => {
  const spaces = ' '.repeat(200_000);
  expect(parseVersionRange(`>=1.0.0${spaces}<${spaces}`)).toBeUndefined();
  expect(() => parseConstraint(`>=1.0.0${spaces}<${spaces}`)).toThrow('is expected');
  expect(parseVersionRange(`>=1.0.0${spaces}<${spaces}2.0.0`)?.(read('1.5.0'))).toBe(true);
});

test('a constraint of any length ends at once: reading one may take the square of its length', () => {
  expect(() => parseConstraint('1'.repeat(1_000_000))).toThrow(/has 1000000 characters$/);
});
