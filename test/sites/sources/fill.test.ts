import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SiteList } from '../../../src/sites/sources/list.ts';
import { listSites } from '../../../src/sites/sources/sites.ts';
import { fillTemplate, parseTemplate } from '../../../src/sites/sources/template.ts';
import { writeTree, type Tree } from '../../support/site-archives.ts';
import { readAllSites, showProblems } from '../../support/site-lists.ts';
import { packWorkbook, textRow } from '../../support/workbooks.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sites-'));
  writeTree(join(root, 'template'), TEMPLATE);
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

const TEMPLATE: Tree = {
  'install-config.yaml': 'metadata: {name: "{{ name }}"}\nbaseDomain: {{ domain }}\n',
  'image-based-config.yaml': 'hostname: {{ name }}\n',
};

const { signal } = new AbortController();

function open(table: string, text: string): Promise<SiteList> {
  writeFileSync(join(root, table), text);
  return listSites(join(root, table), { template: join(root, 'template'), signal });
}

async function problemsOf(table: string, text: string): Promise<string[]> {
  return showProblems(await open(table, text), root);
}

const ROWS = [
  ['alpha', 'edge.example'],
  ['beta', '4.20'],
] as const;
const CSV = 'name,domain\nalpha,edge.example\nbeta,4.20\n';
const FORMS: Tree = {
  'comma.csv': CSV,
  'semicolon.csv': CSV.replaceAll(',', ';'),
  'tab.csv': CSV.replaceAll(',', '\t'),
  'excel.csv': `\ufeffsep=;\r\n${CSV.replaceAll(',', ';').replaceAll('\n', '\r\n')}`,
  'windows.csv': `\ufeff${CSV.replaceAll('\n', '\r\n')}`,
  'quoted.csv': '"name","domain",\n"alpha","edge.example",\n\n"beta","4.20",',
  'list.yaml': '- name: alpha\n  domain: edge.example\n- {name: beta, domain: 4.20}\n',
  'map.yaml': '# sites\nalpha:\n  domain: edge.example\nbeta:\n  domain: 4.20\n  name: beta\n',
  'map.yml': '---\nalpha: {domain: edge.example}\n# more\nbeta: {domain: 4.20}\n',
};

describe('a table fills a template', () => {
  it('written as a workbook, with the line of a fault', async () => {
    const rows = ['name domain', 'alpha edge.example', 'beta 4.20'].map((line, at) =>
      textRow(at + 1, ...line.split(' ')),
    );
    const number = '<row r="4"><c r="A4" t="str"><v>gamma</v></c><c r="B4"><v>4.2</v></c></row>';
    writeFileSync(join(root, 'a.xlsx'), packWorkbook({ rows: rows.join('') + number }));
    const sites = await listSites(join(root, 'a.xlsx'), {
      template: join(root, 'template'),
      signal,
    });
    expect(sites.names).toEqual(['alpha', 'beta']);
    expect(showProblems(sites, root)).toEqual([
      expect.stringMatching(/a\.xlsx:4.* cell B4 is a number, of which digits may be lost/),
    ]);
    const csv = await open('a.csv', CSV);
    expect(Object.values(await readAllSites(sites))).toEqual(
      Object.values(await readAllSites(csv)),
    );
  });

  it.each(Object.entries(FORMS))('written as %s', async (table, text) => {
    const sites = await open(table, text);
    expect(showProblems(sites, root)).toEqual([]);
    expect(sites.names).toEqual(['alpha', 'beta']);
    expect(await readAllSites(sites)).toEqual(
      Object.fromEntries(
        ROWS.map(([name, domain]) => [
          name,
          {
            'image-based-config.yaml': `hostname: ${name}\n`,
            'install-config.yaml': `metadata: {name: "${name}"}\nbaseDomain: ${domain}\n`,
          },
        ]),
      ),
    );
  });

  it('whose files are shown by their row', async () => {
    const { files } = await (await open('a.csv', CSV)).open('beta');
    expect(files.map(({ shownAs }) => shownAs.replace(`${root}/`, ''))).toEqual([
      'a.csv:3/image-based-config.yaml',
      'a.csv:3/install-config.yaml',
    ]);
  });

  it('with holes in file names too, but refuses a folder in a value', async () => {
    writeTree(join(root, 'template'), { 'extra-manifests/{{ domain }}.yaml': '{{domain}}' });
    const sites = await open('a.csv', 'name,domain\nalpha,a\nbeta,../b\n');
    expect(await readAllSites(sites)).toMatchObject({ alpha: { 'extra-manifests/a.yaml': 'a' } });
    expect(sites.names).toEqual(['alpha']);
    expect(showProblems(sites, root).join()).toContain('a.csv:3/extra-manifests/../b.yaml');
  });

  it('with texts of several lines, which keep the indentation of their hole', async () => {
    writeTree(join(root, 'template'), {
      'install-config.yaml': 'bundle: |\n  {{ domain }}\nx: 1\n',
    });
    const sites = await open('a.csv', 'name,domain\na,"one\ntwo\n\n  three\n"\n');
    const { a } = await readAllSites(sites);
    expect(a?.['install-config.yaml']).toBe('bundle: |\n  one\n  two\n\n    three\nx: 1\n');
  });

  it('for ten thousand rows in a moment', async () => {
    const rows = Array.from({ length: 10_000 }, (_, index) => `s${index},d${index}`);
    const sites = await open('a.csv', `name,domain\n${rows.join('\n')}\n`);
    expect(sites.names).toHaveLength(10_000);
    expect((await sites.open('s9999')).files).toHaveLength(2);
  });
});

