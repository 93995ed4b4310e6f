import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OLD_BUGS, putBack, sourceOf } from './old-bugs.ts';
import { READER_NAMES } from './readers.ts';
import { buildChild, runChild } from './run-child.ts';

const CORPUS = fileURLToPath(new URL('corpus', import.meta.url));

/** What `npm run fuzz` begins with when it has this seed. */
const BEGINNING = ['--seed', '1', '--count', '15'];

/** Cases that failed once; a name holds the turn in which it failed. */
function listKept(reader: string): readonly string[] {
  const folder = join(CORPUS, reader);
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return names.map((name) => `${join(folder, name)}#${name.split('.')[1] ?? ''}`);
}

describe('mutated files, and files that a reader once failed on,', () => {
  let directory: string;
  let program: string;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'sealift-corpus-'));
    program = await buildChild();
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  it.each(READER_NAMES)(
    'are read or refused by the reader of %s in 5 s and 500 MiB, with a code',
    async (reader) => {
      const args = [...BEGINNING, ...listKept(reader)];
      const { index, failure } = await runChild(program, { reader, directory, args });
      expect([failure, index]).toEqual([undefined, expect.any(Number)]);
    },
  );
});

it.each(OLD_BUGS)('the bug $name can be put back into the sources', ({ edits }) => {
  for (const edit of edits) {
    expect(putBack(readFileSync(sourceOf(edit.file), 'utf8'), edit)).not.toContain(edit.now);
  }
});
