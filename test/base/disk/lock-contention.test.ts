import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../../src/base/digest.ts';
import { bundleProgram } from '../../support/bundle-program.ts';
import { lockOutput } from '../../support/lease.ts';

const { link } = fs;

/** Has link(2) fail, as on a file system that answers so. */
function replaceLink(replacement: typeof link): void {
  fs.link = replacement;
  syncBuiltinESMExports();
}
const refuseLinks = (code: string): void => {
  replaceLink(() => Promise.reject(Object.assign(new Error(code), { code })));
};

const DEAD = '999999999 5\n';

let contender: string;
let directory: string;
let lock: string;
beforeAll(async () => {
  contender = await bundleProgram('lock-contender');
});
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-contention-'));
  lock = join(directory, 'out.iso.lock');
});
afterEach(() => {
  replaceLink(link);
  rmSync(directory, { recursive: true, force: true });
});

const heirOf = (text: string): string => `${lock}.${hexOf(digestOf(text)).slice(0, 16)}`;

async function contend(rounds: number): Promise<string> {
  const child = spawn(process.execPath, [contender, lock, String(rounds)]);
  let output = '';
  child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
  await once(child, 'close');
  return output;
}

describe('a stale lock that several processes find', () => {
  it('is never held by two of them, even if they often die with it', async () => {
    writeFileSync(lock, DEAD);
    let held = '';
    for (let generation = 0; generation < 3; generation++) {
      held += (await Promise.all([contend(150), contend(150)])).join('');
    }
    expect(held).toContain('+');
    expect(held).not.toContain('-');
    await (
      await lockOutput(lock)
    )();
    expect(readdirSync(directory)).toEqual([]);
  });

  it('goes to the next one if its heir has died, too', async () => {
    writeFileSync(lock, DEAD);
    writeFileSync(heirOf(DEAD), '999999998 5\n');
    await (
      await lockOutput(lock)
    )();
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is refused while a living heir is about to take it', async () => {
    const other = join(directory, 'other.lock');
    const unlock = await lockOutput(other);
    writeFileSync(lock, DEAD);
    writeFileSync(heirOf(DEAD), readFileSync(other));
    await expect(lockOutput(lock)).rejects.toMatchObject({ code: 'output.locked', exitCode: 7 });
    await unlock();
  });
});

describe('the lock of an output on a file system', () => {
  it.each(['EPERM', 'EOPNOTSUPP', 'ENOSYS'])(
    'without hard links (%s) works as well',
    async (code) => {
      refuseLinks(code);
      writeFileSync(lock, DEAD);
      const results = await Promise.allSettled(Array.from({ length: 4 }, () => lockOutput(lock)));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      await expect(lockOutput(lock)).rejects.toMatchObject({ code: 'output.locked' });
      expect(readdirSync(directory)).toEqual(['out.iso.lock']);
    },
  );

  it.each([
    ['ENOSPC', 'output.full'],
    ['EDQUOT', 'output.full'],
    ['EROFS', 'output.unwritable'],
    ['EIO', 'output.broken'],
  ])('that answers %s ends with %s', async (code, ours) => {
    refuseLinks(code);
    await expect(lockOutput(lock)).rejects.toMatchObject({ code: ours, exitCode: 7 });
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('a process that takes a lock', () => {
  it('removes files that killed processes left next to it, and no file of a living process', async () => {
    const living = `out.iso.lock.${process.pid}.0123456789abcdef`;
    for (const name of [
      'out.iso.lock.999999999.0123456789abcdef',
      'out.iso.lock.0123456789abcdef',
    ]) {
      writeFileSync(join(directory, name), DEAD);
    }
    writeFileSync(join(directory, living), '');
    writeFileSync(`${lock}.notes`, 'of the user');
    await (
      await lockOutput(lock)
    )();
    expect(readdirSync(directory).sort()).toEqual([living, 'out.iso.lock.notes'].sort());
  });
});