it('inserted text is not searched for holes, and braces can be written', () => {
  const template = parseTemplate("{{a}}{{ '{{' }} x }} {{ b }}");
  const cells = new Map([
    ['a', '{{ b }}'],
    ['b', '$&'],
  ]);
  expect(template.faults).toEqual([]);
  expect(fillTemplate(template, cells)).toBe('{{ b }}{{ x }} $&');
});

it('a text without holes stays unchanged', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }).filter((text) => !text.includes('{{')),
      (text) => {
        expect(fillTemplate(parseTemplate(text), new Map())).toBe(text);
      },
    ),
  );
});

describe('a table that does not fit stops all sites', () => {
  it('when a hole has no column', async () => {
    expect(await problemsOf('a.csv', 'name,domian\nalpha,x\n')).toEqual([
      'error template/install-config.yaml:2: hole "domain" has no column: did you mean "domian"?',
      'note a.csv:1: column "domian" has no hole in the template: did you mean "domain"?',
    ]);
  });

  it('when it does not name its sites', async () => {
    writeTree(join(root, 'template'), { 'install-config.yaml': '', 'image-based-config.yaml': '' });
    expect(await problemsOf('a.csv', 'Name\nalpha\n')).toContain(
      'error a.csv:1: there is no column "name", which must name the site: did you mean "Name"?',
    );
  });

  it.each([
    ['a column twice', 'name,domain,name\na,b,c\n', 'column "name" appears twice'],
    ['a column without a name', 'name,,domain\na,b,c\n', 'column 2 has no name'],
    ['a strange column', 'name,do main\na,b\n', 'column "do main" may have only letters'],
    ['no header', '\n\n', 'has no header row'],
  ])('when it has %s', async (_, text, problem) => {
    const sites = await open('a.csv', text);
    expect(sites.names).toEqual([]);
    expect(showProblems(sites, root).join()).toContain(problem);
  });

  it('when it is not a block of YAML, or several documents', async () => {
    for (const text of [
      '[a, b]\n',
      '{a: b}\n',
      '- name: a\n---\n- name: b\n',
      '%YAML 1.1\n---\n',
    ]) {
      const sites = await open('a.yaml', text);
      expect(sites.names).toEqual([]);
      expect(sites.problems.length).toBeGreaterThan(0);
    }
  });

  it('when its template has braces that are not a placeholder, or lacks a file', async () => {
    writeTree(join(root, 'template'), { 'install-config.yaml': 'a: 1\nb: {{ two words }}\n' });
    rmSync(join(root, 'template/image-based-config.yaml'));
    expect(await problemsOf('a.csv', CSV)).toEqual([
      expect.stringContaining(
        'template/install-config.yaml:2: "{{ two words }}" is not a placeholder',
      ),
      'error template: has no image-based-config.yaml',
    ]);
  });

  it.each(['latin1', 'utf16le'] as const)('when a file of its template is %s', async (encoding) => {
    const file = join(root, 'template/install-config.yaml');
    writeFileSync(file, Buffer.from('baseDomain: é.{{ domain }}\n', encoding));
    expect(await problemsOf('a.csv', CSV)).toEqual([
      expect.stringMatching(/template\/install-config.yaml: is not UTF-8 text$/),
    ]);
  });

  it('when it is not UTF-8', async () => {
    writeFileSync(join(root, 'a.csv'), Buffer.from([0x6e, 0xff]));
    const opening = listSites(join(root, 'a.csv'), { template: join(root, 'template'), signal });
    await expect(opening).rejects.toMatchObject({ code: 'sites.not-utf8' });
  });
});

