import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readInputFile } from '../../src/base/disk/files.ts';
import { importImageSet } from '../../src/config/imageset/import.ts';
import { checkConfig, readConfigText } from '../../src/config/load.ts';
import { LIVE_ISO_RULES } from '../../src/stages/rules.ts';
import { readSavedPlan } from '../../src/stages/resolved/held.ts';
import { loadRegistriesConf } from '../../src/registry/client/mirror-files.ts';
import { inputOf } from '../support/config-input.ts';

let directory = '';
const at = (name: string): string => join(directory, name);

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'input-files-'));
  execFileSync('mkfifo', [at('fifo')]);
  writeFileSync(at('large'), '');
  truncateSync(at('large'), 2 ** 40); // a hole: takes no disk, and cannot be read whole
});
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const problemsOf = (text: string): readonly string[] =>
  checkConfig(inputOf(text, at('c.yaml')), { env: {}, rules: LIVE_ISO_RULES }).problems.map(
    ({ path, problem }) => `${path}: ${problem}`,
  );

const HOSTILE = ['fifo', '/proc/self/mem', '/proc/self/status', '/dev/null'].map((name) => ({
  name,
  read: () => (name.startsWith('/') ? name : at(name)),
}));

describe.each(HOSTILE)('a file that a user names and that is $name', ({ read }) => {
  test.each([
    ['a configuration', 'config', (path: string) => readConfigText(path)],
    ['a saved plan', 'plan', (path: string) => readSavedPlan(path, 'live-iso')],
    [
      'registries.conf',
      'registries-conf',
      (path: string) => loadRegistriesConf(path, { env: {}, cwd: '/' }),
    ],
  ])('is refused at once as %s', async (_what, domain, take) => {
    const path = read();
    await expect((async () => take(path))()).rejects.toMatchObject({
      code: `${domain}.unreadable`,
      message: `${path} is not a regular file`,
      exitCode: 3,
    });
  });

  test.each(['pullSecret: file:', 'build: {registriesConf: '])(
    'is a problem of a configuration that says %s',
    (start) => {
      const problems = problemsOf(`${start}${read()}${start.startsWith('build') ? '}' : ''}`);
      expect(problems).toContainEqual(
        expect.stringMatching(/^(pullSecret|build\.registriesConf): .*(regular file|be a file)$/),
      );
    },
  );
});

test.each([
  ['config', () => readConfigText(at('large'))],
  ['plan', () => readSavedPlan(at('large'), 'live-iso')],
])('a file of a TiB is refused by its size, with the code %s.too-large', (domain, read) => {
  expect(read).toThrow(
    expect.objectContaining({ code: `${domain}.too-large`, found: String(2 ** 40) }),
  );
});

test('a file is read whole up to the limit, and refused one byte beyond it', () => {
  writeFileSync(at('five'), 'abcde');
  expect(readInputFile(at('five'), { domain: 'x', limit: 5 }).toString()).toBe('abcde');
  expect(() => readInputFile(at('five'), { domain: 'x', limit: 4 })).toThrow(
    'at most 4 are allowed',
  );
});

test('an alias to the list that contains it is a problem of the configuration', () => {
  expect(problemsOf('additionalImages: &a [*a]')).toContain(
    'additionalImages[0]: is an alias to a node that contains it',
  );
});

test('an alias that is used twice outside its list is not circular', () => {
  const text = 'blockedImages: &a [{name: b}]\nadditionalImages: [&i {name: q.io/a}, *i]';
  expect(problemsOf(text).join('\n')).not.toContain('holds it');
});

const importProblemsOf = (mirror: string): unknown => {
  try {
    importImageSet(
      `apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: ${mirror}`,
      'i.yaml',
    );
    return [];
  } catch (error) {
    return error;
  }
};

test.each([
  ['an alias to the list that holds it', '{additionalImages: &a [*a]}', 'is an alias to'],
  ['a key of every JavaScript object', '{__proto__: {a: 1}}', 'no such key'],
])('an image set with %s is refused with a problem', (_what, mirror, problem) => {
  const error = importProblemsOf(mirror) as { problems: readonly { hint?: unknown }[] };
  expect(error).toMatchObject({
    exitCode: 3,
    problems: expect.arrayContaining([
      expect.objectContaining({ problem: expect.stringContaining(problem) as unknown }),
    ]) as unknown,
  });
  expect(error.problems.filter(({ hint }) => hint !== undefined)).toEqual([]);
});

test.each(['__proto__', 'constructor', 'toString'])(
  'the environment variable %s counts as unset unless the environment itself has it',
  (name) => {
    const { notes } = checkConfig(inputOf(`pullSecret: env:${name}`, '/absent/a.yaml'), {
      env: {},
    });
    expect(notes.map(({ problem }) => problem)).toContain(
      `the environment variable ${name} is not set`,
    );
  },
);
