import { IntegrityError } from '../../base/errors.ts';
import {
  decodeDirectoryRecord,
  encodeDirectoryRecord,
  type DirectoryRecord,
} from '../directory/record.ts';
import { copyOf, requireBytes, viewOf, SECTOR_SIZE } from '../extent.ts';
import {
  decodeBoth16,
  decodeBoth32,
  encodeBoth16,
  encodeBoth32,
  decodeLongDate,
  encodeLongDate,
} from './numbers.ts';

/** ECMA-119 8.4. Texts are without their padding. Places are sectors unless stated otherwise. */
export type PrimaryVolumeDescriptor = {
  readonly systemId: string;
  readonly volumeId: string;
  /** Sectors of the whole volume. */
  readonly volumeSpaceSize: number;
  readonly volumeSetSize: number;
  readonly volumeSequence: number;
  /** Bytes; 2048 nearly always. */
  readonly logicalBlockSize: number;
  /** Bytes. */
  readonly pathTableSize: number;
  readonly lPathTable: number;
  /** 0 means none. */
  readonly optionalLPathTable: number;
  readonly mPathTable: number;
  /** 0 means none. */
  readonly optionalMPathTable: number;
  readonly rootRecord: DirectoryRecord;
  readonly volumeSetId: string;
  readonly publisherId: string;
  readonly preparerId: string;
  readonly applicationId: string;
  readonly copyrightFile: string;
  readonly abstractFile: string;
  readonly bibliographicFile: string;
  readonly createdAt: Date | undefined;
  readonly modifiedAt: Date | undefined;
  readonly expiresAt: Date | undefined;
  readonly effectiveAt: Date | undefined;
  readonly fileStructureVersion: number;
  /** 512 bytes. */
  readonly applicationUse: Uint8Array;
};

/** ECMA-119 8.5: the same fields for another tree, names in another character set. */
export type SupplementaryVolumeDescriptor = PrimaryVolumeDescriptor & {
  /** ECMA-119 8.5.3; 1 means that the escape sequences are not registered. */
  readonly flags: number;
  /** 32 bytes. */
  readonly escapeSequences: Uint8Array;
  /** True if the escape sequences are Joliet's: names are UCS-2. */
  readonly isJoliet: boolean;
};

/** `raw` is the whole sector. */
export type VolumeDescriptor =
  | {
      readonly kind: 'boot-record';
      readonly raw: Uint8Array;
      readonly bootSystemId: string;
      /** Sector of the boot catalog, if the boot system is El Torito. */
      readonly bootCatalog: number | undefined;
    }
  | {
      readonly kind: 'primary';
      readonly raw: Uint8Array;
      readonly volume: PrimaryVolumeDescriptor;
    }
  | {
      readonly kind: 'supplementary';
      readonly raw: Uint8Array;
      readonly volume: SupplementaryVolumeDescriptor;
    }
  | { readonly kind: 'partition'; readonly raw: Uint8Array }
  | { readonly kind: 'terminator'; readonly raw: Uint8Array }
  /** A type that ECMA-119 reserves: skipped by readers. */
  | { readonly kind: 'reserved'; readonly raw: Uint8Array; readonly type: number };

const STANDARD_ID = 'CD001';
const EL_TORITO = 'EL TORITO SPECIFICATION';
const JOLIET_ESCAPES = ['%/@', '%/C', '%/E'];

/** ECMA-119 8.1. @throws IntegrityError `iso.truncated`, `iso.not-iso9660` */
export function decodeVolumeDescriptor(sector: Uint8Array): VolumeDescriptor {
  requireBytes(sector, { at: 0, size: SECTOR_SIZE });
  const raw = copyOf(sector, 0, SECTOR_SIZE);
  const standardId = Buffer.from(raw.subarray(1, 6)).toString('latin1');
  if (standardId !== STANDARD_ID) {
    throw new IntegrityError(
      'iso.not-iso9660',
      `standard identifier is ${JSON.stringify(standardId)}, not "${STANDARD_ID}"`,
      { expected: STANDARD_ID, found: standardId },
    );
  }
  const type = raw[0] ?? 0;
  switch (type) {
    case 0:
      return { kind: 'boot-record', raw, ...decodeBootRecord(raw) };
    case 1:
      return { kind: 'primary', raw, volume: decodeVolume(raw, decodeText) };
    case 2:
      return { kind: 'supplementary', raw, volume: decodeSupplementary(raw) };
    case 3:
      return { kind: 'partition', raw };
    case 255:
      return { kind: 'terminator', raw };
    default:
      return { kind: 'reserved', raw, type };
  }
}

