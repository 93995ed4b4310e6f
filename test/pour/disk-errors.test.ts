import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { writeFileAtomic } from '../../src/base/disk/files.ts';
import { startJournal } from '../../src/pour/journal.ts';
import { lockOutput } from '../support/lease.ts';
import {
  explainOutputError,
  explainReadError,
  explainSystemError,
} from '../../src/base/disk/disk-errors.ts';
import { DiskError } from '../../src/base/errors.ts';
import { startSealift } from '../support/child.ts';
import { mayMount } from '../support/may-mount.ts';

describe.skipIf(!mayMount())('a disk that cannot be written', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'sealift-disk-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', directory]);
  });
  afterEach(() => {
    execFileSync('umount', [directory]);
    rmSync(directory, { recursive: true });
  });

  function fill(): void {
    const file = openSync(join(directory, 'filler'), 'w');
    try {
      for (;;) writeSync(file, Buffer.alloc(4096));
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' });
    } finally {
      closeSync(file);
    }
  }

  it('ends the lock, the journal and the files of the seal with exit code 7 when it is full', async () => {
    fill();
    const full = { exitCode: 7, message: expect.stringContaining('disk is full') as string };
    const at = (name: string): string => join(directory, name);
    await expect(lockOutput(at('x.lock'))).rejects.toMatchObject(full);
    await expect(startJournal(at('x'), digestOf('layout'), new Map())).rejects.toMatchObject(full);
    await expect(writeFileAtomic(at('x.sha256'), 'digest')).rejects.toMatchObject(full);
    expect(readdirSync(directory)).not.toContain('x.sha256');
  });

  it('is reported by a journal that was begun before it was full', async () => {
    const journal = await startJournal(join(directory, 'x'), digestOf('layout'), new Map());
    fill();
    for (let extent = 0; extent < 100; extent++) journal.notePrefix(extent, 1, digestOf('prefix'));
    await expect(journal.noteDone([1])).rejects.toMatchObject({ code: 'output.full' });
    await journal.close();
  });

  it('ends them with exit code 7 when it is read-only', async () => {
    execFileSync('mount', ['-o', 'remount,ro', directory]);
    const at = (name: string): string => join(directory, name);
    await expect(lockOutput(at('x.lock'))).rejects.toMatchObject({ code: 'output.unwritable' });
    const journal = startJournal(at('x'), digestOf('layout'), new Map());
    await expect(journal).rejects.toMatchObject({ code: 'output.unwritable' });
    const seal = writeFileAtomic(at('x.sha256'), 'digest');
    await expect(seal).rejects.toMatchObject({ code: 'disk.not-writable', exitCode: 7 });
  });
});

describe('an error of a disk', () => {
  it.each([
    ['ENOSPC', 'output.full'],
    ['EDQUOT', 'output.full'],
    ['EIO', 'output.broken'],
    ['EROFS', 'output.unwritable'],
    ['EFBIG', 'output.too-large'],
  ])('%s is reported as %s, with a hint', (code, ours) => {
    const cause = Object.assign(new Error(code), { code });
    expect(explainOutputError(cause, '/x')).toMatchObject({
      code: ours,
      exitCode: 7,
      cause,
      hint: expect.stringMatching(/\w/) as string,
    });
  });

  it.each([
    ['EIO', 'disk.broken'],
    ['ENOSPC', 'disk.full'],
    ['EROFS', 'disk.not-writable'],
    ['EFBIG', 'disk.file-too-large'],
    ['EMFILE', 'system.open-files'],
    ['ENOMEM', 'system.memory'],
  ])('%s of a call that nobody explained is %s, not a bug', (code, ours) => {
    const said = Object.assign(new Error(code), { code, syscall: 'unlink', path: '/x' });
    const error = new Error('removing', { cause: said });
    expect(explainSystemError(error)).toMatchObject({
      code: ours,
      exitCode: 7,
      message: expect.stringContaining('"/x"') as string,
      hint: expect.stringMatching(/\w/) as string,
    });
  });

  it('does not hide a failure that was explained, a refused connection or a bug', () => {
    const said = Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'read' });
    const known = new DiskError('output.broken', 'x', { cause: said });
    const refused = Object.assign(new Error('no'), { code: 'EACCES', syscall: 'connect' });
    for (const error of [known, refused, new TypeError('a bug'), new RangeError('a bug')])
      expect(explainSystemError(error)).toBe(error);
  });

  it.each(['EMFILE', 'ENFILE'])('%s of an output is a limit of the process', (code) => {
    const cause = Object.assign(new Error(code), { code });
    expect(explainOutputError(cause, '/x')).toMatchObject({ code: 'system.open-files' });
    expect(explainReadError(cause, '/x')).toMatchObject({ code: 'system.open-files' });
  });

  it('is passed on unchanged if it is not foreseen', () => {
    const cause = Object.assign(new Error('EBADF'), { code: 'EBADF' });
    expect(explainOutputError(cause, '/x')).toBe(cause);
  });
});

describe('a process whose addresses are limited', () => {
  it('ends with a code and a hint where WebAssembly gets no memory, not with a stack', async () => {
    const limit = ['sh', '-c', 'ulimit -v 3000000; exec "$0" "$@"'];
    const directory = mkdtempSync(join(tmpdir(), 'sealift-limit-'));
    const run = (...args: string[]) => startSealift(args, { cwd: directory, under: limit }).ended;
    expect((await run('init', 'site')).code).toBe(0); // makes no request, and needs none
    const { code, stderr } = await run('inspect', 'https://127.0.0.1:1/x.iso');
    rmSync(directory, { recursive: true });
    expect([code, stderr]).toEqual([7, expect.stringContaining('[system.memory]\n')]);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});