it('a column without a hole is noted once, and stops no site', async () => {
  for (const [name, text] of [
    ['a.csv', 'name,domain,note\nalpha,x,y\nb,x,y\n'],
    ['a.yaml', '- name: alpha\n  domain: x\n- name: b\n  domain: x\n  note: secret\n'],
  ] as const) {
    const sites = await open(name, text);
    expect(sites.names).toEqual(['alpha', 'b']);
    expect(showProblems(sites, root)).toEqual([
      `note ${name}:1: column "note" has no hole in the template`,
    ]);
  }
});

describe('a finding about a filled file is traced', () => {
  const finding = (line: number, column: number) => ({
    ...({ severity: 'error', code: 'config.rule', file: 'a.csv:2/install-config.yaml' } as const),
    ...{ line, column, path: 'some.path', lineText: 'x', problem: 'is wrong' },
  });

  it('to row, site and column if a cell is wrong, and to the template if not', async () => {
    writeTree(join(root, 'template'), {
      'install-config.yaml':
        'metadata:\n  name: "{{ name }}"\nbundle: |\n  {{ domain }}\nurl: https://{{ name }}:5000\nlist: [a, {{ name }}]\n',
    });
    const sites = await open('a.csv', 'name,domain\nalpha,"one\ntwo"\n');
    const trace = (line: number, column: number) => {
      const [traced] = sites.trace?.('alpha', [finding(line, column)]) ?? [];
      return `${traced?.file.replace(`${root}/`, '') ?? ''}:${String(traced?.line)} ${traced?.problem ?? ''}`;
    };
    const cell = (column: string) => `a.csv:2 column "${column}" of site alpha: is wrong`;
    expect(trace(2, 9)).toBe(cell('name')); // at its quote
    expect(trace(2, 12)).toBe(cell('name'));
    expect(trace(2, 3)).toBe('template/install-config.yaml:2 is wrong'); // the key
    expect(trace(4, 3)).toBe(cell('domain'));
    expect(trace(5, 3)).toBe(cell('domain')); // its second line
    expect(trace(6, 6)).toBe(cell('name')); // the scalar around it
    expect(trace(6, 1)).toBe('template/install-config.yaml:5 is wrong');
    expect(trace(7, 8)).toBe('template/install-config.yaml:6 is wrong'); // the item before it
    expect(trace(7, 11)).toBe(cell('name'));
  });
});

describe('a bad row does not stop the others', () => {
  it.each([
    ['short', 'name,domain\nalpha,a\nsecret\n', 'a.csv:3: has 1 cells, but the header names 2'],
    ['long', 'name,domain\nalpha,a\nb,c,secret\n', 'a.csv:3: has 3 cells, but the header names 2'],
    ['open', 'name,domain\nalpha,a\nb,"secret\n', 'a.csv:3: has a quote that is never closed'],
    ['torn', 'name,domain\nalpha,a\nb,"secret"x\n', 'a.csv:3: has text after a closing quote'],
    ['twin', 'name,domain\nb,a\nalpha,a\nb,c\n', 'a.csv:4: site name "b" is already in line 2'],
    ['capital', 'name,domain\nalpha,a\nBeta,c\n', 'a.csv:3: site name "Beta" is not a DNS label'],
    ['without a name', 'name,domain\nalpha,a\n,c\n', 'a.csv:3: site name "" is empty'],
    [
      'with an escape',
      'name,domain\nalpha,a\nb,\u001b[2J\n',
      'column "domain" of site b has control characters',
    ],
  ])('in a CSV: %s', async (_, text, problem) => {
    const sites = await open('a.csv', text);
    expect(sites.names).toEqual(['alpha']);
    expect(showProblems(sites, root).join('\n')).toContain(problem);
    expect(JSON.stringify(sites.problems)).not.toContain('secret');
  });

  it.each([
    ['broken', '- {name: b, domain: "secret}\n', 'is not YAML'],
    ['no mapping', '- secret\n', 'is not a mapping from columns to values'],
    ['a list in it', '- name: b\n  domain: [secret]\n', 'is a list or a mapping'],
    ['a tag', '- name: b\n  domain: !!binary c2VjcmV0\n', 'has a tag'],
    ['a key twice', '- name: b\n  domain: secret\n  domain: x\n', 'key "domain" appears twice'],
    ['a missing value', '- name: b\n', 'site b has no "domain", which the template needs'],
  ])('in YAML: %s', async (_, text, problem) => {
    const sites = await open('a.yaml', `- name: alpha\n  domain: a\n${text}`);
    expect(sites.names).toEqual(['alpha']);
    expect(showProblems(sites, root).join('\n')).toContain(problem);
    expect(showProblems(sites, root).join('\n')).toMatch(/error a\.yaml:[345]/);
    expect(JSON.stringify(sites.problems)).not.toContain('secret');
  });
});

