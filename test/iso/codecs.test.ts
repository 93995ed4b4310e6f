import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeBoth16,
  decodeBoth32,
  encodeBoth16,
  encodeBoth32,
  isBothEqual16,
  isBothEqual32,
} from '../../src/iso/volume/numbers.ts';
import {
  decodeDirectoryRecord,
  encodeDirectoryRecord,
  systemUseRoom,
  type DirectoryRecord,
} from '../../src/iso/directory/record.ts';
import { decodeBootCatalog } from '../../src/iso/boot/el-torito.ts';
import { encodeBootCatalog } from '../../demo/boot-catalog.ts';
import {
  decodeLongDate,
  decodeShortDate,
  encodeLongDate,
  clampEpoch,
  encodeShortDate,
  LAST_EPOCH,
} from '../../src/iso/volume/numbers.ts';
import {
  decodePathTable,
  encodePathTable,
  sizeOfPathTable,
} from '../../src/iso/volume/path-table.ts';
import {
  decodeVolumeDescriptor,
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
} from '../../src/iso/volume/descriptor.ts';

const u8 = fc.integer({ min: 0, max: 0xff });
const u16 = fc.integer({ min: 0, max: 0xffff });
const u32 = fc.integer({ min: 0, max: 0xffffffff });
const second = fc
  .integer({ min: Date.UTC(1900, 0, 1) / 1000, max: Date.UTC(2155, 11, 31) / 1000 })
  .map((seconds) => new Date(seconds * 1000));
const bytes = (minLength: number, maxLength: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength, maxLength }).map((array) => Uint8Array.from(array));

const record: fc.Arbitrary<DirectoryRecord> = bytes(1, 60).chain((identifier) =>
  fc.record({
    identifier: fc.constant(identifier),
    extent: u32,
    size: u32,
    recordedAt: fc.option(second, { nil: undefined }),
    flags: u8,
    systemUse: fc
      .integer({ min: 0, max: systemUseRoom(identifier.length) / 2 })
      .chain((pairs) => bytes(pairs * 2, pairs * 2)),
    extendedAttributeLength: u8,
    fileUnitSize: u8,
    interleaveGap: u8,
    volumeSequence: u16,
  }),
);

const padded = (size: number): fc.Arbitrary<string> =>
  fc.string({ maxLength: size, unit: 'grapheme-ascii' }).map((text) => text.replace(/[ \0]+$/, ''));

describe('the numbers of a volume', () => {
  it('are decoded from both byte orders as they were encoded', () => {
    fc.assert(
      fc.property(u32, u16, (long, short) => {
        const target = new Uint8Array(12);
        encodeBoth32(target, 0, long);
        encodeBoth16(target, 8, short);
        expect(decodeBoth32(target, 0)).toBe(long);
        expect(decodeBoth16(target, 8)).toBe(short);
        expect(isBothEqual32(target, 0) && isBothEqual16(target, 8)).toBe(true);
      }),
    );
  });

  it('are found to differ when only one copy was changed', () => {
    const target = new Uint8Array(12);
    encodeBoth32(target, 0, 7);
    encodeBoth16(target, 8, 7);
    target[7] = 8;
    target[11] = 8;
    expect(isBothEqual32(target, 0)).toBe(false);
    expect(isBothEqual16(target, 8)).toBe(false);
  });
});

describe('the dates of a volume', () => {
  it('are decoded to the second from the short form', () => {
    fc.assert(
      fc.property(second, (date) => {
        expect(decodeShortDate(encodeShortDate(date), 0)).toEqual(date);
      }),
    );
  });

  it('are decoded to the hundredth of a second from the long form', () => {
    fc.assert(
      fc.property(second, fc.integer({ min: 0, max: 99 }), (whole, hundredths) => {
        const date = new Date(whole.getTime() + hundredths * 10);
        expect(decodeLongDate(encodeLongDate(date), 0)).toEqual(date);
      }),
    );
  });

  it('are not specified beyond the years of the short form', () => {
    for (const year of ['0001-01-01', '1899-12-31', '2156-01-01', '+010000-01-01']) {
      expect(encodeShortDate(new Date(`${year}T00:00:00Z`))).toEqual(new Uint8Array(7));
    }
    const last = new Date(LAST_EPOCH * 1000);
    expect(decodeShortDate(encodeShortDate(last), 0)).toEqual(last);
    const nearest = ['0001-01-01', '2000-01-01', '2200-01-01'].map((day) =>
      clampEpoch(new Date(day)),
    );
    expect(nearest).toEqual([0, 946_684_800, LAST_EPOCH]);
  });

  it('are undefined when they are all zero, in either form', () => {
    expect(decodeShortDate(encodeShortDate(undefined), 0)).toBeUndefined();
    expect(decodeLongDate(encodeLongDate(undefined), 0)).toBeUndefined();
    expect(decodeLongDate(new Uint8Array(17), 0)).toBeUndefined();
  });

  it('count their zone in quarter hours east of Greenwich', () => {
    const noonInDelhi = Uint8Array.of(126, 1, 2, 12, 0, 0, 22);
    expect(decodeShortDate(noonInDelhi, 0)?.toISOString()).toBe('2026-01-02T06:30:00.000Z');
    const noonInLima = Uint8Array.of(126, 1, 2, 12, 0, 0, 256 - 20);
    expect(decodeShortDate(noonInLima, 0)?.toISOString()).toBe('2026-01-02T17:00:00.000Z');
  });
});

