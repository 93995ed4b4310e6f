import { describe, expect, it } from 'vitest';
import { readXlsxTable } from '../../src/table/index.ts';
import { packWorkbook, textRow } from '../support/workbooks.ts';

const options = { shownAs: 'a.xlsx', signal: new AbortController().signal };
const HEADER = textRow(1, 'name', 'mac', 'vlan');

const read = (parts: Parameters<typeof packWorkbook>[0]) =>
  readXlsxTable(packWorkbook(parts), options);

/** The cells of line 2, or its problems. */
async function readLine(cells: string, more: Partial<Parameters<typeof packWorkbook>[0]> = {}) {
  const { rows, rowProblems } = await read({ rows: `${HEADER}<row r="2">${cells}</row>`, ...more });
  return [...rows.map(({ cells: own }) => [...own.values()]), ...rowProblems];
}

describe('a sheet of a workbook', () => {
  it('is read as a table with the lines of its rows; the hidden sheet before it is not', async () => {
    const last = textRow(9, 'beta').replace('r="9"', 'r="x"');
    const rows = `${textRow(3, 'name', ' site ')}${textRow(5, 'alpha', ' 4.20 ')}${last}`;
    const table = await read({ rows });
    expect(table).toMatchObject({ rowProblems: [], tableProblems: [], headerLine: 3 });
    expect(table.rows.map(({ line, cells }) => [line, Object.fromEntries(cells)])).toEqual([
      [5, { name: 'alpha', site: '4.20' }],
      [6, { name: 'beta', site: '' }],
    ]);
  });

  it('gives texts of all kinds, the result of formulas, and the digits of whole numbers', async () => {
    const shared = ['<r><t>al</t></r><r><t>pha</t></r><rPh><t>sound</t></rPh>'];
    const cells =
      '<c r="A2" t="s"><v>0</v></c><c r="B2" t="str"><f>A1</f><v>52:54&amp;</v></c><c r="C2"><v>120</v></c>';
    expect(await readLine(cells, { shared })).toEqual([['alpha', '52:54&', '120']]);
    expect(await readLine('<c r="A2" t="str"><v>a_x000D__x005F_x0041_</v></c>')).toEqual([
      ['a\r_x0041_', '', ''],
    ]);
    const others = '<c r="C2" t="b"><v>1</v></c><c r="A2" t="inlineStr"><is><t>b</t></is></c>';
    expect(await readLine(others)).toEqual([['b', '', 'TRUE']]);
  });

  it.each([
    ['<c r="B2"><v>15000000000000</v></c>', 'is a number, of which digits may be lost'],
    ['<c r="B2"><v>4.2</v></c>', 'is a number, of which digits may be lost'],
    ['<c r="B2"><v>1.5E+10</v></c>', 'is a number, of which digits may be lost'],
    ['<c r="B2" s="2"><v>7</v></c>', 'is a number, of which digits may be lost'],
    ['<c r="B2" s="1"><v>46000</v></c>', 'is a date'],
    ['<c r="B2" t="d"><v>2026-11-29</v></c>', 'is a date'],
    ['<c r="B2" t="e"><v>#N/A</v></c>', 'shows an error of its formula'],
    ['<c r="B2"><f>A1</f></c>', 'has a formula without a result'],
    ['<c r="B2" t="s"><v>7</v></c>', 'names a text that the workbook does not have'],
    ['<c r="B2" t="s"><v></v></c>', 'names a text that the workbook does not have'],
    ['<c r="B2" t="s"><v>0x0</v></c>', 'names a text that the workbook does not have'],
    ['<c r="B2" t="b"><v>true</v></c>', 'has neither 0 nor 1'],
    ['<c r="B2" t="str"><v>x</v></c><c r="B2" t="str"><v>y</v></c>', 'is there twice'],
    [`<c r="B2" t="str"><v>${'a'.repeat(32_768)}</v></c>`, 'has more than 32767 characters'],
  ])('is refused row by row where the text is not certain: %s', async (cell, why) => {
    const formats = ['d/m/yyyy;@', '[Red]0000&quot;d&quot;'];
    const name = '<c r="A2" t="str"><v>alpha</v></c>';
    const problem = expect.stringMatching(new RegExp(`^cell B2 ${why}`)) as string;
    expect(await readLine(name + cell, { formats })).toEqual([{ line: 2, problem }]);
  });

  it('refuses texts in hidden columns, and only those', async () => {
    const before = '<cols><col min="2" max="3" width="0" hidden="1"/></cols>';
    const cells = (column: string): string =>
      `<c r="A2" t="str"><v>alpha</v></c><c r="${column}2" t="str"><v>x</v></c>`;
    const header =
      '<row r="1"><c r="A1" t="str"><v>name</v></c><c r="D1" t="str"><v>mac</v></c></row>';
    const readIt = (column: string) =>
      read({ before, rows: `${header}<row r="2">${cells(column)}</row>` });
    expect((await readIt('C')).rowProblems).toEqual([
      { line: 2, problem: 'cell C2 is in a hidden column: show the column, or delete it' },
    ]);
  });

  it.each([
    ['deep', `<a>`.repeat(50_000), 'has elements in more than 100 levels'],
    [
      'wide',
      `<a ${Array.from({ length: 5000 }, (_, index) => `b${index}=""`).join(' ')}/>`,
      'has an element of more than 200 attributes',
    ],
  ])('is refused before it takes memory: %s', async (_, rows, why) => {
    await expect(read({ rows })).rejects.toMatchObject({
      code: 'sites.too-large',
      message: expect.stringContaining(why) as string,
    });
  });

  it('refuses rows that are hidden or merged, and a header with a number', async () => {
    const hidden = textRow(2, 'alpha', 'x').replace('<row ', '<row hidden="1" ');
    const after =
      '<mergeCells><mergeCell ref="A4:B5"/><mergeCell ref="A1048570:C1048576"/></mergeCells>';
    const rows = HEADER + hidden + [3, 4, 5, 6].map((line) => textRow(line, `s${line}`)).join('');
    const table = await read({ rows, after });
    expect(table.rows.map(({ line }) => line)).toEqual([3, 6]);
    expect(table.rowProblems.map(({ line, problem }) => [line, problem.slice(0, 10)])).toEqual([
      [2, 'is hidden:'],
      [4, 'has merged'],
      [5, 'has merged'],
    ]);
    const numbered = await read({ rows: '<row r="1"><c r="A1"><v>4.2</v></c></row>' });
    expect(numbered).toMatchObject({ rows: [], tableProblems: [{ line: 1 }] });
    expect((await read({ rows: '' })).tableProblems).toEqual([
      { line: 1, problem: 'has no header row' },
    ]);
  });

  it('has formats of any length without cost', async () => {
    const formats = ['[Red'.repeat(100_000)];
    const problem = expect.stringMatching(/^cell B2 is a number/) as string;
    expect(await readLine('<c r="B2" s="1"><v>7</v></c>', { formats })).toEqual([
      { line: 2, problem },
    ]);
  });

  it('has cells far away without cost', async () => {
    const far = '<row r="1048576"><c r="XFD1048576" t="str"><v>x</v></c></row>';
    expect((await read({ rows: HEADER + textRow(2, 'alpha') + far })).rowProblems).toEqual([
      { line: 1_048_576, problem: expect.stringMatching(/^cell XFD1048576 is beyond/) as string },
    ]);
  });
});

