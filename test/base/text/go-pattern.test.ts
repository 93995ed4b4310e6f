import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import { compileGoPattern } from '../../../src/base/text/go-pattern.ts';

type Row = readonly [pattern: string, found: readonly string[], missed: readonly string[]];

const GRAPHICAL = String.fromCodePoint(...Array.from({ length: 94 }, (_, at) => 0x21 + at));

/** The tables of https://pkg.go.dev/regexp/syntax in their order, each line at least once. */
const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'single characters': [
    ['^.$', ['a', 'é', '😀'], ['', '\n', 'ab']],
    ['[xyz]', ['ay'], ['a']],
    ['[^xyz]', ['xa'], ['xyz']],
    [String.raw`\d`, ['a7'], ['a', '٣']],
    [String.raw`\D`, ['7a', '٣'], ['7']],
    ['[[:alpha:]]', ['1a'], ['1', 'é']],
    ['[[:^alpha:]]', ['1', 'é'], ['a']],
    [String.raw`\pN`, ['٣'], ['a']],
    [String.raw`\p{Greek}`, ['α'], ['a']],
    [String.raw`\PN`, ['a'], ['٣']],
    [String.raw`\P{Greek}`, ['a'], ['α']],
  ],
  'composites': [
    ['xy', ['axyb'], ['xay', 'x']],
    ['^(x|y)$', ['x', 'y'], ['xy']],
  ],
  'repetitions': [
    ['^x*$', ['', 'xxx'], ['a']],
    ['^x+$', ['x', 'xx'], ['']],
    ['^x?$', ['', 'x'], ['xx']],
    ['^x{2,3}$', ['xx', 'xxx'], ['x', 'xxxx']],
    ['^x{2,}$', ['xx', 'x'.repeat(1001)], ['x']],
    ['^x{2}$', ['xx'], ['x', 'xxx']],
    ['^x*?$', ['', 'xxx'], ['a']],
    ['^x+?$', ['x', 'xx'], ['']],
    ['^x??$', ['', 'x'], ['xx']],
    ['^x{2,3}?$', ['xx', 'xxx'], ['x', 'xxxx']],
    ['^x{2,}?$', ['xx', 'xxxx'], ['x']],
    ['^x{2}?$', ['xx'], ['x', 'xxx']],
    ['^x{1000}$', ['x'.repeat(1000)], ['x'.repeat(999)]],
    ['^x{,2}$', ['x{,2}'], ['x', 'xx']],
    ['^x{2,1$', ['x{2,1'], ['xx']],
  ],
  'grouping': [
    ['^(ab)+$', ['abab'], ['aab']],
    ['^(?P<name>ab)+$', ['abab'], ['aab']],
    ['^(?<name>ab)+$', ['abab'], ['aab']],
    ['^(?:ab)+$', ['abab'], ['aab']],
    ['^(a(?i)b)c$', ['abc', 'aBc'], ['Abc', 'abC']],
    ['^(?i:ab)c$', ['ABc'], ['ABC']],
    ['(?i)quay', ['QUAY.io', 'quay'], ['qay']],
    ['^(?i)s$', ['s', 'S', 'ſ'], ['z']],
    ['(?m)^b$', ['a\nb\nc'], ['ab']],
    ['(?s)a.b', ['a\nb'], ['ab']],
    ['^(?U)x*$', ['xxx'], ['a']],
    ['^(?is-m:a.b)$', ['A\nB'], ['A\nB\n', 'c\nA\nB']],
    ['^(?-i)a$', ['a'], ['A']],
    ['^(?i-s)a.$', ['Ab'], ['A\n']],
  ],
  'empty strings': [
    ['^b', ['b'], ['a\nb']],
    ['a$', ['a', 'ba'], ['a\n', 'a\nb']],
    [String.raw`(?m)\Ab`, ['bc'], ['a\nb']],
    [String.raw`\bb\b`, ['a b c', 'éb'], ['ab']],
    [String.raw`a\Bb`, ['ab'], ['a b']],
    [String.raw`(?m)a\z`, ['ba'], ['a\n', 'a\nb']],
  ],
  'escape sequences': [
    [String.raw`^\a\f\t\n\r\v$`, ['\x07\f\t\n\r\v'], ['aftnrv']],
    [String.raw`^\.\*\-\_\/\:\@$`, ['.*-_/:@'], ['a*-_/:@']],
    [String.raw`^\123\07$`, ['S\x07'], ['123']],
    [String.raw`^\x7F$`, ['\x7f'], ['x7F']],
    [String.raw`^\x{1F600}$`, ['😀'], ['x']],
    [String.raw`^\Qa.b*[\E+$`, ['a.b*[', 'a.b*[['], ['aabb']],
    [String.raw`^\Qa.b`, ['a.b'], ['aab']],
    [String.raw`^\Q\\E$`, ['\\'], ['']],
  ],
  'elements of character classes': [
    ['^[a]$', ['a'], ['b']],
    ['^[a-c]$', ['b'], ['d', '-']],
    ['^[]a]$', [']', 'a'], ['b']],
    ['^[^]a]$', ['b'], [']', 'a']],
    ['^[a-c-e]$', ['b', '-', 'e'], ['d']],
    [String.raw`^[\d]$`, ['1'], ['a']],
    [String.raw`^[^\d]$`, ['a'], ['1']],
    [String.raw`^[\D]$`, ['a'], ['1']],
    [String.raw`^[^\D]$`, ['1'], ['a']],
    ['^[[:digit:]x]$', ['1', 'x'], ['a', ':', 'd']],
    ['^[^[:digit:]]$', ['a'], ['1']],
    [String.raw`^[\pN\p{Greek}]$`, ['٣', 'α'], ['a']],
    [String.raw`^[^\p{Greek}]$`, ['a'], ['α']],
  ],
  'Perl character classes': [
    [String.raw`^\d\D$`, ['1a'], ['a1']],
    [String.raw`^\s{5}$`, ['\t\n\f\r '], ['\v\v\v\v\v', '\u{a0}'.repeat(5)]],
    [String.raw`^\S$`, ['\v', 'a'], [' ']],
    [String.raw`^\w+$`, ['aZ_09'], ['a-b', 'é']],
    [String.raw`^\W$`, ['-', 'é'], ['_']],
  ],
  'ASCII character classes': [
    ['^[[:alnum:]]+$', ['0Az'], ['_', 'é']],
    ['^[[:alpha:]]+$', ['Az'], ['0']],
    ['^[[:ascii:]]+$', ['\0\x7f'], ['é']],
    ['^[[:blank:]]+$', ['\t '], ['\n']],
    ['^[[:cntrl:]]+$', ['\0\x1f\x7f'], [' ']],
    ['^[[:digit:]]+$', ['09'], ['a']],
    ['^[[:graph:]]+$', [GRAPHICAL], [' ']],
    ['^[[:lower:]]+$', ['az'], ['A']],
    ['^[[:print:]]+$', [` ${GRAPHICAL}`], ['\t']],
    ['^[[:punct:]]+$', ['!/:@[`{~'], ['a', '0']],
    ['^[[:space:]]+$', ['\t\n\v\f\r '], ['a']],
    ['^[[:upper:]]+$', ['AZ'], ['a']],
    ['^[[:word:]]+$', ['aZ_09'], ['-']],
    ['^[[:xdigit:]]+$', ['09afAF'], ['g']],
  ],
};

