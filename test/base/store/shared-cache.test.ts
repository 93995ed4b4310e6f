import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../../src/base/digest.ts';
import { sumSizes } from '../../../src/base/lists.ts';
import { readSelf } from '../../../src/base/disk/holder.ts';
import { createWatch, tryLease } from '../../../src/base/disk/succession.ts';
import { bundleProgram } from '../../support/bundle-program.ts';
import { patternOf } from '../../support/scripted-registry.ts';

const KIB = 1024;

let user: string;
let directory: string;
beforeAll(async () => {
  user = await bundleProgram('cache-user');
  directory = await mkdtemp(join(tmpdir(), 'shared-cache-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('processes that share a cache', () => {
  const contents = Array.from({ length: 24 }, (_, index) =>
    patternOf(64 * KIB + index).fill(index, 0, 100),
  );
  const blobs = contents.map((bytes) => ({
    mediaType: 'application/octet-stream',
    digest: digestOf(bytes),
    size: bytes.length,
  }));
  /** The first request for this blob gets so many bytes, and then nothing for ever. */
  const HELD = 5;
  const HELD_BYTES = 40 * KIB;
  let server: Server;
  let served = 0;
  let hasHeld = (): void => undefined;
  const held = new Promise<void>((resolve) => (hasHeld = resolve));
  let holds = true;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const bytes = contents.find((_, index) =>
        request.url?.endsWith(`/blobs/${blobs[index]?.digest ?? ''}`),
      );
      if (!bytes) return void response.writeHead(200).end();
      const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
      response.writeHead(start > 0 ? 206 : 200, {
        'content-length': bytes.length - start,
        ...(start > 0 && {
          'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
        }),
      });
      const isHeld = bytes === contents[HELD] && holds;
      const given = bytes.subarray(start, isHeld ? HELD_BYTES : undefined);
      served += given.length;
      if (!isHeld) return void response.end(given);
      holds = false;
      response.write(given, hasHeld);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const start = (first: number) => {
    const { port } = server.address() as AddressInfo;
    const args = [directory, `127.0.0.1:${port}`, JSON.stringify(blobs), String(first)];
    const child = spawn(process.execPath, [user, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
    return { child, ended: once(child, 'close').then(() => text) };
  };

  it('fetch each blob once, even when one of them is killed in the middle of a blob', async () => {
    const victim = start(HELD);
    await held;
    const others = [0, 8, 16].map(start);
    const partial = join(directory, 'partial');
    // What it has received is on the disk before it dies, so that the heir need not fetch it again.
    while (!(await hasSize(partial, HELD_BYTES))) await new Promise(setImmediate);
    victim.child.kill('SIGKILL');
    expect(await Promise.all(others.map(({ ended }) => ended))).toEqual(['done', 'done', 'done']);
    expect(served).toBe(sumSizes(blobs));
    const names = (await readdir(join(directory, 'sha256'))).sort();
    expect(names).toEqual(blobs.map(({ digest }) => hexOf(digest)).sort());
    const lines = names.map((name) => `${name}  ${join(directory, 'sha256', name)}\n`).join('');
    execFileSync('sha256sum', ['--check', '--quiet'], { input: lines });
    expect(await readdir(partial)).toEqual([]);
    expect(await readdir(join(directory, 'claims'))).toEqual([]);
  });
});

async function hasSize(folder: string, size: number): Promise<boolean> {
  const listed = execFileSync('find', [folder, '-type', 'f', '-size', `+${size - 1}c`], {
    encoding: 'utf8',
  });
  return Promise.resolve(listed !== '');
}

describe('the lease of another machine', () => {
  it('ends when its file has stayed the same for the lease, as this machine counts it', async () => {
    const folder = join(directory, 'others');
    await mkdir(folder);
    await writeFile(join(folder, 'blob'), '1 1 feedfeedfeedfeed 0\n');
    let time = 0;
    const watch = createWatch({ limit: 100, now: () => time });
    const tryAt = async (at: number): Promise<boolean> => {
      time = at;
      return 'release' in (await tryLease(join(folder, 'blob'), watch));
    };
    expect(await tryAt(0)).toBe(false);
    expect(await tryAt(99)).toBe(false);
    await utimes(join(folder, 'blob'), 5, 5); // it lives; its clock has no say
    expect(await tryAt(150)).toBe(false);
    expect(await tryAt(249)).toBe(false);
    expect(await tryAt(250)).toBe(true);
  });

  it('is not taken from a living process of this machine, and at once from one that has ended', async () => {
    const folder = join(directory, 'ours');
    await mkdir(folder);
    const path = join(folder, 'blob');
    const lease = await tryLease(path, createWatch());
    expect(await tryLease(path, createWatch({ limit: 0 }))).toMatchObject({ kind: 'alive' });
    if ('release' in lease) await lease.release();
    expect(await readdir(folder)).toEqual([]);
    await writeFile(path, `999999999 1 ${(await readSelf()).space} 0\n`);
    expect(await tryLease(path, createWatch())).toHaveProperty('release');
  });
});
