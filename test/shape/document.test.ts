import { describe, expect, test } from 'vitest';
import { importImageSet } from '../../src/config/imageset/import.ts';
import { checkConfig } from '../../src/config/load.ts';
import { ConfigProblems, type DocumentProblem } from '../../src/base/errors.ts';
import { checkInstallationConfig } from '../../src/sites/installation.ts';
import { decodeYaml } from '../../src/shape/document.ts';
import { FREE, mapping } from '../../src/shape/shape.ts';
import { checkImageBased } from '../support/site-inputs.ts';
import { inputOf } from '../support/config-input.ts';

const importProblems = (text: string): readonly DocumentProblem[] => {
  try {
    importImageSet(text, 'a.yaml');
    return [];
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
};

type Reader = {
  readonly read: (text: string) => readonly DocumentProblem[];
  /** A key with any value below it. */
  readonly key: string;
};

/** Every file that is read with positions. */
const READERS: Readonly<Record<string, Reader>> = {
  'an appliance configuration': {
    read: (text) => checkConfig(inputOf(text, '/absent/a.yaml'), { env: {} }).problems,
    key: 'metadata',
  },
  'an image set': { read: importProblems, key: 'kind' },
  "a site's file": {
    read: (text) => checkImageBased({ hostname: text }).problems,
    key: 'networkConfig',
  },
  'an installation configuration': {
    read: (text) => checkInstallationConfig(text, 'a.yaml').problems,
    key: 'networkConfig',
  },
};

/** At `K`, a key with any value below it. */
const FAULTS: readonly (readonly [what: string, text: string, problem: string])[] = [
  ['a quote that is not closed', 'kind: "a', 'not valid YAML: a closing quote, bracket'],
  ['a second document', 'kind: A\n---\nkind: B', 'not valid YAML: a second document begins here'],
  ['a tag', 'kind: !!int 1', 'not valid YAML: this tag has no meaning here'],
  ['lists without end', `x: ${'['.repeat(1000)}`, 'not valid YAML: this is nested too deep'],
  ['too many values', `x: [${'a,'.repeat(90_000)}]`, 'not valid YAML: there are too many values'],
  ['a key that is written twice', 'kind: a\nkind: b', 'is written twice, first in line'],
  ['an alias without an anchor', 'kind: *a', 'not valid YAML: this alias has no anchor'],
  ['an alias to what holds it', 'K: &a [*a]', 'is an alias to a node that contains it'],
  [
    'aliases that unfold to too much',
    `K: [&a [${'x,'.repeat(200)}], ${'*a,'.repeat(200)}]`,
    'the document expands to more than 20000 values or 100 levels',
  ],
  ['a key that is a list', '? [a]\n: b', 'a key must be text'],
  ['a long key', `? ${'a'.repeat(1025)}\n: [b]`, 'a key must be at most 1024 characters long'],
];

describe.each(FAULTS)('a file with %s', (_what, text, problem) => {
  test.each(Object.entries(READERS))(
    'is refused with the same words when it is %s',
    (_name, { read, key }) => {
      const told = read(text.replace('K', key)).map((each) => each.problem);
      expect(told).toContainEqual(expect.stringContaining(problem));
    },
  );
});

test('a mapping that is merged into a configuration is read as if it were written there', () => {
  const text = 'metadata: &m {name: a}\nocpRelease: {<<: *m, version: 4.2}';
  const told = checkConfig(inputOf(text, '/absent/a.yaml'), { env: {} }).problems;
  expect(told.map(({ line, column, path }) => `${line}:${column} ${path}`)).toContain(
    '1:15 ocpRelease.name',
  );
});

test('a mapping goes before what is merged into it, and of what is merged the first goes before the others', () => {
  const text = 'a: &a {b: 1, c: 1}\nd: &d {c: 2, e: 2}\nf: {<<: [*a, *d], b: 3}';
  const source = { text, file: 'm.yaml', publicKeys: new Set<string>() };
  const { value, problems } = decodeYaml(source, mapping(FREE));
  expect(problems).toEqual([]);
  expect(value['f']).toEqual({ b: 3, c: 1, e: 2 });
});

test('mappings that merge each other many times on each level are read without repeated work', () => {
  const levels = Array.from({ length: 9 }, (_, index) => {
    const sources = Array.from({ length: 10 }, () => `*m${index}`).join(', ');
    return `m${index + 1}: &m${index + 1} {<<: [${sources}]}\n`;
  });
  const text = `m0: &m0 {b: 1}\n${levels.join('')}`;
  const source = { text, file: 'm.yaml', publicKeys: new Set<string>() };
  const { value, problems } = decodeYaml(source, mapping(FREE));
  expect(problems).toEqual([]);
  expect(value['m9']).toEqual({ b: 1 });
});
