import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  openStoredOverlay,
  removeStoredOverlay,
  storeOverlay,
} from '../../../src/media/serve/overlay.ts';
import { bundleProgram } from '../../support/bundle-program.ts';

const KILLER = new URL('../../support/kill-at-step.mjs', import.meta.url).href;
const run = promisify(execFile);

const key = Buffer.alloc(32, 'key');
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-overlay-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const place = (name: string) => ({ directory: join(directory, 'overlays'), name, key });
const parts = (text: string) => [
  { offset: 4096, bytes: Buffer.concat([Buffer.from(text), Buffer.alloc(1 << 20)]) },
  { offset: 9 << 20, bytes: Buffer.from('kargs\n') },
];

describe('an overlay that is stored', () => {
  it('keeps the bytes of its first writer when twenty writers store it at once', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `writer ${index}`);
    const stored = await Promise.all(names.map((name) => storeOverlay(place('a'), parts(name))));
    const digests = new Set(stored.map(({ digest }) => digest));
    const later = await openStoredOverlay(place('a'));
    expect([...digests]).toEqual([later?.digest]);
    expect(await readdir(place('a').directory)).toHaveLength(1);
    expect(await openStoredOverlay(place('b'))).toBeUndefined();
  });

  it('is refused with another key, under another name, and with changed bytes', async () => {
    await storeOverlay(place('a'), parts('pull secret of a customer'));
    const [file = ''] = await readdir(place('a').directory);
    const path = join(place('a').directory, file);
    const bytes = await readFile(path);
    expect(bytes.includes('pull secret')).toBe(false);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const other = { ...place('a'), key: Buffer.alloc(32, 'other') };
    await expect(openStoredOverlay(other)).rejects.toMatchObject({ code: 'overlay.unreadable' });
    await storeOverlay(place('b'), parts('of another'));
    const second = (await readdir(place('a').directory)).find((name) => name !== file) ?? '';
    await rename(path, join(place('a').directory, second));
    const swapped = openStoredOverlay(place('b'));
    await expect(swapped).rejects.toMatchObject({ code: 'overlay.unreadable' });
    bytes.writeUInt8(255 - bytes.readUInt8(40), 40);
    await writeFile(path, bytes, { mode: 0o600 });
    await expect(openStoredOverlay(place('a'))).rejects.toMatchObject({
      code: 'overlay.unreadable',
    });
  });

  it('does not take room for zeros at the end of its parts', async () => {
    await storeOverlay(place('a'), parts('small'));
    const [file = ''] = await readdir(place('a').directory);
    expect((await stat(join(place('a').directory, file))).size).toBeLessThan(200);
    expect((await openStoredOverlay(place('a')))?.parts).toMatchObject([
      { offset: 4096, size: 5 + (1 << 20), bytes: Buffer.from('small') },
      { offset: 9 << 20, size: 6, bytes: Buffer.from('kargs\n') },
    ]);
  });

  it('does not exist after it was removed', async () => {
    await storeOverlay(place('a'), parts('small'));
    await removeStoredOverlay(place('a'));
    expect(await openStoredOverlay(place('a'))).toBeUndefined();
  });

  it('is either complete or absent, no matter when its writer is killed', async () => {
    const writer = await bundleProgram('overlay-writer');
    const write = (step: number, text: string) =>
      run(process.execPath, [writer, directory, text], {
        env: {
          ...process.env,
          NODE_OPTIONS: `--import ${KILLER}`,
          KILL_BELOW: directory,
          KILL_AT: String(step),
        },
      }).then(
        ({ stdout }) => stdout,
        (error: unknown) => (error as { signal: string }).signal,
      );
    const seen: (string | undefined)[] = [];
    for (let step = 1; step < 9; step += 1) {
      const before = await openStoredOverlay({ directory, name: 'one', key });
      const told = await write(step, `killed before step ${step}`);
      const after = await openStoredOverlay({ directory, name: 'one', key });
      if (before) expect(after).toEqual(before);
      seen.push(after?.digest);
      if (told === 'SIGKILL') continue;
      expect(told).toBe(after?.digest);
      break;
    }
    expect(seen.length).toBeGreaterThan(3);
    expect(seen[0]).toBeUndefined();
    expect(seen.at(-1)).toBeDefined();
  });
});
