import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { createProgram } from '../../src/cli/program.ts';
import { runLine } from '../support/run-line.ts';
import { runInTerminal } from '../support/terminal.ts';
import { requireTool } from '../support/tools.ts';

const redaction = createRedaction();

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const list = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length + 1));

const run = (...args: readonly string[]) => runLine(args, { cwd: '/' });

const topics = readdirSync(join(ROOT, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => name.slice(0, -3));

describe('sealift help', () => {
  it('lists every document by name, with its title', async () => {
    const { stdout, exitCode } = await run('help');
    expect(exitCode).toBe(0);
    const listed = stdout.split('\n').flatMap((line) => /^([\w-]+) {2,}\S/.exec(line)?.[1] ?? []);
    expect(listed).toEqual([...topics].sort());
    expect(stdout).toMatch(/^upgrade +Upgrading a cluster from an ISO$/m);
  });

  it.each(topics)('prints %s unchanged into a pipe', async (topic) => {
    expect(await run('help', topic)).toMatchObject({
      exitCode: 0,
      stdout: read(`docs/${topic}.md`),
    });
  });

  it('takes the name of a file, too', async () => {
    const { stdout } = await run('help', 'docs/upgrade.md');
    expect(stdout).toBe(read('docs/upgrade.md'));
  });

  it('prints the help of a command that has no guide', async () => {
    const { stdout, exitCode } = await run('help', 'config-iso', 'build');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('Usage: sealift config-iso build [options] <sites>');
  });

  it('names the options of a command that has a guide of the same name', async () => {
    const { stderr } = await run('help', 'verify');
    expect(stderr).toBe('note: options of the command: sealift verify --help\n');
  });

  it('ends with 2 for other words, and names the nearest guide', async () => {
    const { stderr, exitCode } = await run('help', 'upgade');
    expect(exitCode).toBe(2);
    expect(stderr).toBe(
      'error: unknown guide or command "upgade" [usage.unknown-topic]\n  hint: did you mean "upgrade"?\n',
    );
  });

  it.skipIf(!requireTool('python3'))(
    'draws a document within the width of a terminal',
    async () => {
      const written = await runInTerminal(60, ['src/cli/main.ts', 'help', 'upgrade']);
      const text = written.map((one) => one.text).join('');
      expect(text).toContain('\u001b[1mUpgrading a cluster from an ISO\u001b[22m');
      const lines = stripVTControlCharacters(text).split('\r\n');
      // Commands are not wrapped, so that they can be copied.
      const wide = lines.filter((line) => line.length > 60 && !line.startsWith('    '));
      expect(wide.filter((line) => line.trim().includes(' '))).toEqual([]);
      expect(lines.join('\n')).not.toMatch(/\]\(|^#|\*\*|^\|/m);
      const plain = await runInTerminal(60, ['src/cli/main.ts', 'help', 'upgrade'], {
        TERM: 'dumb',
      });
      expect(plain.map((one) => one.text.replaceAll('\r', '')).join('')).toBe(
        read('docs/upgrade.md'),
      );
    },
  );
});

describe('sealift explain', () => {
  const codes = [...read('docs/troubleshooting.md').matchAll(/^\| `([^`]+)`/gm)].map(
    ([, code = '']) => code,
  );

  it('prints the row of every code as data', async () => {
    expect(codes.length).toBeGreaterThan(600);
    const { stdout } = await run('explain', 'registry.unauthorized', '-o', 'json');
    expect(JSON.parse(stdout)).toEqual({
      code: 'registry.unauthorized',
      area: 'Registries, and the registry of a medium or workspace',
      exitCodes: [4],
      meaning: 'The registry wants credentials, or refuses those it was given.',
      whatToDo: 'Check the pull secret; it may have expired.',
    });
    for (const code of codes) {
      const { stdout, exitCode } = await run('explain', code, '-o', 'json');
      const row = JSON.parse(stdout) as { exitCodes: readonly number[]; meaning: string };
      expect([code, exitCode, row.exitCodes.every(Number.isInteger)]).toEqual([code, 0, true]);
      expect(row.meaning).not.toBe('');
    }
  });

  it('prints a code as text, with the meaning of its exit code', async () => {
    const { stdout } = await run('explain', '[interrupted]');
    expect(stdout.split('\n')).toEqual([
      'code        interrupted',
      'about       Interruption',
      'meaning     SIGINT or SIGTERM asked the program to stop.',
      'what to do  Run the same command again: it continues.',
      'exit code   130, interrupted: SIGINT',
      'exit code   143, interrupted: SIGTERM',
      '',
    ]);
  });

  it.each([
    ['registry.unauthorised', /did you mean "registry.unauthorized"\?/],
    ['unauthorized', /did you mean "proxy.unauthorized", "registry.unauthorized"/],
    ['proxy.nonsense', /did you mean "proxy\.[a-z-]+", "proxy\./],
    ['nonsense', /list all codes with "sealift help troubleshooting"/],
  ])('ends with 2 for the unknown code %s, and names near ones', async (code, hint) => {
    const { stderr, exitCode } = await run('explain', code);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`unknown error code "${code}" [usage.unknown-code]`);
    expect(stderr).toMatch(hint);
  });

  it('is the hint of a failure that has no other', async () => {
    const { stderr } = await run('explain', 'a', 'b');
    expect(stderr).toContain('hint: run the command with --help');
    const missing = await runLine(['validate', 'absent.yaml', '--set', 'a'], { cwd: '/' });
    expect(missing.stderr).toMatch(/hint: /);
  });
});

describe('messages of the program', () => {
  const sources = list('src').filter((path) => path.endsWith('.ts'));
  const texts = [
    ...sources.flatMap((path) => listTexts(path).map((text) => ({ path, text }))),
    ...[...list('templates'), ...list('schema')].map((path) => ({ path, text: read(path) })),
  ];

  it('name documents by the command that prints them, not by files of the repository', () => {
    const named = texts.filter(({ text }) =>
      /\bdocs\/[\w-]*|\b(?:README|ARCHITECTURE)\.md/.test(text),
    );
    expect(
      named.filter(({ text }) => !text.includes('://') && text !== 'docs/').map(({ path }) => path),
    ).toEqual([]);
  });

  it('name guides and codes that exist', () => {
    const codes = read('docs/troubleshooting.md');
    const all = texts.map(({ text }) => text).join('\n');
    const guides = [...all.matchAll(/sealift help ([a-z][\w-]*)/g)].map(([, name = '']) => name);
    expect(guides).toEqual(expect.arrayContaining(['install', 'upgrade', 'troubleshooting']));
    expect(guides.filter((name) => !topics.includes(name))).toEqual([]);
    const explained = [...all.matchAll(/sealift explain ([a-z][\w.-]*)/g)].map(
      ([, code = '']) => code,
    );
    expect(explained.filter((code) => !codes.includes(`\`${code}\``))).toEqual([]);
  });
});

