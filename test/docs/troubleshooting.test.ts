import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listErrorCodes } from '../../scripts/error-codes.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Rows of the tables: code, exit codes, meaning, what to do. */
const rows = [
  ...readFileSync(join(ROOT, 'docs/troubleshooting.md'), 'utf8').matchAll(
    /^\| `([a-z-]+(?:\.[a-z0-9-]+)?)` +\| ([^|]*)\| ([^|]*)\| ([^|]*)\|$/gm,
  ),
].map(([, code = '', ...cells]) => ({ code, cells: cells.map((cell) => cell.trim()) }));

const codes = listErrorCodes(ROOT);

describe('docs/troubleshooting.md', () => {
  it('has an entry for every code that the sources have', () => {
    const written = new Set(rows.map(({ code }) => code));
    expect([...codes.keys()].filter((code) => !written.has(code))).toEqual([]);
  });

  it('has each code once, and no code that the sources do not have', () => {
    const written = rows.map(({ code }) => code);
    expect(written.filter((code) => !codes.has(code))).toEqual([]);
    expect(written.filter((code, index) => written.indexOf(code) !== index)).toEqual([]);
    expect(written.length).toBeGreaterThan(350);
  });

  it('names the exit codes that each code is thrown with', () => {
    for (const { code, cells } of rows) {
      const thrown = [...(codes.get(code) ?? [])].sort();
      if (thrown.length > 0) expect([code, cells[0]]).toEqual([code, thrown.join(', ')]);
    }
  });

  it('states in whole sentences what each code means and what to do', () => {
    const isSentence = (text = ''): boolean => /^[A-Z`\p{L}].*\.$/u.test(text);
    const bad = rows.filter(({ cells }) => !isSentence(cells[1]) || !isSentence(cells[2]));
    expect(bad.map(({ code }) => code)).toEqual([]);
  });
});
