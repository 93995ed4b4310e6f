import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { READER_NAMES } from './readers.ts';
import { buildChild, runChild } from './run-child.ts';

const CORPUS = fileURLToPath(new URL('corpus', import.meta.url));

/** Kept cases by reader; a name ends in the turn in which it failed. */
const KEPT = READER_NAMES.map((reader) => {
  const folder = join(CORPUS, reader);
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return {
    reader,
    cases: names.map((name) => `${join(folder, name)}#${name.slice(name.lastIndexOf('.') + 1)}`),
  };
}).filter(({ cases }) => cases.length > 0);

describe('every file that a reader once failed on', () => {
  let directory: string;
  let program: string;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'sealift-corpus-'));
    program = await buildChild();
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  it.each(KEPT)(
    'is read or refused by the reader of $reader in 5 s and 500 MiB, with a code',
    async ({ reader, cases }) => {
      const { index, failure } = await runChild(program, { reader, directory, args: cases });
      expect({ failure, path: failure === undefined ? undefined : cases[index] }).toEqual({});
    },
  );
});