describe('commands in messages', () => {
  const sources = list('src').filter((path) => path.endsWith('.ts'));
  const texts = sources.flatMap((path) => listTexts(path).map((text) => ({ path, text })));

  it('are commands that the program has', () => {
    const program = createProgram({
      ...{
        stdout: process.stdout,
        stderr: process.stderr,
        env: {},
        cwd: '/',
        redaction,
        isTTY: false,
      },
      ...{ now: () => 0, signal: new AbortController().signal },
    });
    const named = texts.flatMap(({ text }) =>
      [...text.matchAll(/"sealift ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)].map(
        ([, ...words]) => words,
      ),
    );
    expect(named.length).toBeGreaterThan(40);
    const unknown = named.filter(([name, below]) => {
      const command = program.commands.find((one) => one.name() === name);
      const names = command?.commands.map((one) => one.name()) ?? [];
      return !command || (below !== undefined && names.length > 0 && !names.includes(below));
    });
    expect(unknown).toEqual([]);
  });

  it('have their paths quoted in one place', () => {
    const joined = texts.filter(({ text }) =>
      /(?:["(]|run:? |next: |then )sealift [^"]*$/.test(text),
    );
    // A text that ends within a command is followed by a value.
    expect(joined.filter(({ text }) => text.endsWith(' '))).toEqual([]);
  });
});

/** The texts of a source file that may be printed: literals and templates, without comments. */
function listTexts(path: string): readonly string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (
      ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)
    )
      texts.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest));
  return texts;
}
