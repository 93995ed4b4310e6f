import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiskError } from '../../../src/base/errors.ts';
import { createSiteWriter } from '../../../src/sites/state/writer.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-writer-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

test('no file of a site appears when another run has taken the folder over', async () => {
  const lost = new DiskError('output.lost', 'process 7 took over');
  const writer = createSiteWriter({ requireHeld: () => Promise.reject(lost) });
  const site = {
    shownAs: 'alpha.iso',
    directories: [],
    state: [{ path: join(directory, 'state.json'), data: '{}', isNew: true }],
    files: [{ path: join(directory, 'alpha.iso'), data: 'iso' }],
  };
  await expect(writer.write(site)).rejects.toMatchObject({ code: 'output.lost' });
  expect(readdirSync(directory)).toEqual([]);
});
