import { expect, it } from 'vitest';
import { parseRange } from '../../src/base/http/range.ts';
import { findNoProxyFaults } from '../../src/base/http/typed-proxy.ts';
import { readSecretSource } from '../../src/config/secrets.ts';
import { readSshKeys, readTrustBundle } from '../../src/keys/index.ts';
import { maskUserInfo, createReport } from '../../src/shape/report.ts';
import { parseText } from '../../src/shape/parse-text.ts';
import { normalizeValue } from '../../src/sites/sources/holes.ts';
import { parseTemplate } from '../../src/sites/sources/template.ts';
import { readCsvTable, readYamlTable } from '../../src/table/index.ts';

/** Seconds of the processor: the least of three runs, because the machine has other work. */
function costOf(run: () => unknown): number {
  const costs = [1, 2, 3].map(() => {
    const start = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1e6;
  });
  return Math.min(...costs);
}

const SIZE = 20_000;
/** Work that takes less is not measured well. */
const FLOOR = 0.1;

function report(text: string): unknown {
  const { lines } = parseText(text);
  const publicKeys = new Set<string>();
  return createReport({ text, lines, file: 'a.yaml', publicKeys, offsetOf: () => 0 })('', 'bad');
}

const readSecret = (value: string): unknown =>
  readSecretSource('env:A', { directory: '.', env: { A: value } });

const many = (text: string, size: number): string => text.repeat(size / text.length);

const blanksOf = (size: number): string => many(' ', size);

it.each<readonly [string, (size: number) => unknown]>([
  ['an SSH key with blanks within', (size) => readSshKeys(`a${blanksOf(size)}b`)],
  ['an SSH key of many words', (size) => readSshKeys(`${many('AAAA ', size)}b`)],
  ['a PEM line with blanks within', (size) => readTrustBundle(`a${blanksOf(size)}b`)],
  ['a secret with blanks within', (size) => readSecret(`a${blanksOf(size)}b`)],
  ['a column with line breaks within', (size) => normalizeValue(`a${many('\n', size)}b`)],
  ['a placeholder that is never closed', (size) => parseTemplate(`{{${blanksOf(size / 20)}`)],
  ['a range of blanks', (size) => parseRange(`bytes=${blanksOf(size)}x`, 1)],
  ['a line of blanks in a report', (size) => report(`${blanksOf(size)}!`)],
  ['a line of the word "pass" in a report', (size) => report(`- ${many('pass', size)}`)],
  ['a value of slashes in a report', (size) => maskUserInfo(many('//', size))],
  ['a value of pairs in a report', (size) => maskUserInfo(many('a:b=', size))],
  ['a no_proxy list', (size) => findNoProxyFaults(many('a.example,', size * 4))],
])('%s is read in time that grows with its size', (_, read) => {
  // The square would be sixteen times as much.
  expect(costOf(() => read(4 * SIZE))).toBeLessThan(6 * costOf(() => read(SIZE)) + FLOOR);
});

it('a table in YAML may be indented by 100,000 blanks', () => {
  const indent = blanksOf(100_000);
  const { rows } = readYamlTable(`${indent}- name: a\n${indent}  ip: b\n${indent}- name: c\n`);
  expect(rows.map(({ line, cells }) => [line, Object.fromEntries(cells)])).toEqual([
    [1, { name: 'a', ip: 'b' }],
    [3, { name: 'c' }],
  ]);
});

it('a table of 60,000 blank lines is refused before they cost seconds', () => {
  expect(() => readCsvTable(`name,ip\n${'\n'.repeat(60_000)}`)).toThrow(
    expect.objectContaining({ code: 'sites.too-large' }) as Error,
  );
});
