import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';
import type { ReaderName } from './seeds.ts';

/** A defect that the program once had, as what its sources said then. */
export type OldBug = {
  readonly name: string;
  /** Where fuzzing should find it. */
  readonly reader: ReaderName;
  readonly edits: readonly Edit[];
};

type Edit = {
  /** Below `src`. */
  readonly file: string;
  /** Is there once. */
  readonly now: string;
  readonly then: string;
};

/** Whatever the limits are, and whichever there are. */
const NO_BUDGET: Edit = {
  file: 'iso/read/source.ts',
  now: 'createBudget(\n    LIMITS,',
  then: 'createBudget(\n    Object.fromEntries(Object.keys(LIMITS).map((kind) => [kind, Infinity])),',
};

export const OLD_BUGS: readonly OldBug[] = [
  {
    name: 'directories that overlap',
    reader: 'iso',
    edits: [
      {
        file: 'iso/directory/claims.ts',
        now: 'Math.max(1, Math.ceil(extent.size / SECTOR_SIZE))',
        then: '1',
      },
      NO_BUDGET,
    ],
  },
  {
    name: 'a directory that contains itself',
    reader: 'iso',
    edits: [
      { file: 'iso/directory/claims.ts', now: 'if (before !== undefined)', then: 'if (false)' },
      { file: 'iso/directory/claims.ts', now: 'if (length > MAX_PATH)', then: 'if (false)' },
      NO_BUDGET,
    ],
  },
  {
    name: 'archives of an initrd that are bounded one by one',
    reader: 'initrd',
    edits: [
      {
        file: 'ignition/initrd.ts',
        now: 'await decodeArchive(bytes, offset, budget)',
        then: 'await decodeArchive(bytes, offset, createInitrdBudget())',
      },
      { file: 'ignition/initrd.ts', now: 'bytes: 32 << 20', then: 'bytes: 1 << 29' },
    ],
  },
  {
    name: 'a link without a target',
    reader: 'layer',
    edits: [{ file: 'registry/layers/changeset.ts', now: 'if (!target)', then: 'if (false)' }],
  },
  {
    name: 'a header that is searched for each of its columns',
    reader: 'table',
    edits: [
      {
        file: 'table/table.ts',
        now: 'seen.has(column)',
        then: 'columns.indexOf(column) < index',
      },
      {
        file: 'table/table.ts',
        now: 'columns.length > MAX_COLUMNS',
        then: 'columns.length > Infinity',
      },
    ],
  },
  {
    name: 'faults of YAML that have a stack each',
    reader: 'table',
    edits: [
      {
        file: 'shape/parse-text.ts',
        now: 'Error.stackTraceLimit = 0',
        then: 'Error.stackTraceLimit = 10',
      },
    ],
  },
  {
    name: 'lists of YAML within each other without a limit',
    reader: 'table',
    edits: [
      {
        file: 'shape/parse-text.ts',
        now: 'parser.stack.length > MOST_NESTED',
        then: 'false',
      },
    ],
  },
  {
    name: 'keys of YAML that are lists of aliases',
    reader: 'catalog',
    edits: [
      {
        file: 'shape/parse-text.ts',
        now: 'countVisits(aliases, lexemes) > MOST_VISITS',
        then: 'countVisits(aliases, lexemes) > Infinity',
      },
      {
        file: 'fbc/read/yaml.ts',
        now: 'stringKeys: true',
        then: 'stringKeys: false',
      },
    ],
  },
  {
    name: 'a unit without a name',
    reader: 'ignition',
    edits: [
      {
        file: 'ignition/schema.ts',
        now: 'const UNIT = record({ name: TEXT,',
        then: 'const UNIT = record({ name: optional(TEXT),',
      },
    ],
  },
  {
    name: 'a configuration that is nested without a limit',
    reader: 'ignition',
    edits: [{ file: 'ignition/config.ts', now: 'depth: 250', then: 'depth: Infinity' }],
  },
  {
    name: 'secrets and names of any size',
    reader: 'auth',
    edits: [
      { file: 'base/text/secret-forms.ts', now: 'given.length > LONGEST', then: 'false' },
      { file: 'base/text/secret-forms.ts', now: 'name.length > LONGEST_NAME', then: 'false' },
      { file: 'base/text/secret-forms.ts', now: '[...new Set(bases)]', then: 'bases' },
    ],
  },
];

/** The text of a source with the bug in it. */
export function putBack(text: string, { now, then, file }: Edit): string {
  const [before, after, ...more] = text.split(now);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error(`${file} should have "${now}" once`);
  }
  return before + then + after;
}

export const sourceOf = (file: string): string =>
  fileURLToPath(new URL(`../../src/${file}`, import.meta.url));

/** Builds sources as they were with the bug. */
export const bugPlugin = ({ edits }: OldBug): Plugin => ({
  name: 'old-bug',
  setup(build) {
    for (const path of new Set(edits.map(({ file }) => sourceOf(file)))) {
      const own = edits.filter(({ file }) => sourceOf(file) === path);
      build.onLoad({ filter: new RegExp(`${path.replaceAll('.', String.raw`\.`)}$`) }, () => ({
        contents: own.reduce(putBack, readFileSync(path, 'utf8')),
        loader: 'ts',
      }));
    }
  },
});