/** One sector. Texts are cut to their fields and padded with spaces. */
export function encodePrimaryVolumeDescriptor(volume: PrimaryVolumeDescriptor): Uint8Array {
  const bytes = startDescriptor(1);
  const view = viewOf(bytes, { at: 0, size: SECTOR_SIZE });
  for (const [name, at, size] of TEXT_FIELDS) {
    bytes.set(Buffer.from(volume[name].padEnd(size).slice(0, size), 'latin1'), at);
  }
  encodeBoth32(bytes, 80, volume.volumeSpaceSize);
  encodeBoth16(bytes, 120, volume.volumeSetSize);
  encodeBoth16(bytes, 124, volume.volumeSequence);
  encodeBoth16(bytes, 128, volume.logicalBlockSize);
  encodeBoth32(bytes, 132, volume.pathTableSize);
  view.setUint32(140, volume.lPathTable, true);
  view.setUint32(144, volume.optionalLPathTable, true);
  view.setUint32(148, volume.mPathTable, false);
  view.setUint32(152, volume.optionalMPathTable, false);
  bytes.set(encodeRootRecord(volume.rootRecord), 156);
  bytes.set(encodeLongDate(volume.createdAt), 813);
  bytes.set(encodeLongDate(volume.modifiedAt), 830);
  bytes.set(encodeLongDate(volume.expiresAt), 847);
  bytes.set(encodeLongDate(volume.effectiveAt), 864);
  bytes[881] = volume.fileStructureVersion;
  bytes.set(volume.applicationUse.subarray(0, 512), 883);
  return bytes;
}

/** ECMA-119 8.3: ends the set of descriptors. */
export const encodeTerminator = (): Uint8Array => startDescriptor(255);

type TextField =
  | 'systemId'
  | 'volumeId'
  | 'volumeSetId'
  | 'publisherId'
  | 'preparerId'
  | 'applicationId'
  | 'copyrightFile'
  | 'abstractFile'
  | 'bibliographicFile';

/** Name, first byte, size in bytes. */
const TEXT_FIELDS: readonly (readonly [TextField, number, number])[] = [
  ['systemId', 8, 32],
  ['volumeId', 40, 32],
  ['volumeSetId', 190, 128],
  ['publisherId', 318, 128],
  ['preparerId', 446, 128],
  ['applicationId', 574, 128],
  ['copyrightFile', 702, 37],
  ['abstractFile', 739, 37],
  ['bibliographicFile', 776, 37],
];

type DecodeText = (bytes: Uint8Array) => string;

function decodeVolume(bytes: Uint8Array, decode: DecodeText): PrimaryVolumeDescriptor {
  const view = viewOf(bytes, { at: 0, size: SECTOR_SIZE });
  const texts = Object.fromEntries(
    TEXT_FIELDS.map(([name, at, size]) => [name, decode(bytes.subarray(at, at + size))]),
  ) as Record<TextField, string>;
  return {
    ...texts,
    volumeSpaceSize: decodeBoth32(bytes, 80),
    volumeSetSize: decodeBoth16(bytes, 120),
    volumeSequence: decodeBoth16(bytes, 124),
    logicalBlockSize: decodeBoth16(bytes, 128),
    pathTableSize: decodeBoth32(bytes, 132),
    lPathTable: view.getUint32(140, true),
    optionalLPathTable: view.getUint32(144, true),
    mPathTable: view.getUint32(148, false),
    optionalMPathTable: view.getUint32(152, false),
    rootRecord: decodeDirectoryRecord(bytes.subarray(156, 190), 0).record,
    createdAt: decodeLongDate(bytes, 813),
    modifiedAt: decodeLongDate(bytes, 830),
    expiresAt: decodeLongDate(bytes, 847),
    effectiveAt: decodeLongDate(bytes, 864),
    fileStructureVersion: bytes[881] ?? 0,
    applicationUse: copyOf(bytes, 883, 883 + 512),
  };
}

function decodeSupplementary(bytes: Uint8Array): SupplementaryVolumeDescriptor {
  const escapeSequences = copyOf(bytes, 88, 120);
  const escapes = Buffer.from(escapeSequences.subarray(0, 3)).toString('latin1');
  const isJoliet = JOLIET_ESCAPES.includes(escapes);
  const volume = decodeVolume(bytes, isJoliet ? decodeBigEndianText : decodeText);
  return { ...volume, flags: bytes[7] ?? 0, escapeSequences, isJoliet };
}

/** El Torito 2.0: the boot record's first four bytes after its identifiers are the catalog's sector. */
function decodeBootRecord(bytes: Uint8Array): {
  bootSystemId: string;
  bootCatalog: number | undefined;
} {
  const bootSystemId = decodeText(bytes.subarray(7, 39));
  const sector = viewOf(bytes, { at: 71, size: 4 }).getUint32(0, true);
  return { bootSystemId, bootCatalog: bootSystemId === EL_TORITO ? sector : undefined };
}

const decodeText: DecodeText = (bytes) => withoutPadding(Buffer.from(bytes).toString('latin1'));

const decodeBigEndianText: DecodeText = (bytes) =>
  withoutPadding(new TextDecoder('utf-16be').decode(bytes.subarray(0, bytes.length & ~1)));

const withoutPadding = (text: string): string => text.replace(/[ \0]+$/, '');

function startDescriptor(type: number): Uint8Array {
  const bytes = new Uint8Array(SECTOR_SIZE);
  bytes[0] = type;
  bytes.set(Buffer.from(STANDARD_ID, 'latin1'), 1);
  bytes[6] = 1;
  return bytes;
}

/** ECMA-119 8.4.18: 34 bytes, so without a system use field. */
const encodeRootRecord = (record: DirectoryRecord): Uint8Array =>
  encodeDirectoryRecord({ ...record, systemUse: new Uint8Array(0) });
