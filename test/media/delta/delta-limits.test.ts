import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { RandomAccess } from '../../../src/base/random-access.ts';
import { formatMediaIndex } from '../../../src/media/media-index.ts';
import { formatDelta, readDeltaHead, type DeltaHead } from '../../../src/media/delta/file.ts';
import { makePatches } from '../../../src/media/delta/make.ts';
import { renderCarried } from '../../../src/media/delta/carried.ts';
import { openDelta } from '../../../src/media/delta/open.ts';
import type { DeltaIso } from '../../../src/media/delta/open.ts';
import { fakeDigest } from '../../support/sparse-medium.ts';

const MIB = 2 ** 20;

const inMemory = (bytes: Uint8Array): RandomAccess => ({
  path: 'x.delta',
  size: bytes.length,
  read: (offset, size) => Promise.resolve(Buffer.from(bytes.subarray(offset, offset + size))),
  close: () => Promise.resolve(),
});

const old: DeltaIso = {
  identity: fakeDigest('old'),
  built: undefined,
  name: { product: 'live-iso', version: '4.21.3', architecture: 'x86_64' },
  size: 2048,
  index: { offset: 0, size: 1, digest: fakeDigest('old'), paths: [] },
  extents: [],
};
const iso = inMemory(Buffer.alloc(0));

/** A delta of an index alone, whose other extents of 16 MiB each are patches of so many bytes. */
function deltaOf(count: number, packed = MIB / 16, size = (count + 1) * 16 * MIB): RandomAccess {
  const extents = Array.from({ length: count }, (_, at) => ({
    ...{ offset: (at + 1) * 16 * MIB, size: 16 * MIB, digest: fakeDigest(`${at}`), paths: [] },
  }));
  const digest = digestOf('bytes');
  const index = Buffer.from(
    formatMediaIndex({
      format: 1,
      product: 'live-iso',
      base: { digest, size: 2048 },
      release: { version: '4.21.3', reference: `quay.io/a/b@${digest}`, architecture: 'amd64' },
      images: [],
      extents: [{ offset: 4096, size: 8192, paths: ['/sealift/index.json'] }, ...extents],
    }).padEnd(8192),
  );
  const patch = { old: { offset: 0, size: 1 }, size: packed };
  const head: DeltaHead = {
    from: old.identity,
    size,
    index: { offset: 4096, size: index.length, digest: digestOf(index) },
    patches: new Map(extents.map((_, at) => [at + 1, patch] as const)),
    bodySize: index.length + count * packed,
  };
  return inMemory(Buffer.concat([formatDelta(head), index, Buffer.alloc(count * packed)]));
}

describe('a delta', () => {
  it('may carry an index of up to 48 MiB, but not as a patch', async () => {
    const bytes = Buffer.alloc(20 * MIB, 'index');
    const carried = { offset: 4096, size: bytes.length, digest: digestOf(bytes), position: 0 };
    const delta = inMemory(bytes);
    expect((await renderCarried({ delta, iso }, carried)).length).toBe(20 * MIB);
    const patch = { old: { offset: 0, size: 1 }, size: 1 };
    const refused = { code: 'delta.malformed' };
    for (const other of [
      { ...carried, patch },
      { ...carried, size: 49 * MIB },
    ])
      await expect(renderCarried({ delta, iso }, other)).rejects.toMatchObject(refused);
  });

  it('may have patches that make at most 512 MiB', async () => {
    const { carried } = await openDelta({ delta: deltaOf(32), iso }, old);
    expect(carried).toHaveLength(33);
    await expect(openDelta({ delta: deltaOf(33), iso }, old)).rejects.toMatchObject({
      code: 'delta.malformed',
      message: expect.stringContaining('536870912') as string,
    });
  });

  it('of a few bytes makes no more than 32 MiB with patches', async () => {
    expect((await openDelta({ delta: deltaOf(2, 1), iso }, old)).carried).toHaveLength(3);
    await expect(openDelta({ delta: deltaOf(3, 1), iso }, old)).rejects.toMatchObject({
      code: 'delta.malformed',
      message: 'x.delta is not a complete delta: it has patches that make more than 33555182 bytes',
    });
  });

  it('makes no ISO that is much larger than what it and the old ISO give', async () => {
    const given = 32 * MIB + 8192 + old.size;
    const most = 2 * given + 64 * MIB;
    expect((await openDelta({ delta: deltaOf(2, 1, most), iso }, old)).size).toBe(most);
    for (const size of [most + 1, 2 ** 43])
      await expect(openDelta({ delta: deltaOf(2, 1, size), iso }, old)).rejects.toMatchObject({
        code: 'delta.malformed',
        message: `x.delta is not a complete delta: it makes an ISO of ${size} bytes from ${given} bytes`,
      });
  });

  it('is refused if it makes an ISO of more than 8 TiB', async () => {
    const index = { offset: 0, size: 1, digest: fakeDigest('index') };
    const of = (size: number): RandomAccess =>
      inMemory(formatDelta({ from: '', size, index, patches: new Map(), bodySize: 0 }));
    expect((await readDeltaHead(of(2 ** 43))).size).toBe(2 ** 43);
    await expect(readDeltaHead(of(2 ** 43 + 1))).rejects.toMatchObject({ code: 'delta.malformed' });
  });

  it('gets patches only up to the limit on patched bytes', async () => {
    const home = await mkdtemp(join(tmpdir(), 'sealift-patches-'));
    const [from, to] = [join(home, 'from'), join(home, 'to')];
    const [before, after] = ['a', 'b'].map((end) => `${'x'.repeat(999)}${end}`.repeat(3));
    await writeFile(from, before ?? '');
    await writeFile(to, after ?? '');
    const listOf = (text = '') =>
      [0, 1000, 2000].map((offset) => ({
        ...{ offset, size: 1000, digest: digestOf(text.slice(0, 1000)), paths: [`/${offset}`] },
      }));
    const medium = { ...old, extents: listOf(before) };
    const options = { from, to, old: medium, carried: listOf(after) };
    expect((await makePatches(options)).size).toBe(3);
    expect((await makePatches({ ...options, most: () => 2500 })).size).toBe(2);
    await rm(home, { recursive: true });
  });
});