const SHEET = 'xl/worksheets/sheet1.xml';

describe('a file that is no workbook of sites', () => {
  const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex');
  it.each([
    ['with a password', () => Buffer.concat([OLE, Buffer.alloc(512)]), 'sites.spreadsheet'],
    ['no archive', () => Buffer.from('name,site'), 'sites.damaged'],
    ['cut short', () => packWorkbook({ rows: HEADER }).subarray(0, -30), 'sites.damaged'],
    [
      'with macros',
      () => packWorkbook({ rows: HEADER, more: [{ name: 'xl/vbaProject.bin' }] }),
      'sites.spreadsheet',
    ],
    [
      'binary',
      () => packWorkbook({ rows: HEADER, more: [{ name: 'xl/workbook.bin' }] }),
      'sites.spreadsheet',
    ],
    [
      'with entities',
      () =>
        packWorkbook({
          rows: '',
          more: [{ name: SHEET, text: '<!DOCTYPE a [<!ENTITY b "c">]><worksheet/>' }],
        }),
      'sites.spreadsheet',
    ],
    [
      'with XML that is not closed',
      () => packWorkbook({ rows: '', more: [{ name: SHEET, text: '<worksheet><sheetData>' }] }),
      'sites.damaged',
    ],
    [
      'with a part that inflates',
      () => packWorkbook({ rows: '', more: [{ name: 'x', text: ' '.repeat(20 << 20) }] }),
      'sites.too-large',
    ],
    [
      'with a part that is larger than it says',
      () =>
        packWorkbook({
          rows: '',
          more: [{ name: SHEET, text: `<a>${' '.repeat(1 << 20)}</a>`, declaredSize: 100 }],
        }),
      'sites.damaged',
    ],
    [
      'with 1,001 parts',
      () =>
        packWorkbook({
          rows: '',
          more: Array.from({ length: 1001 }, (_, at) => ({ name: `p${at}` })),
        }),
      'sites.too-large',
    ],
    [
      'with 50,001 rows',
      () =>
        packWorkbook({
          rows: Array.from({ length: 50_002 }, (_, at) =>
            textRow(at + 1, `s${(at * 7919) % 65_537}`),
          ).join(''),
        }),
      'sites.too-large',
    ],
  ])('is refused: %s', async (_what, pack, code) => {
    await expect(readXlsxTable(pack(), options)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/^(?:a\.xlsx|the table) /) as string,
    });
  });
});
