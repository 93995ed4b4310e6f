import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { readXlsxTable } from '../../../src/table/index.ts';
import { findJudge } from '../find-judge.ts';

const python = findJudge('sheets', 'python');
const WRITE = fileURLToPath(new URL('write.py', import.meta.url));
const options = { shownAs: 'a.xlsx', signal: new AbortController().signal };

/** Texts that spreadsheet programs or XML change, and whole numbers. */
const CELL = fc.oneof(
  fc.constantFrom(
    '4.20',
    '007',
    'a&b<c>',
    '"q"',
    'ü: 1',
    '=1+1',
    '1.5E+10',
    'ä\nb',
    '52:54:00:ab:cd:ef',
  ),
  fc.string({ unit: 'grapheme', maxLength: 20 }).filter((text) => /^[^\p{C}]*$/u.test(text)),
  fc.integer({ min: -99_999_999, max: 99_999_999_999 }),
);

describe.skipIf(python === undefined)('writers of workbooks', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'judged-sheets-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** What we read of what the judge wrote, and what it reads itself; both as trimmed texts. */
  async function compare(writer: string, rows: readonly (readonly (string | number)[])[]) {
    const path = join(folder, 'sites.xlsx');
    const { stdout } = await runProcess(python ?? '', [WRITE, writer, path], {
      input: JSON.stringify(rows),
    });
    const table = await readXlsxTable(await readFile(path), options);
    expect([table.tableProblems, table.rowProblems]).toEqual([[], []]);
    const ours = table.rows.map(({ cells }) => [...cells.values()]);
    const [, ...theirs] = JSON.parse(stdout) as (string | number | null)[][];
    const texts = theirs.map((row) => row.map((value) => String(value ?? '').trim()));
    expect(ours).toEqual(texts.filter((row) => row.some((text) => text !== '')));
    return ours.length;
  }

  it.each(['openpyxl', 'xlsxwriter'])('%s and we read the same texts', async (writer) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(CELL, CELL, CELL), { minLength: 1, maxLength: 30 }),
        async (rows) => {
          await compare(writer, [['name', 'site', 'vlan'], ...rows]);
        },
      ),
      { numRuns: 5 },
    );
  });

  it.each(['openpyxl', 'xlsxwriter'])('%s and we read ten thousand sites', async (writer) => {
    const columns = Array.from({ length: 12 }, (_, at) => `c${at}`);
    const row = (site: number): string[] => columns.map((column) => `${column} of site ${site}`);
    const rows = Array.from({ length: 10_000 }, (_, site) => row(site));
    expect(await compare(writer, [columns, ...rows])).toBe(10_000);
  });
});