describe('a directory record', () => {
  it('is decoded from its bytes as it was encoded', () => {
    fc.assert(
      fc.property(record, u8, (value, before) => {
        const encoded = encodeDirectoryRecord(value);
        expect(encoded.length % 2).toBe(0);
        const inside = Buffer.concat([new Uint8Array(before), encoded, new Uint8Array(9)]);
        expect(decodeDirectoryRecord(inside, before)).toEqual({
          record: value,
          length: encoded.length,
        });
      }),
    );
  });

  it('is refused when it would not fit into its length byte', () => {
    const [value] = fc.sample(record, { numRuns: 1, seed: 1 });
    if (!value) throw new Error('no sample');
    const identifier = new Uint8Array(30);
    const systemUse = new Uint8Array(systemUseRoom(30) + 1);
    expect(() => encodeDirectoryRecord({ ...value, identifier, systemUse })).toThrow(RangeError);
  });
});

describe('a path table', () => {
  it('is decoded from its bytes in both byte orders', () => {
    const records = fc.array(fc.record({ identifier: bytes(1, 207), extent: u32, parent: u16 }), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(records, (values) => {
        for (const byteOrder of ['little', 'big'] as const) {
          const encoded = encodePathTable(values, byteOrder);
          expect(encoded.length).toBe(sizeOfPathTable(values));
          expect([...decodePathTable(encoded, byteOrder)]).toEqual(values);
        }
      }),
    );
  });
});

describe('a volume descriptor', () => {
  const volume = fc.record({
    systemId: padded(32),
    volumeId: padded(32),
    volumeSpaceSize: u32,
    volumeSetSize: u16,
    volumeSequence: u16,
    logicalBlockSize: u16,
    pathTableSize: u32,
    lPathTable: u32,
    optionalLPathTable: u32,
    mPathTable: u32,
    optionalMPathTable: u32,
    rootRecord: record.map((value) => ({
      ...value,
      identifier: Uint8Array.of(0),
      systemUse: new Uint8Array(0),
    })),
    volumeSetId: padded(128),
    publisherId: padded(128),
    preparerId: padded(128),
    applicationId: padded(128),
    copyrightFile: padded(37),
    abstractFile: padded(37),
    bibliographicFile: padded(37),
    createdAt: fc.option(second, { nil: undefined }),
    modifiedAt: fc.option(second, { nil: undefined }),
    expiresAt: fc.option(second, { nil: undefined }),
    effectiveAt: fc.option(second, { nil: undefined }),
    fileStructureVersion: u8,
    applicationUse: bytes(512, 512),
  });

  it('is decoded from its sector as it was encoded', () => {
    fc.assert(
      fc.property(volume, (value) => {
        const raw = encodePrimaryVolumeDescriptor(value);
        const decoded = decodeVolumeDescriptor(raw);
        expect(decoded).toEqual({ kind: 'primary', raw, volume: value });
      }),
    );
  });

  it('ends its set as a terminator', () => {
    expect(decodeVolumeDescriptor(encodeTerminator()).kind).toBe('terminator');
  });
});

describe('a boot catalog', () => {
  const entry = fc.record({
    platform: fc.constantFrom('bios' as const, 'efi' as const, 'powerpc' as const, 'mac' as const),
    bootable: fc.boolean(),
    mediaType: fc.integer({ min: 0, max: 4 }),
    loadSegment: u16,
    loadSectors: u16,
    sector: u32,
  });

  it('is decoded from its bytes as it was encoded', () => {
    const catalog = fc.record({
      id: padded(24),
      entries: fc.array(entry, { minLength: 1, maxLength: 8 }),
    });
    fc.assert(
      fc.property(catalog, (value) => {
        expect(decodeBootCatalog(encodeBootCatalog(value))).toEqual(value);
      }),
    );
  });

  it('is refused when its checksum is wrong', () => {
    const encoded = encodeBootCatalog({
      id: '',
      entries: [
        {
          platform: 'efi',
          bootable: true,
          mediaType: 0,
          loadSegment: 0,
          loadSectors: 4,
          sector: 99,
        },
      ],
    });
    encoded[5] = 1;
    expect(() => decodeBootCatalog(encoded)).toThrow(/sum 256/);
  });
});
