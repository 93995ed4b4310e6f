import { execFileSync } from 'node:child_process';
import { readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LiveIsoReport } from '../../src/stages/report/live-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';

let world: LiveWorld;
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
});
afterAll(() => world.close());

const at = (...names: readonly string[]): string => join(world.directory, ...names);

/** Builds in a work directory of its own; tells which blobs were asked for, and how often. */
async function build(name: string, ...more: readonly string[]): Promise<readonly string[]> {
  const before = world.registry.requests.length;
  const args = ['--output', `${name}.iso`, '--work-dir', `work-${name}`, '--base-iso', 'test.iso'];
  const { exitCode, stderr } = await world.run('build', ...args, '--cache', 'cache', ...more);
  expect([exitCode, stderr]).toEqual([0, expect.not.stringMatching(/error|is not used/)]);
  return world.registry.requests.slice(before).filter((request) => request.includes('/blobs/'));
}

const blobsOf = async (): Promise<readonly string[]> =>
  (await readdir(at('cache/sha256'))).map((name) => at('cache/sha256', name));

const readReport = async (name: string): Promise<LiveIsoReport> =>
  JSON.parse(await readFile(at(`${name}.iso.report.json`), 'utf8')) as LiveIsoReport;

describe('a cache that builds share', () => {
  test('has the blobs of the first build, so that another fetches nothing and makes the same ISO', async () => {
    const asked = await build('a');
    expect(asked.length).toBeGreaterThan(0);
    expect(new Set(asked).size).toBe(asked.length);
    expect(await blobsOf()).toHaveLength(asked.length);
    const first = await readReport('a');
    expect(first.bytes.fetched).toBe(first.bytesToFetch);
    expect(await build('b')).toEqual([]);
    expect((await readReport('b')).bytes.fetched).toBe(0);
    execFileSync('cmp', [at('a.iso'), at('b.iso')]);
  });

  test('is not trusted: damaged blobs are fetched from their source, and found by cache verify', async () => {
    const blobs = await blobsOf();
    for (const path of blobs) await writeFile(path, Buffer.alloc((await stat(path)).size));
    expect((await build('c')).length).toBeGreaterThan(0);
    execFileSync('cmp', [at('a.iso'), at('c.iso')]);
    const verified = await world.run('cache', 'verify', 'cache', '-o', 'json');
    expect(verified.exitCode).toBe(8);
    const { damaged } = JSON.parse(verified.stdout) as { damaged: readonly unknown[] };
    expect(damaged).toHaveLength(blobs.length);
    expect(await blobsOf()).toEqual([]);
    await build('d');
    expect((await world.run('cache', 'verify', 'cache')).exitCode).toBe(0);
  });

  test('loses its least recently used blobs if it is too large, but none that are in use', async () => {
    const [first = '', ...others] = await blobsOf();
    expect((await world.run('cache', 'prune', 'cache', '--max-size', '1B')).exitCode).toBe(0);
    expect(await blobsOf()).toHaveLength(others.length + 1);
    await utimes(first, 1, 1);
    const listed = await world.run('cache', 'ls', 'cache', '-o', 'json');
    const { blobs, bytes } = JSON.parse(listed.stdout) as {
      blobs: readonly { digest: string; size: number }[];
      bytes: number;
    };
    expect(first).toContain(blobs[0]?.digest.slice('sha256:'.length));
    await build('e', '--cache-limit', `${bytes - 1}B`);
    expect(await blobsOf()).toHaveLength(others.length + 1); // it was used again
    await utimes(first, 1, 1);
    const { stdout } = await world.run('cache', 'prune', 'cache', '--max-size', `${bytes - 1}B`);
    expect(stdout).toMatch(/^removed 1 blobs/);
    expect((await blobsOf()).toSorted()).toEqual(others.toSorted());
  });

  test('causes a warning if it cannot be written', async () => {
    await writeFile(at('file'), '');
    await rm(at('work-e'), { recursive: true });
    const { exitCode, stderr } = await world.run(
      ...['build', '--output', 'f.iso', '--work-dir', 'work-f', '--base-iso', 'test.iso'],
      ...['--cache', 'file'],
    );
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('is not used')]);
  });
});