describe.each(Object.entries(TABLES))('a Go regular expression with %s', (_, rows) => {
  it.each(rows)('%j finds what Go finds', (pattern, found, missed) => {
    const { test } = compileGoPattern(pattern);
    expect(found.filter((text) => !test(text))).toEqual([]);
    expect(missed.filter(test)).toEqual([]);
  });
});

const readRefusal = (pattern: string): ConfigError => {
  try {
    compileGoPattern(pattern);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error(`${pattern} is taken`);
};

describe('a pattern that Go refuses', () => {
  it.each([
    [String.raw`a(b)\1`, String.raw`invalid escape sequence "\1" at character 5`],
    [String.raw`\\1\1`, String.raw`invalid escape sequence "\1" at character 4`],
    [String.raw`(?<n>a)\k<n>`, String.raw`invalid escape sequence "\k" at character 8`],
    ['a(?=b)', 'invalid or unsupported Perl syntax "(?=" at character 2'],
    ['a(?!b)', 'invalid or unsupported Perl syntax "(?!" at character 2'],
    ['a(?<=b)', 'invalid named capture "(?<=b)" at character 2'],
    ['a(?<!b)', 'invalid named capture "(?<!b)" at character 2'],
    ['a(?>b)', 'invalid or unsupported Perl syntax "(?>" at character 2'],
  ])('%j, which needs backtracking, is refused with its place and a hint', (pattern, problem) => {
    expect(readRefusal(pattern)).toMatchObject({
      code: 'pattern.malformed',
      message: `"${pattern}" is not a Go regular expression: ${problem}`,
      hint: 'Go has no lookaround and no backreferences: write the alternatives out',
    });
  });

  it.each([
    ['a(b)(c', 'missing closing ) at character 5'],
    ['a)b)', 'unexpected ) at character 2'],
    ['a[b', 'missing closing ] "[b" at character 2'],
    ['x[z-a]', 'invalid character class range "z-a" at character 3'],
    ['a[[:foo:]]', 'invalid character class range "[:foo:]" at character 3'],
    [String.raw`é\p{Foo}`, String.raw`invalid character class range "\p{Foo}" at character 2`],
    ['x{1001}', 'invalid repeat count "{1001}" at character 2'],
    ['x{2,1}', 'invalid repeat count "{2,1}" at character 2'],
    ['*', 'missing argument to repetition operator "*" at character 1'],
    ['a|*', 'missing argument to repetition operator "*" at character 3'],
    ['a**', 'invalid nested repetition operator "**" at character 2'],
    ['a++', 'invalid nested repetition operator "++" at character 2'],
    ['(?P<x y>a)', 'invalid named capture "(?P<x y>" at character 1'],
    ['(?i)(?i', 'invalid or unsupported Perl syntax "(?i" at character 5'],
    ['(?x)a', 'invalid or unsupported Perl syntax "(?x" at character 1'],
    [String.raw`a\Z`, String.raw`invalid escape sequence "\Z" at character 2`],
    [String.raw`\C`, String.raw`invalid escape sequence "\C" at character 1`],
    [String.raw`\E`, String.raw`invalid escape sequence "\E" at character 1`],
    [String.raw`\x{110000}`, String.raw`invalid escape sequence "\x{110000" at character 1`],
    ['a\\', 'trailing backslash at end of expression at character 2'],
  ])('%j is refused with its place', (pattern, problem) => {
    expect(readRefusal(pattern).message).toBe(
      `"${pattern}" is not a Go regular expression: ${problem}`,
    );
  });

  it.each([
    ['of 1001 groups in each other', `${'('.repeat(1001)}${')'.repeat(1001)}`, 'nests too deeply'],
    ['of a million repetitions', '(xx?){1000}'.repeat(1000), 'too large'],
  ])('%s is refused', (_, pattern, problem) => {
    expect(readRefusal(pattern).message).toContain(` Go regular expression: expression ${problem}`);
  });
});

it.each([
  ['(a+)+$', `${'a'.repeat(50_000)}b`],
  ['(x+x+)+y', 'x'.repeat(50_000)],
  ['(a|aa)*[bc]$', `${'a'.repeat(50_000)}d`],
  ['[ab]*a[ab]{30}[cd]', 'ab'.repeat(25_000)],
])('%j, which takes a backtracking engine forever, is searched in linear time', (pattern, text) => {
  expect(compileGoPattern(pattern).test(text)).toBe(false);
});
