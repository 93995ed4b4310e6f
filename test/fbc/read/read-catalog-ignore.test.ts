import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { walkCatalog } from '../../../src/fbc/read/read-catalog.ts';
import { createIgnoreBudget, isIgnored, parseIgnoreFile } from '../../../src/fbc/read/ignore.ts';
import { runs } from '../../support/properties.ts';
import { requireTool } from '../../support/tools.ts';

const ignored = (text: string, path: string, base: readonly string[] = []): boolean =>
  isIgnored(parseIgnoreFile(text, base), path.split('/'), createIgnoreBudget());

test('an ignore file of a long set of characters ends by its budget, not by the clock', () => {
  const rules = parseIgnoreFile(`*[${'bc'.repeat(350)}]z`, []);
  const budget = createIgnoreBudget();
  const match = (count: number): boolean =>
    isIgnored(rules, [`${count}${'a'.repeat(200)}`], budget);
  expect(() => Array.from({ length: 2000 }, (_, count) => match(count))).toThrow(
    'take too long to match',
  );
});

describe('a rule of an ignore file', () => {
  test.each([
    ['a', 'a', true],
    ['a', 'b/a', true],
    ['a', 'a/b/c', true],
    ['a', 'ab', false],
    ['/a', 'b/a', false],
    ['a/', 'a', false],
    ['a/', 'a/b', true],
    ['a/b', 'c/a/b', false],
    ['*.md', 'x/README.md', true],
    ['*.md', '.md', true],
    ['a/*', 'a/b', true],
    ['*/b', 'a/x/b', false],
    ['**/b', 'a/x/b', true],
    ['**/b', 'b', true],
    ['a/**/b', 'a/b', true],
    ['a/**/b', 'a/x/y/b', true],
    ['a/**', 'a', false],
    ['a/**', 'a/x/y', true],
    ['**', 'a/b', true],
    ['a?c', 'abc', true],
    ['a?c', 'a/c', false],
    ['a?c', 'a😀c', true],
    ['[a-c]x', 'bx', true],
    ['[!a-c]x', 'bx', false],
    ['[^a-c]x', 'dx', true],
    ['[]]x', ']x', true],
    ['[a', '[a', true],
    ['\\#a', '#a', true],
    ['\\!a', '!a', true],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['#a', '#a', false],
    ['a  ', 'a', true],
    ['a\\ ', 'a ', true],
    ['*\n!a', 'a', false],
    ['!a\n*', 'a', true],
    ['*\n!b/', 'b/c', false],
    ['\ufeffa\r\nb\r\n', 'b', true],
    ['', 'a', false],
  ])('%j applied to %j is %j', (text, path, wanted) => {
    expect(ignored(text, path)).toBe(wanted);
  });

  test('matches only paths below the directory of its file', () => {
    expect(ignored('/a', 'x/y/a', ['x', 'y'])).toBe(true);
    expect(ignored('/a', 'x/a', ['x', 'y'])).toBe(false);
    expect(ignored('x', 'x/a', ['x'])).toBe(false);
  });

  test('with many stars costs no more than its length times that of the name', () => {
    expect(ignored('*a'.repeat(2000), `${'a'.repeat(1999)}b`)).toBe(false);
    expect(ignored(`${'**/a/'.repeat(200)}c`, 'a/'.repeat(199) + 'b')).toBe(false);
  });
});

const FILES = [
  'a',
  'b',
  'ab',
  'a.b',
  'd/a',
  'd/b',
  'd/ab',
  'd/d/a',
  'd/d/d/b',
  '[a',
  'e/a-b',
  '.h/a',
];

describe.skipIf(!requireTool('git'))('ignore rules without negation', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-ignore-'));
    await runProcess('git', ['init', '--quiet', directory]);
    for (const file of FILES) {
      await mkdir(dirname(join(directory, file)), { recursive: true });
      await writeFile(join(directory, file), '');
    }
  });
  afterAll(() => rm(directory, { recursive: true }));

  test('exclude what git excludes', async () => {
    const part = fc.constantFrom(
      'a',
      'b',
      'd',
      '*',
      '?',
      '[ab]',
      '[!a]',
      '.',
      '**/',
      '/',
      '/**',
      'e',
      '-',
    );
    // Git's own reading of two stars beside a letter depends on the version.
    const line = fc
      .array(part, { minLength: 1, maxLength: 5 })
      .map((parts) => parts.join(''))
      .filter((text) => !/[^/]\*\*|\*\*[^/]/.test(text));
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 2 }), async (lines) => {
        const text = lines.join('\n');
        await writeFile(join(directory, '.indexignore'), text);
        const args = ['ls-files', '-z', '--others', '--exclude-per-directory=.indexignore'];
        const { stdout } = await runProcess('git', args, { cwd: directory });
        const kept = FILES.filter((file) => !ignored(text, file));
        const seen = stdout.split('\0').filter((file) => FILES.includes(file));
        expect(kept.toSorted()).toEqual(seen.toSorted());
      }),
      { numRuns: runs(60) },
    );
  });

  test('may have more lines than a function call may have arguments', async () => {
    const catalog = await mkdtemp(join(tmpdir(), 'sealift-ignore-'));
    try {
      await writeFile(join(catalog, 'a.yaml'), '');
      await writeFile(join(catalog, 'b.yaml'), '');
      await writeFile(join(catalog, '.indexignore'), `${'x\n'.repeat(130_000)}a.yaml\n`);
      const files = [];
      for await (const { file } of walkCatalog(catalog)) files.push(file);
      expect(files).toEqual(['b.yaml']);
    } finally {
      await rm(catalog, { recursive: true });
    }
  });
});

test('patterns that cost more than a whole catalog are refused within seconds', () => {
  const rules = parseIgnoreFile(`${'*a'.repeat(100)}b\n`.repeat(2000), []);
  const effort = createIgnoreBudget();
  const { user } = process.cpuUsage();
  expect(() => {
    for (let at = 0; at < 100; at++) isIgnored(rules, [`${'a'.repeat(200)}${at}`], effort);
  }).toThrow(expect.objectContaining({ code: 'catalog.ignore-file', exitCode: 3 }));
  expect(process.cpuUsage().user - user).toBeLessThan(10_000_000);
});
