import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createToolWorld, type ToolWorld } from '../support/tool-world.ts';

let tools: ToolWorld;
let records: string[] = [];
const at = (name: string): string => tools.at(name);
const BUILD = ['build', '--output', 'a.iso', '--base-iso', 'test.iso'] as const;
const PLAN = ['plan', '--output', 'b.iso', '--base-iso', 'test.iso'] as const;

beforeAll(async () => {
  tools = await createToolWorld();
  for (const args of [BUILD, PLAN]) {
    expect(await tools.world.run(...args)).toMatchObject({ exitCode: 0 });
  }
  const all = await readdir(at('.sealift'), { recursive: true, withFileTypes: true });
  records = all
    .filter((each) => each.isFile() && each.name.endsWith('.json'))
    .map(({ parentPath, name }) => join(parentPath, name));
});
afterAll(() => tools.world.close());

/** Replaces a file while the work is done. */
async function replacing(path: string, make: (path: string) => unknown, work: () => Promise<void>) {
  await rename(path, `${path}.kept`);
  try {
    await make(path);
    await work();
  } finally {
    await rm(path, { recursive: true, force: true });
    await rename(`${path}.kept`, path);
  }
}

describe('a record in the work directory', () => {
  it.each([
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
    ['a link to itself', (path: string) => symlink(basename(path), path)],
    ['a link to a device without an end', (path: string) => symlink('/dev/zero', path)],
    ['a directory', (path: string) => mkdir(path)],
  ])('is refused by name, or not used, where it is %s', async (_what, make) => {
    expect(records.length).toBeGreaterThan(5);
    for (const record of [...records, at('a.iso.report.json')]) {
      await replacing(record, make, async () => {
        for (const args of [BUILD, PLAN]) {
          const { exitCode, stderr } = await tools.world.run(...args);
          const ends =
            exitCode === 0 || /\[(?:file\.not-regular|output\.(?:link|not-a-file))\]/.test(stderr);
          expect([record, args[0], ends, stderr]).toEqual([
            ...[record, args[0], true],
            expect.not.stringMatching(/bug:|disk\.not-writable/),
          ]);
        }
      });
    }
  });

  it.each(['{}', '"x"', '[]', 'null', '{"will":1,"unknown":0,"willNot":[null]}'])(
    'is a verdict that is found again where it is %s',
    async (result) => {
      const path = records.find((each) => basename(each).startsWith('rehearse-')) ?? '';
      const entry = JSON.parse(await readFile(path, 'utf8')) as object;
      const text = JSON.stringify({ ...entry, result: JSON.parse(result) as unknown });
      await replacing(
        path,
        (to) => writeFile(to, text),
        async () => {
          const { exitCode, stdout, stderr } = await tools.world.run(...BUILD);
          expect([exitCode, stderr]).toEqual([0, expect.stringContaining('rehearse: done')]);
          expect(stdout).toMatch(/rehearsal +\d+ steps will happen/);
        },
      );
    },
  );
});
