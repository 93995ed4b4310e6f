import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Exit codes of the classes of errors (`src/base/errors.ts`). */
const EXIT_CODES: Readonly<Record<string, number>> = {
  Usage: 2,
  Config: 3,
  Registry: 4,
  Transient: 4,
  Integrity: 5,
  Tool: 6,
  Disk: 7,
  Difference: 8,
  Loss: 9,
};

/** Names of files, kernel arguments, and keys of other formats, that look like codes. */
const NOT_CODES =
  /\.(?:conf|csv|gz|ign|iso|json|key|list|lock|sh|yaml)$|^mirror\.(?:operators|platform|samples)$|^ignition\.firstboot$/;

/** Codes that are put together where they are thrown, by the template that does it. */
const FAMILIES: Readonly<Record<string, (source: Sources) => readonly string[]>> = {
  '${domain}.unreadable': (source) => source.capture(/domain: '([a-z-]+)'/g, 'unreadable'),
  '${domain}.too-large': (source) => source.capture(/domain: '([a-z-]+)'/g, 'too-large'),
  '${area}.${problem}': (source) =>
    ['malformed', 'window-too-large', 'too-large', 'too-slow'].flatMap((problem) =>
      source.capture(/explainDecodeError\('([a-z]+)'/g, problem),
    ),
  'registry-image.${code}': (source) =>
    source
      .within('mirror/server.ts', /refuse\('([a-z-]+)'/g)
      .map((code) => `registry-image.${code}`),
};

type Sources = {
  readonly capture: (pattern: RegExp, suffix: string) => readonly string[];
  readonly within: (file: string, pattern: RegExp) => readonly string[];
};

/** Exit codes by the stable code; none where the code alone does not tell. */
type ErrorCodes = ReadonlyMap<string, ReadonlySet<number>>;

/**
 * Every stable code that the program can print, read from its sources: literals of a domain in which an
 * error is thrown, families of `FAMILIES`, and what commander finds wrong with a command line.
 *
 * @param root of the repository
 * @throws Error when a code is put together in a way that is not in `FAMILIES`
 */
export function listErrorCodes(root: string): ErrorCodes {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({ name, text: readFileSync(join(root, 'src', name), 'utf8') }));
  const codes = new Map<string, Set<number>>([['interrupted', new Set()]]);
  const add = (code: string, exit?: number): void => {
    const known = codes.get(code) ?? new Set();
    codes.set(code, exit === undefined ? known : known.add(exit));
  };
  const all = files.map(({ text }) => text).join('\n');
  for (const [, name = '', code = ''] of all.matchAll(THROWN)) add(code, EXIT_CODES[name]);
  const domains = new Set([...codes.keys()].map((code) => code.split('.')[0]));
  for (const [, code = '', domain] of all.matchAll(LITERAL)) {
    if (domains.has(domain) && !NOT_CODES.test(code)) add(code);
  }
  for (const code of listFamilies(files)) add(code);
  for (const code of listUsageCodes()) add(code, 2);
  for (const code of listStartCodes(root)) add(code, 6);
  return codes;
}

const CLASS = Object.keys(EXIT_CODES).join('|');
const THROWN = new RegExp(String.raw`new (${CLASS})Error\(\s*'([a-z-]+\.[a-z0-9-]+)'`, 'g');
const COMPOSED = new RegExp(String.raw`new (?:${CLASS})Error\(\s*` + '`([^`]*)`', 'g');
const LITERAL = /'(([a-z-]+)\.[a-z0-9-]+)'/g;

function listFamilies(
  files: readonly { readonly name: string; readonly text: string }[],
): readonly string[] {
  const all = files.map(({ text }) => text).join('\n');
  const find = (text: string, pattern: RegExp): readonly string[] =>
    [...text.matchAll(pattern)].map(([, found = '']) => found);
  const source: Sources = {
    capture: (pattern, suffix) => find(all, pattern).map((domain) => `${domain}.${suffix}`),
    within: (file, pattern) =>
      files.flatMap(({ name, text }) => (name.endsWith(`/${file}`) ? find(text, pattern) : [])),
  };
  const templates = [...new Set(find(all, COMPOSED))];
  return templates.flatMap((template) => {
    const list = FAMILIES[template];
    if (list) return list(source);
    throw new Error(`scripts/error-codes.ts does not know which codes ${template} stands for`);
  });
}

/** Codes of the file that runs before the program, and throws nothing. */
const listStartCodes = (root: string): readonly string[] =>
  [...readFileSync(join(root, 'src/cli/start.cts'), 'utf8').matchAll(/code: '([a-z.-]+)'/g)].map(
    ([, code = '']) => code,
  );

/** What `src/cli/terminal/errors.ts` makes of commander's codes. */
function listUsageCodes(): readonly string[] {
  const folder = join(dirname(createRequire(import.meta.url).resolve('commander')), 'lib');
  const text = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const names = text.join('\n').matchAll(/'commander\.(\w+)'/g);
  return [...names]
    .map(([, name = '']) => name)
    .filter((name) => !/^(?:error|executeSubCommandAsync|help|helpDisplayed|version)$/.test(name))
    .map((name) => `usage.${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
}
