import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatHolder, readSelf } from '../../../src/base/disk/holder.ts';
import { takeLease } from '../../../src/base/disk/lease.ts';
import { createWatch } from '../../../src/base/disk/succession.ts';
import { LEASE, lockOutput } from '../../support/lease.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-lock-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

describe('the lock of an output', () => {
  it('is refused to a second build, which learns the process that has it', async () => {
    const path = join(directory, 'out.iso.lock');
    const unlock = await lockOutput(path);
    await expect(lockOutput(path)).rejects.toMatchObject({
      code: 'output.locked',
      message: expect.stringContaining(String(process.pid)) as string,
    });
    await unlock();
    await (
      await lockOutput(path)
    )();
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is taken over from a process that has ended, even if its id was reused', async () => {
    const path = join(directory, 'out.iso.lock');
    for (const stale of ['999999999 5\n', `${process.pid} 5\n`, 'rubbish']) {
      writeFileSync(path, stale);
      await (
        await lockOutput(path)
      )();
    }
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is known to be lost by a build that stood still until another one took over', async () => {
    const path = join(directory, 'out.iso.lock');
    const lease = await takeLease(path, LEASE);
    await lease.requireHeld();
    const other = { ...(await readSelf()), pid: 7, host: 'night', namespace: '12' };
    writeFileSync(path, formatHolder(other, { nonce: '00', since: 0 }));
    await expect(lease.requireHeld()).rejects.toMatchObject({
      code: 'output.lost',
      message: expect.stringContaining(
        'process 7 on host night (pid namespace 12), since 1970-',
      ) as string,
    });
    await lease.release();
    expect(readdirSync(directory)).toEqual(['out.iso.lock']);
  });

  it('is given to one of many processes that ask at once', async () => {
    const path = join(directory, 'out.iso.lock');
    writeFileSync(path, '999999999 5\n');
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockOutput(path)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('a watch of the journal that another process writes', () => {
  it('takes a line that came together with a renewal as a sign of life, another writer as none', () => {
    const { look } = createWatch({ limit: 100, now: () => 0 });
    const looks = ['1 1\nwriter\n', '2 2\nwriter\nd 0\n', '3 3\nother\nd 0\n'];
    expect(looks.map((sign) => look('journal', sign))).toEqual(['silent', 'renewed', 'silent']);
  });
});