it('a value that is too large for a file is refused before it is put in', async () => {
  const sites = await open('a.csv', `name,domain\na,${'x'.repeat(2 << 20)}\nb,x\n`);
  expect(sites.names).toEqual(['b']);
  expect(showProblems(sites, root)).toEqual([
    'error a.csv:2: column "domain" of site a is too long: a file may have at most 1.0 MiB',
  ]);
});

describe('a value never becomes a key of the file that it is put into:', () => {
  const INJECTION = 'x\nreleaseRegistry: evil.example';

  it('in double quotes it arrives unchanged', async () => {
    writeTree(join(root, 'template'), {
      'install-config.yaml': 'baseDomain: "{{ domain }}"\n',
      'image-based-config.yaml': "hostname: '{{ name }}'\n",
    });
    const sites = await open('a.csv', `name,domain\na,"${INJECTION}"\nb,"C:\\new ""x"" #1"\n`);
    const { a, b } = await readAllSites(sites);
    expect(a?.['install-config.yaml']).toBe('baseDomain: "x\\nreleaseRegistry: evil.example"\n');
    expect(b?.['install-config.yaml']).toBe('baseDomain: "C:\\\\new \\"x\\" #1"\n');
  });

  it('elsewhere its row is refused, and the value is not shown', async () => {
    const sites = await open('a.csv', `name,domain\na,"${INJECTION}"\nb,x\n`);
    expect(sites.names).toEqual(['b']);
    expect(showProblems(sites, root)).toEqual([
      'error a.csv:2: column "domain" of site a cannot be a plain YAML text: put the hole in line 2 of ' +
        'install-config.yaml in double quotes',
    ]);
  });
});

describe('a table of 60 rows', () => {
  const HEADER = 'name,a';
  const row = (index: number): string => {
    if (index === 20) return 'site-3, x'; // a name that already exists
    if (index === 10) return 'site-10'; // short
    if (index === 30) return ', x'; // without a name
    return `  site-${index} ,\tx ${index} `;
  };
  const rows = Array.from({ length: 60 }, (_, index) => row(index));

  it('gives 60 results, each a site or a failure of its line, in the order of lines', async () => {
    writeTree(root, { 'a.csv': `${[HEADER, ...rows].join('\n')}\n` });
    const files = { 'install-config.yaml': 'a: "{{ a }}"\n', 'image-based-config.yaml': '\n' };
    writeTree(join(root, 'template'), files);
    const options = { template: join(root, 'template'), signal };
    const { names, problems } = await listSites(join(root, 'a.csv'), options);
    const failed = new Set(problems.map(({ name }) => name));
    expect(names.length + failed.size).toBe(60);
    expect(failed).toEqual(new Set(['site-3', 'line 12', 'site-3 (line 22)', 'line 32']));
    const lines = problems.map(({ line = 0 }) => line);
    expect(lines).toEqual(lines.toSorted((a, b) => a - b));
  });

  it.each(['xls', 'xlsm', 'ods'])(
    'that is still an .%s is refused with the way to export it',
    async (kind) => {
      writeTree(root, { [`a.${kind}`]: 'PK\u0003\u0004' });
      for (const options of [{ signal }, { template: join(root, 'template'), signal }]) {
        await expect(listSites(join(root, `a.${kind}`), options)).rejects.toMatchObject({
          code: 'sites.spreadsheet',
          hint: expect.stringContaining('CSV UTF-8') as string,
        });
      }
    },
  );
});
