import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawnSync } from 'node:child_process';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { createSilentProgram } from '../support/silent-program.ts';

const ROOT = join(import.meta.dirname, '../..');
const DOCUMENTS = [
  ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md'],
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

describe.each(DOCUMENTS)('%s', (path) => {
  it('links to files that exist', () => {
    const links = [...read(path).matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)].map(first);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(path), link)))).toEqual([]);
  });

  it('names source files and folders that exist', () => {
    const names = [
      ...read(path).matchAll(/`((?:src|test|templates|schema|demo|bench|scripts)\/[\w./-]*)`/g),
    ];
    expect(names.map(first).filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
  });

  it('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const names = [...read(path).matchAll(/\bnpm run ([\w:]+)/g)].map(first);
    expect(names.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

describe('a document for users', () => {
  it.each([
    'README.md',
    'docs/image-based.md',
    'docs/install.md',
    'docs/operators.md',
    'docs/upgrade.md',
  ])('%s shows commands and options that the program has', (path) => {
    const commands = readBlocks(path).flatMap((block) => [
      ...block.replaceAll('\\\n', ' ').matchAll(/(?:^\$ |^|run .*:Z" )sealift (.+)$/gm),
    ]);
    expect(commands.length).toBeGreaterThan(1);
    for (const [, line = ''] of commands) expect(findUnknown(line), line).toEqual([]);
  });
});

describe('docs/ci.md and docs/nightlies.md', () => {
  const blocks = ['docs/ci.md', 'docs/nightlies.md'].flatMap((path) => [
    ...read(path).matchAll(/^```(\w+)\n([^]*?)^```/gm),
  ]);
  const documents = blocks
    .filter(([, language]) => language === 'yaml')
    .map(([, , text = '']) => parse(text) as Readonly<Record<string, unknown>>);
  const scripts = [
    ...blocks.filter(([, language]) => language === 'sh').map(([, , text = '']) => text),
    ...documents.flatMap(listScripts),
  ];

  it('have pipelines in valid YAML, with scripts that a shell parses', () => {
    expect(documents).toMatchObject([
      { jobs: { ove: { steps: [{}, {}, {}, {}, {}] } } },
      { apiVersion: 'tekton.dev/v1', kind: 'Task', spec: { steps: [{}, {}] } },
      { pullSecret: 'env:PULL_SECRET' },
    ]);
    expect(scripts.length).toBeGreaterThan(8);
    for (const script of scripts) {
      expect([script, spawnSync('sh', ['-n'], { input: script }).status]).toEqual([script, 0]);
    }
  });

  it('show commands and options that the program has', () => {
    const commands = scripts
      .flatMap((script) => [...script.replaceAll('\\\n', ' ').matchAll(/^sealift (.+)$/gm)])
      .map(first);
    expect(commands.length).toBeGreaterThan(8);
    for (const line of commands) expect(findUnknown(line), line).toEqual([]);
  });
});

describe('README.md', () => {
  it('names the demo and the tests in one line each', () => {
    const blocks = readBlocks('README.md').map((block) => block.trim());
    expect(blocks).toContain('npm ci && npm run demo');
    expect(blocks).toContain('npm ci && npm test');
  });
});

describe('commands in documents', () => {
  it.each(DOCUMENTS.filter((path) => path !== 'CHANGELOG.md'))(
    '%s starts the program in only one way, as sealift',
    (path) => {
      expect(read(path)).not.toMatch(/\bnpx (?:--\S+ \S+ )?sealift\b/);
    },
  );

  it('README.md shows how to install and use the program before it describes it', () => {
    const text = read('README.md');
    const [install = '', use = ''] = readBlocks('README.md');
    const { version } = JSON.parse(read('package.json')) as { readonly version: string };
    expect(install).toContain(`npm install --global ./sealift-${version}.tgz`);
    expect(use).toMatch(/^sealift init [^]*^sealift build live-iso /m);
    expect(text.indexOf(use)).toBeLessThan(text.indexOf('## What it is'));
    expect(text.indexOf('## What it is')).toBeLessThan(
      text.indexOf('## Beside openshift/appliance'),
    );
  });
});

describe('docs/environment.md', () => {
  it('has every variable that the program reads', () => {
    const text = read('docs/environment.md') + read('docs/object-stores.md');
    const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => read(`src/${name}`))
      .join('\n');
    const names = [
      ...sources.matchAll(/env\['([A-Z_]+)'\]/g),
      ...sources.matchAll(/variableOf\((?:host\.)?env, '([A-Z_]+)'/g),
      ...sources.matchAll(/'(OPENSHIFT_INSTALL_[A-Z_]+|OCP_SIGNATURE_[A-Z_]+|[A-Z]+_PROXY)'/g),
    ].map(first);
    expect(new Set(names).size).toBeGreaterThan(14);
    const missing = names.filter((name) => name !== 'HOME' && !text.includes(`\`${name}`));
    expect(missing).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  const text = read('ARCHITECTURE.md');

  it('lists every folder of the program and no other', () => {
    const listed = [...text.matchAll(/^\| `(src\/[\w-]+)\/`/gm)].map(first);
    expect(listed.sort()).toEqual(readFolders('src').map((name) => `src/${name}`));
  });

  it('draws every stage of the live ISO', () => {
    const pages = ['live-iso.ts', 'payload.ts', 'ignition.ts'];
    const stages = pages.flatMap((page) =>
      [...read(`src/stages/${page}`).matchAll(/import \{([^}]*)\} from '(\.[^']+)'/g)].flatMap(
        ([, names = '', path = '']) => {
          const file = join('src/stages', path);
          if (!/^src\/stages\/[1-5]-/.test(file)) return [];
          const text = read(file);
          return names.split(',').flatMap((name) => {
            const stage = new RegExp(
              `^export const ${name.trim()}\\b[^]*?^ {2}name: '([^']+)'`,
              'm',
            );
            return stage.exec(text)?.slice(1) ?? [];
          });
        },
      ),
    );
    expect(stages.length).toBeGreaterThan(12);
    expect(stages.filter((name) => !text.includes(name))).toEqual([]);
  });

  it('fits on two pages', () => {
    expect(text.split('\n').length).toBeLessThanOrEqual(130);
  });
});

describe('docs/decisions', () => {
  it('has decisions numbered without a gap, each with context, decision and consequence', () => {
    const names = readdirSync(join(ROOT, 'docs/decisions')).sort();
    names.forEach((name, index) => {
      expect(name).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z0-9-]+\\.md$`));
      const text = read(`docs/decisions/${name}`);
      expect(text).toMatch(/\*\*Context\.\*\*[^]+\*\*Decision\.\*\*[^]+\*\*Consequence\.\*\*/);
    });
  });
});

describe('Containerfile', () => {
  it('copies files that exist', () => {
    const sources = [...read('Containerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
      .flatMap((match) => first(match).split(' '))
      .filter((name) => !name.startsWith('--'));
    expect(sources).toContain('templates');
    expect(sources.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
  });

  it('runs as a user other than root', () => {
    const users = [...read('Containerfile').matchAll(/^USER (\S+)$/gm)].map(first);
    expect(users.at(-1)).toBe('1001');
  });
});

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function first(match: RegExpMatchArray): string {
  return match[1] ?? '';
}

const readBlocks = (path: string): string[] =>
  [...read(path).matchAll(/^```\w+\n([^]*?)^```/gm)].map(first);

/** What steps of a pipeline run, on any level. */
function listScripts(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, below]: [string, unknown]) =>
    (key === 'run' || key === 'script') && typeof below === 'string' ? [below] : listScripts(below),
  );
}

function readFolders(path: string): string[] {
  return readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

/** Words of a command line, without the program's name, that the program does not know. */
function findUnknown(line: string): string[] {
  const [name = '', ...words] = line.split(/\s+/);
  const command = findCommand(program(), name);
  if (!command) return [name];
  const below = findCommand(command, words[0] ?? '');
  const known = (below ?? command).options.map(({ long }) => long);
  return words.filter((word) => word.startsWith('--') && !known.includes(word));
}

const findCommand = (parent: Command, name: string): Command | undefined =>
  parent.commands.find((candidate) => candidate.name() === name);

const program = (): Command => createSilentProgram(ROOT);
