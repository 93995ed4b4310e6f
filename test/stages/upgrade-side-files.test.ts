import { mkdtemp, readFile, rm, symlink, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sealSideFile, writeSideFiles } from '../../src/stages/report/upgrade-iso.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-side-files-'));
});
afterEach(() => rm(directory, { recursive: true }));

const at = (name: string): string => join(directory, name);

const write = (text = sealSideFile('new\n')): Promise<unknown> =>
  writeSideFiles(
    { resources: { path: at('upgrade-4.22.1.yaml'), text } },
    { output: at('upgrade.iso'), workDir: at('.sealift'), inputs: [], force: false },
  );

describe('the files next to an upgrade ISO that was poured', () => {
  it('replace the files of an earlier build', async () => {
    await write(sealSideFile('old\n'));
    await write();
    expect(await readFile(at('upgrade-4.22.1.yaml'), 'utf8')).toContain('new\n');
  });

  it.each<[string, (path: string) => Promise<unknown>, string]>([
    ['a file', (path) => writeFile(path, 'of a person'), 'output.exists'],
    ['a link', (path) => symlink('elsewhere', path), 'output.link'],
    ['a directory', (path) => mkdir(path), 'output.not-a-file'],
  ])('do not replace %s that was put in their place meanwhile', async (_, put, code) => {
    await put(at('upgrade-4.22.1.yaml'));
    await expect(write()).rejects.toMatchObject({ code, exitCode: 2 });
  });
});
