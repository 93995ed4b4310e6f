import { mkdtemp, readFile, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { openOwnFile } from '../../../src/base/disk/open-file.ts';
import { createResumableFile } from '../../../src/base/download/fill-file.ts';

const { signal } = new AbortController();
let directory: string;
let path: string;
let file: FileHandle;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'resumable-'));
  path = join(directory, 'file');
  await writeFile(path, 'an earlier run left this');
  file = await openOwnFile(path);
});
afterEach(async () => {
  await file.close();
  await rm(directory, { recursive: true });
});

describe('a resumable file', () => {
  it('continues after the bytes that an earlier run left, and has the digest of all bytes', async () => {
    const resumed = createResumableFile(file);
    await resumed.rewind(10, signal);
    for (const word of ['book', ' ', 'begins']) await resumed.append(Buffer.from(word));
    await resumed.flush();
    expect(await readFile(path, 'utf8')).toBe('an earlierbook beginshis');
    await resumed.cutOff();
    expect(await readFile(path, 'utf8')).toBe('an earlierbook begins');
    expect(resumed.size()).toBe(21);
    expect(resumed.digest()).toBe(digestOf('an earlierbook begins'));
  });

  it('writes a byte to the disk even if no other byte follows', async () => {
    const resumed = createResumableFile(file);
    await resumed.rewind(24, signal);
    await resumed.append(Buffer.from('!'));
    while ((await stat(path)).size < 25) await sleep(5);
    expect(resumed.digest()).toBe(digestOf('an earlier run left this!'));
  });

  it('reports to its next caller that the disk failed', async () => {
    const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    const resumed = createResumableFile({
      write: () => Promise.reject(full),
    } as unknown as FileHandle);
    await resumed.append(Buffer.alloc(10));
    await expect(resumed.flush()).rejects.toBe(full);
    await expect(resumed.append(Buffer.alloc(1 << 20))).rejects.toBe(full);
  });
});
