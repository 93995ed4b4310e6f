import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeRockRidge,
  decodeSharingProtocol,
  encodeExtensionReference,
  encodeRockRidge,
  encodeSharingProtocol,
  type PosixAttributes,
} from '../../../src/iso/directory/rock-ridge.ts';
import {
  decodeContinuation,
  decodeSystemUse,
  encodeContinuation,
  encodeSystemUse,
  placeSystemUse,
  readSystemUse,
} from '../../../src/iso/directory/system-use.ts';

const u32 = fc.integer({ min: 0, max: 0xffffffff });
const second = fc
  .integer({ min: Date.UTC(1900, 0, 1) / 1000, max: Date.UTC(2155, 11, 31) / 1000 })
  .map((seconds) => new Date(seconds * 1000));

const fileName = fc
  .string({ minLength: 1, maxLength: 300, unit: 'grapheme' })
  .filter((name) => !/[/\0]/.test(name) && name !== '.' && name !== '..');
const target = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.oneof(fileName, fc.constantFrom('.', '..')), { minLength: 1, maxLength: 4 }),
  )
  .map(([isAbsolute, parts]) => (isAbsolute ? '/' : '') + parts.join('/'));

const attributes: fc.Arbitrary<PosixAttributes> = fc.record(
  {
    mode: u32,
    links: u32,
    uid: u32,
    gid: u32,
    serial: u32,
    name: fileName,
    target,
    childLink: u32,
    parentLink: u32,
    isRelocated: fc.constant(true),
    times: fc.record({ modified: second, accessed: second, attributesChanged: second }),
  },
  { requiredKeys: ['mode', 'links', 'uid', 'gid'] },
);

describe('Rock Ridge attributes', () => {
  it('are decoded from their entries as they were encoded', () => {
    fc.assert(
      fc.property(attributes, (value) => {
        const entries = encodeRockRidge(value);
        expect(decodeRockRidge(entries)).toEqual(value);
        const encoded = encodeSystemUse(entries);
        expect(decodeSystemUse(encoded).length).toBe(entries.length);
        expect(decodeRockRidge(decodeSystemUse(encoded))).toEqual(value);
      }),
    );
  });

  it('continue in a continuation area when the record has no room, and are decoded from there', async () => {
    await fc.assert(
      fc.asyncProperty(attributes, fc.integer({ min: 28, max: 220 }), async (value, room) => {
        const entries = encodeRockRidge(value);
        fc.pre(encodeSystemUse(entries).length <= 2048);
        const { inline, continuation } = placeSystemUse(entries, room);
        expect(inline.length).toBeLessThanOrEqual(room);
        if (continuation.length > 0) {
          const set = encodeContinuation(42, 100, continuation.length);
          inline.set(set, inline.length - set.length);
        }
        const read = await readSystemUse(inline, (where) => {
          expect(where).toEqual({ sector: 42, offset: 100, size: continuation.length });
          return Promise.resolve(continuation);
        });
        expect(decodeRockRidge(read)).toEqual(value);
      }),
    );
  });

  it('take 36 bytes of numbers without a serial number and 44 with one', () => {
    const plain = { mode: 0o100644, links: 1, uid: 0, gid: 0 };
    expect(encodeSystemUse(encodeRockRidge(plain)).length).toBe(36);
    expect(encodeSystemUse(encodeRockRidge({ ...plain, serial: 7 })).length).toBe(44);
  });
});

describe('the entries of the root', () => {
  it('announce the sharing protocol with nothing to skip', () => {
    const entries = decodeSystemUse(encodeSystemUse([encodeSharingProtocol()]));
    expect(decodeSharingProtocol(entries)).toBe(0);
    expect(decodeSharingProtocol([])).toBeUndefined();
  });

  it('name Rock Ridge in an extension reference that fits a continuation area', () => {
    const encoded = encodeSystemUse([encodeExtensionReference()]);
    expect(encoded.length).toBe(237);
    expect(encoded.subarray(8, 18).toString()).toBe('RRIP_1991A');
  });
});

describe('a continuation entry', () => {
  it('is decoded from its bytes as it was encoded', () => {
    fc.assert(
      fc.property(u32, u32, u32, (sector, offset, size) => {
        const [entry] = decodeSystemUse(encodeContinuation(sector, offset, size));
        expect(entry && decodeContinuation(entry)).toEqual({ sector, offset, size });
      }),
    );
  });
});
