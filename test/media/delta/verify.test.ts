import { describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { type RandomAccess, requireInside } from '../../../src/base/random-access.ts';
import { type DeltaHead, digestOfBody, formatDelta } from '../../../src/media/delta/file.ts';
import { formatPartHead, PARITY } from '../../../src/media/delta/part.ts';
import type { Verification } from '../../../src/media/verify-contents.ts';
import { verifyIso } from '../../../src/media/verify.ts';
import { fakeDigest } from '../../support/sparse-medium.ts';

const inMemory = (bytes: Uint8Array): RandomAccess => ({
  path: 'night.delta',
  size: bytes.length,
  read: (offset, size) => {
    requireInside({ offset, size }, bytes.length);
    return Promise.resolve(Buffer.from(bytes.subarray(offset, offset + size)));
  },
  close: () => Promise.resolve(),
});

const verify = (bytes: Uint8Array, sha256?: ReturnType<typeof digestOf>): Promise<Verification> =>
  verifyIso(inMemory(bytes), {
    signal: new AbortController().signal,
    onProgress: () => undefined,
    published: () => Promise.resolve(sha256),
  });

const CARRIED = ['index', 'a blob', 'a patch'].map((text) => Buffer.from(text.repeat(50)));

const HEAD: DeltaHead = {
  from: fakeDigest('old'),
  size: 2 ** 20,
  index: { offset: 4096, size: 250, digest: fakeDigest('index') },
  mutable: [],
  patches: new Map(),
  bodySize: CARRIED.reduce((sum, { length }) => sum + length, 0),
};
const BODY = {
  digest: digestOfBody(CARRIED.map((bytes) => digestOf(bytes))),
  sizes: CARRIED.map(({ length }) => length),
};

const EARLIER = Buffer.concat([formatDelta(HEAD), ...CARRIED]);
const PROVEN = Buffer.concat([formatDelta({ ...HEAD, body: BODY }), ...CARRIED]);

describe('verification of a delta', () => {
  it('says that it is whole, and from what to what it is', async () => {
    const { state, compared, delta } = await verify(PROVEN);
    expect({ state, compared }).toEqual({
      state: 'whole',
      compared: { bytes: PROVEN.length, of: PROVEN.length },
    });
    expect(delta).toMatchObject({ kind: 'delta', from: { digest: HEAD.from } });
  });

  it('finds any flipped byte', async () => {
    for (let at = 0; at < PROVEN.length; at++) {
      const bytes = Buffer.from(PROVEN);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      expect([at, (await verify(bytes)).state]).toEqual([at, 'damaged']);
    }
  });

  it('finds that it was cut off at any place', async () => {
    for (const size of [1, 13, 14, 63, 64, 127, 128, 200, PROVEN.length - 1]) {
      expect([size, (await verify(PROVEN.subarray(0, size))).state]).toEqual([size, 'damaged']);
    }
  });

  it('cannot judge one of an earlier version without its published digest', async () => {
    expect(await verify(EARLIER)).toMatchObject({ state: 'not provable', because: 'no proof' });
    expect(await verify(EARLIER, digestOf(EARLIER))).toMatchObject({ state: 'whole' });
    expect(await verify(EARLIER, fakeDigest('other'))).toMatchObject({ state: 'damaged' });
    expect(await verify(EARLIER.subarray(0, -1))).toMatchObject({ state: 'damaged' });
  });

  it('says that a newer version of sealift made one of a newer format', async () => {
    const start = 'sealift delta 5 2 ';
    const line = `${start}${digestOf(`${start}{}`)}\n`.padEnd(128);
    expect(await verify(Buffer.from(`${line}{} whatever`))).toMatchObject({
      state: 'not provable',
      notCompared: [expect.stringMatching(/a newer version of sealift made/) as string],
      wouldProve: expect.stringMatching(/^use that version of sealift, or/) as string,
    });
  });
});

describe('verification of a part of a delta', () => {
  const partSize = Math.ceil(EARLIER.length / 2);
  const [first, second] = [EARLIER.subarray(0, partSize), EARLIER.subarray(partSize)];
  const parity = Buffer.from(first.map((byte, at) => byte ^ (second[at] ?? 0)));
  const list = {
    size: EARLIER.length,
    partSize,
    parts: [digestOf(first), digestOf(second)],
    parity: digestOf(parity),
  };
  const parts = [
    [PARITY, parity],
    [1, first],
    [2, second],
  ] as const;

  it.each(parts)('%i says that it is whole, and finds any flipped byte', async (number, bytes) => {
    const file = Buffer.concat([formatPartHead(number, list), bytes]);
    expect(await verify(file)).toMatchObject({ state: 'whole', delta: { kind: 'delta-part' } });
    for (let at = 0; at < file.length; at++) {
      file[at] = (file[at] ?? 0) ^ 1;
      expect([at, (await verify(file)).state]).toEqual([at, 'damaged']);
      file[at] = (file[at] ?? 0) ^ 1;
    }
  });
});
