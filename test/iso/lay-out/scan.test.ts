import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { decodeBaseScan, encodeBaseScan, scanBaseIso } from '../../../src/iso/lay-out/scan.ts';
import { makeIso, makeTestDirectory } from '../../support/iso.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';
import { requireTool } from '../../support/tools.ts';

let directory: string;
let tiny: string;

beforeAll(async () => {
  directory = await makeTestDirectory();
  tiny = await writeIso('tiny.iso', makeTinyIso());
});

afterAll(() => rm(directory, { recursive: true, force: true }));

async function writeIso(name: string, bytes: Uint8Array): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, bytes);
  return path;
}

describe('a scan of a base ISO', () => {
  it('cuts the ISO at the places at which files begin and end, and digests every piece and the whole', async () => {
    const base = await scanBaseIso(tiny);
    const bytes = makeTinyIso();
    expect(base.pieces.map(({ offset, size, paths }) => [offset, size, paths])).toEqual([
      [0, 16 * 2048, []],
      [16 * 2048, 2 * 2048, []],
      [18 * 2048, 4 * 2048, []],
      [22 * 2048, 5, ['/readme.txt']],
      [22 * 2048 + 5, 2043, []],
      [23 * 2048, 2048, ['/sub/data.bin']],
    ]);
    for (const { offset, size, digest, bytes: kept } of base.pieces) {
      expect(digest).toBe(digestOf(bytes.subarray(offset, offset + size)));
      expect(kept && digestOf(kept)).toBe(digest);
    }
    expect(base.digest).toBe(digestOf(bytes));
  });

  it('is restored from JSON without reading the large files again', async () => {
    const base = await scanBaseIso(tiny);
    const scan: unknown = JSON.parse(JSON.stringify(encodeBaseScan(base)));
    expect(await decodeBaseScan(tiny, scan as typeof base)).toEqual(base);
  });

  it('is not restored for a file that has changed', async () => {
    const scan = encodeBaseScan(await scanBaseIso(tiny));
    const bytes = makeTinyIso();
    bytes[23 * 2048] = 8;
    const changed = decodeBaseScan(await writeIso('changed.iso', bytes), scan);
    await expect(changed).rejects.toMatchObject({ code: 'iso.base-changed' });
    const longer = await writeIso('longer.iso', Buffer.concat([makeTinyIso(), Buffer.alloc(2048)]));
    await expect(decodeBaseScan(longer, scan)).rejects.toMatchObject({ code: 'iso.base-changed' });
  });
});

describe('a hostile base ISO', () => {
  it('that ends before its volume does is refused', async () => {
    const path = await writeIso('short.iso', makeTinyIso().subarray(0, 23 * 2048));
    await expect(scanBaseIso(path)).rejects.toMatchObject({ exitCode: 5 });
  });

  it('with a file after its end is refused', async () => {
    const bytes = makeTinyIso();
    // The record of /sub/data.bin is the third of its directory; its extent is 2 bytes in.
    let at = 21 * 2048;
    for (let skipped = 0; skipped < 2; skipped += 1) at += bytes[at] ?? 0;
    new DataView(bytes.buffer).setUint32(at + 2, 4_000_000, true);
    const scan = scanBaseIso(await writeIso('far.iso', bytes));
    await expect(scan).rejects.toMatchObject({ exitCode: 5 });
  });

  it('whose directory contains itself is refused', async () => {
    const bytes = makeTinyIso();
    let at = 20 * 2048;
    for (let skipped = 0; skipped < 3; skipped += 1) at += bytes[at] ?? 0;
    new DataView(bytes.buffer).setUint32(at + 2, 20, true);
    const scan = scanBaseIso(await writeIso('loop.iso', bytes));
    await expect(scan).rejects.toMatchObject({ code: 'iso.looping-directory' });
  });

  it('without Rock Ridge is refused with a hint', async () => {
    const bytes = makeTinyIso();
    bytes[20 * 2048 + 34] = 0x58;
    const scan = scanBaseIso(await writeIso('plain.iso', bytes));
    await expect(scan).rejects.toMatchObject({
      code: 'iso.no-rock-ridge',
      hint: 'use a CoreOS live ISO as base',
    });
  });
});

const hasGenisoimage = requireTool('genisoimage');

describe.skipIf(!hasGenisoimage)('a base that another program made', () => {
  it('has the bytes of small files only', async () => {
    const files = { small: 'x', large: Buffer.alloc(1_100_000, 1), other: 1_200_000 };
    const path = await makeIso(directory, { files });
    const base = await scanBaseIso(path);
    const kept = base.pieces.filter(({ bytes }) => bytes).flatMap(({ paths }) => paths);
    expect(kept.sort()).toEqual(['/small']);
    expect(base.digest).toBe(digestOf(await readFile(path)));
  });

  it('has its relocated directories at their real places', async () => {
    const files = { 'a/b/c/d/e/f/g/h/i/j/deep': 'x', 'a/b/shallow': 'y' };
    const args = ['-r', '-V', 'DEEP'];
    const base = await scanBaseIso(await makeIso(directory, { files, args }, 'deep.iso'));
    const paths = base.pieces.flatMap((piece) => piece.paths);
    expect(paths.sort()).toEqual(['/a/b/c/d/e/f/g/h/i/j/deep', '/a/b/shallow']);
    expect(base.root.children.map(({ name }) => name)).toEqual(['a']);
  });
});
