import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { toMessage } from '../../../src/cli/terminal/output.ts';
import { createProgress } from '../../../src/cli/terminal/progress.ts';
import { formatProblem } from '../../../src/base/errors.ts';

const redaction = createRedaction();

/** What moves a terminal's cursor, sets its title or turns text. */
const COMMANDING = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sealift-printed-'));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

function createHost() {
  const stdout = new PassThrough({ highWaterMark: 8 << 20 });
  const stderr = new PassThrough({ highWaterMark: 8 << 20 });
  const { signal } = new AbortController();
  return { stdout, stderr, env: {}, cwd: root, redaction, isTTY: false, signal, now: () => 0 };
}

const read = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';

async function run(args: readonly string[], files: Readonly<Record<string, string>> = {}) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  const host = createHost();
  const exitCode = await runProgram(args, host);
  return { exitCode, stdout: read(host.stdout), stderr: read(host.stderr) };
}

const HEAD = 'apiVersion: v1beta1\nocpRelease: {version: "4.21.0"}\n';
const IMAGE_SET = 'apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n';
const NAME = 'ev\u001b[2Jil\u009b2J';
const CHANNEL = '\u001b]0;t\u0007';
const BUNDLE = 'b.v1.0.0\u202e';
const CATALOG = [
  { schema: 'olm.package', name: NAME, defaultChannel: CHANNEL },
  { schema: 'olm.channel', name: CHANNEL, package: NAME, entries: [{ name: BUNDLE }] },
  { schema: 'olm.bundle', name: BUNDLE, package: NAME, image: 'q.io/a/b:1' },
]
  .map((item) => JSON.stringify(item))
  .join('\n');

describe('a text that controls a terminal', () => {
  it.each<[string, readonly string[], string]>([
    ['an unknown key', ['validate', 'a'], `${HEAD}"\\e[2Jevil\\e]0;title\\a": 1\n`],
    ['a key that is written raw', ['validate', 'a'], `${HEAD}\u001b[2Jfoo: bar\n`],
    ['a C1 control character', ['validate', 'a'], `${HEAD}\u009b2J: x\n`],
    ['a value', ['validate', 'a'], 'ocpRelease: {version: "4.21.0\\e[2J"}\n'],
    ['a path', ['validate', 'a'], `${HEAD}build: {caBundle: "/absent/\\e[2Jx\\u202ey"}\n`],
    ['the same in JSON', ['validate', '-o', 'json', 'a'], `${HEAD}"\\x9b2J\\u202e": 1\n`],
    ['an imported key', ['import', 'imageset', 'a'], `${IMAGE_SET}"\\e[2J\\e]0;x\\a": 1\n`],
    ['a word of the command line', ['validate', 'absent\u001b[2J'], ''],
    ['an option', ['validate', '--\u001b[2J'], ''],
    ['a listed catalog', ['catalog', 'list', 'file:.'], CATALOG],
    ['a shown catalog', ['catalog', 'show', 'file:.', '--full'], CATALOG],
    ['a catalog in JSON', ['catalog', 'list', 'file:.', '-o', 'json'], CATALOG],
  ])('is printed with escapes: %s', async (_, args, text) => {
    const name = args[0] === 'catalog' ? 'a.json' : 'a';
    const { stdout, stderr } = await run(args, { [name]: text });
    expect(stdout + stderr).toMatch(/\\u00(?:00|1b|9b)/);
    expect(stdout + stderr).not.toMatch(COMMANDING);
  });

  it.each(['plain', 'json'] as const)(
    'is printed with escapes as a warning in the %s log',
    (format) => {
      const host = createHost();
      createProgress(host, format).listener({ type: 'warning', message: 'a\u001b[2J\u202eb' });
      const printed = read(host.stderr);
      expect(printed).toContain('a\\u001b[2J\\u202eb');
      expect(printed).not.toMatch(COMMANDING);
    },
  );
});

it.each([
  ['NUL bytes', Buffer.alloc(3)],
  ['UTF-16', Buffer.from(`\ufeff${HEAD}`, 'utf16le')],
  ['Latin-1', Buffer.from('metadata: {name: \u00e4}\n', 'latin1')],
])('a configuration of %s is refused because it is not UTF-8 text', async (_, bytes) => {
  writeFileSync(join(root, 'a'), bytes);
  const { stderr, exitCode } = await run(['validate', 'a']);
  expect(stderr).toMatch(/ is not UTF-8 text \[config\.not-utf8\]\n/);
  expect(exitCode).toBe(3);
});

const ERROR = { severity: 'error', code: 'config.rule' } as const;

describe('a list of problems', () => {
  it('is printed up to the first 100, with the number of the others', async () => {
    const keys = Array.from({ length: 150 }, (_, index) => `key${index}: 1\n`).join('');
    const { stderr, exitCode } = await run(['validate', 'a'], { a: `${HEAD}${keys}` });
    expect(exitCode).toBe(3);
    expect(stderr.match(/^a:\d+:\d+: /gm)).toHaveLength(100);
    expect(stderr).toMatch(/\nand 5\d more problems\nerror: a has 15\d problems/);
  });

  it('is printed with the beginning of a line of a megabyte, and the number of characters left out', () => {
    const text = toMessage(`error: ${'a'.repeat(1_000_000)}\n  hint: name another\n`, redaction);
    expect(text).toMatch(
      /^error: a{19993}\.\.\. and 980007 more characters\n {2}hint: name another\n$/,
    );
  });

  it('has one problem if a document has more values than are read', async () => {
    const images = '  - name: q.io/a/b:1\n'.repeat(11_000);
    const { stderr } = await run(['validate', 'a'], { a: `${HEAD}additionalImages:\n${images}` });
    expect(stderr).toContain('more than 20000 values');
    expect(stderr).toContain('error: a has 1 problem ');
  });

  it.each([
    ['in the middle', 501, `...${'x'.repeat(100)}Y${'x'.repeat(99)}...`, 103],
    ['at the start', 1, `Y${'x'.repeat(199)}...`, 0],
    ['at the end', 1001, `...${'x'.repeat(199)}Y`, 202],
  ])(
    'shows the part of a line of 1001 characters around a problem %s',
    (_, ...[column, shown, caret]) => {
      const lineText = `${'x'.repeat(column - 1)}Y${'x'.repeat(1001 - column)}`;
      const where = { ...ERROR, file: 'a', line: 1, column, path: 'p' };
      const lines = formatProblem({ ...where, lineText, problem: 'is wrong' }).split('\n');
      expect(lines).toEqual([
        `a:1:${column}: p: is wrong`,
        `  1 | ${shown}`,
        `    | ${' '.repeat(caret)}^`,
      ]);
    },
  );

  it('has the caret below its character after an escape', () => {
    const where = { ...ERROR, file: 'a', line: 1, column: 2, path: 'p', lineText: '\u001bY' };
    const lines = formatProblem({ ...where, problem: 'is wrong' }).split('\n');
    expect(lines.slice(1)).toEqual(['  1 | \\u001bY', '    |       ^']);
  });
});
