import { statSync, watch } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { convertToQcow2 } from '../../../src/stages/5-pour/convert.ts';
import { requireTool } from '../../support/tools.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-convert-'));
});
afterEach(() => rm(directory, { recursive: true }));

describe.skipIf(!requireTool('qemu-img'))('a copy for QEMU', () => {
  test('has the permissions of the image, also while it is written', async () => {
    const output = join(directory, 'disk.raw');
    const folder = join(directory, 'copies');
    await writeFile(output, 'bytes');
    await truncate(output, 64 << 20);
    await mkdir(folder);
    const modes = new Set<number>();
    const watching = watch(folder, (_event, name) => {
      const found = statSync(join(folder, name ?? ''), { throwIfNoEntry: false });
      if (found?.isFile()) modes.add(found.mode & 0o777);
    });
    const { signal } = new AbortController();
    const context = { signal, onProgress: () => undefined, warn: () => undefined };
    const input = { output, qcow2: join(folder, 'disk.qcow2'), mode: 0o600 };
    await convertToQcow2.run(input, { workDir: join(directory, 'work') }, context);
    watching.close();
    expect([...modes]).toEqual([0o600]);
    expect(await readdir(folder)).toEqual(['disk.qcow2']);
    expect(statSync(input.qcow2).mode & 0o777).toBe(0o600);
  });
});
