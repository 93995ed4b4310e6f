import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSealift } from '../support/child.ts';

describe('output that cannot be written', () => {
  let cwd: string;
  let full: number;
  beforeAll(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'sealift-lost-'));
    full = openSync('/dev/full', 'w');
  });
  afterAll(async () => {
    closeSync(full);
    await rm(cwd, { recursive: true });
  });

  it('ends with that error and where it is explained, and with the exit code of a full disk', async () => {
    const { code, stderr } = await startSealift(['--help'], { cwd, outputs: [full, 'pipe'] }).ended;
    expect([code, stderr]).toEqual([
      7,
      expect.stringMatching(
        /^error: the result could not be printed: ENOSPC.* \[stdout\.lost\]\n {2}hint: run sealift explain stdout\.lost\n$/,
      ),
    ]);
  });

  it('changes no exit code if the lost output describes problems', async () => {
    const child = startSealift(['validate', 'missing.yaml'], { cwd, outputs: ['pipe', full] });
    expect((await child.ended).code).toBe(3);
  });
});
