import { append } from '../../base/lists.ts';
import { requireBytes } from '../extent.ts';
import {
  decodeBoth32,
  encodeBoth32,
  decodeShortDate,
  decodeLongDate,
  encodeShortDate,
} from '../volume/numbers.ts';
import type { SystemUseEntry } from './system-use.ts';

/** Rock Ridge attributes of one file (RRIP 1.12, 4.1). */
export type PosixAttributes = {
  /** File type and permission bits, as in `st_mode`. */
  readonly mode: number;
  readonly links: number;
  readonly uid: number;
  readonly gid: number;
  /** `st_ino`; only in the 44-byte form of RRIP 1.12. */
  readonly serial?: number;
  readonly name?: string;
  /** Target of a symbolic link. */
  readonly target?: string;
  /** Sector of the directory that was moved because it is too deep here (CL). */
  readonly childLink?: number;
  /** Sector of the directory that this one really belongs to (PL, in a `..` record). */
  readonly parentLink?: number;
  /** True if this directory is here only because its real place is too deep (RE). */
  readonly isRelocated?: boolean;
  readonly times?: PosixTimes;
};

type PosixTimes = {
  readonly created?: Date;
  readonly modified?: Date;
  readonly accessed?: Date;
  readonly attributesChanged?: Date;
};

const MAX_NAME_PART = 250;
const NAME_CONTINUES = 1;
const LONG_DATES = 0x80;
const RRIP = {
  identifier: 'RRIP_1991A',
  description:
    'THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS',
  source:
    'PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION.',
};

/** Decodes the attributes in the entries. The mode is undefined without a PX entry. */
export function decodeRockRidge(entries: readonly SystemUseEntry[]): Partial<PosixAttributes> {
  const decoded: Decoded = { attributes: {}, names: [], links: [] };
  for (const entry of entries) DECODERS[entry.signature]?.(decoded, entry);
  const { attributes, names, links } = decoded;
  if (names.length > 0) attributes.name = decodeName(names);
  if (links.length > 0) attributes.target = decodeSymlink(links);
  return attributes;
}

type Decoded = {
  readonly attributes: { -readonly [Key in keyof PosixAttributes]?: PosixAttributes[Key] };
  /** NM and SL, which continue from entry to entry. */
  readonly names: SystemUseEntry[];
  readonly links: SystemUseEntry[];
};

/** Decoders by signature. If PX, CL or PL repeats, the first one counts. */
const DECODERS: Readonly<Record<string, (decoded: Decoded, entry: SystemUseEntry) => void>> = {
  PX({ attributes }, { data }) {
    if (attributes.mode === undefined) Object.assign(attributes, decodePosix(data));
  },
  CL({ attributes }, { data }) {
    attributes.childLink ??= decodeBoth32(data, 0);
  },
  PL({ attributes }, { data }) {
    attributes.parentLink ??= decodeBoth32(data, 0);
  },
  RE({ attributes }) {
    attributes.isRelocated = true;
  },
  TF({ attributes }, entry) {
    const times = decodeTimes(entry);
    if (Object.keys(times).length > 0) attributes.times = { ...attributes.times, ...times };
  },
  NM({ names }, entry) {
    if (((entry.data[0] ?? 0) & 6) === 0) names.push(entry);
  },
  SL({ links }, entry) {
    links.push(entry);
  },
};

/**
 * The entries that the attributes need: PX (44 bytes with a serial number, else 36), TF, NM, SL, CL, PL, RE.
 */
export function encodeRockRidge(attributes: PosixAttributes): SystemUseEntry[] {
  const { name, target, times, childLink, parentLink, isRelocated } = attributes;
  return [
    { signature: 'PX', version: 1, data: encodePosix(attributes) },
    ...(times ? [{ signature: 'TF', version: 1, data: encodeTimes(times) }] : []),
    ...(name === undefined ? [] : encodeName(name)),
    ...(target === undefined ? [] : encodeSymlink(target)),
    ...(childLink === undefined ? [] : [encodeSectorEntry('CL', childLink)]),
    ...(parentLink === undefined ? [] : [encodeSectorEntry('PL', parentLink)]),
    ...(isRelocated ? [{ signature: 'RE', version: 1, data: new Uint8Array(0) }] : []),
  ];
}

/** SUSP 5.3: the first entry in the root's own record, which announces system use entries. */
export const encodeSharingProtocol = (): SystemUseEntry => ({
  signature: 'SP',
  version: 1,
  data: Uint8Array.of(0xbe, 0xef, 0),
});

/** SUSP 5.5: an entry in the root's own record that names the extension in use. 237 bytes encoded. */
export function encodeExtensionReference(): SystemUseEntry {
  const texts = [RRIP.identifier, RRIP.description, RRIP.source];
  return {
    signature: 'ER',
    version: 1,
    data: Buffer.concat([
      Uint8Array.of(...texts.map((text) => text.length), 1),
      Buffer.from(texts.join(''), 'latin1'),
    ]),
  };
}

/** SUSP 5.3: bytes to skip before the entries of every other record; undefined without SP. */
export function decodeSharingProtocol(entries: readonly SystemUseEntry[]): number | undefined {
  const sp = entries.find((entry) => entry.signature === 'SP');
  return sp?.data[0] === 0xbe && sp.data[1] === 0xef ? (sp.data[2] ?? 0) : undefined;
}

function decodePosix(data: Uint8Array): Partial<PosixAttributes> {
  return {
    mode: decodeBoth32(data, 0),
    links: decodeBoth32(data, 8),
    uid: decodeBoth32(data, 16),
    gid: decodeBoth32(data, 24),
    ...(data.length >= 40 && { serial: decodeBoth32(data, 32) }),
  };
}

function encodePosix(attributes: PosixAttributes): Uint8Array {
  const data = new Uint8Array(attributes.serial === undefined ? 32 : 40);
  encodeBoth32(data, 0, attributes.mode);
  encodeBoth32(data, 8, attributes.links);
  encodeBoth32(data, 16, attributes.uid);
  encodeBoth32(data, 24, attributes.gid);
  if (attributes.serial !== undefined) encodeBoth32(data, 32, attributes.serial);
  return data;
}

const decodeName = (entries: readonly SystemUseEntry[]): string =>
  Buffer.concat(entries.map((entry) => entry.data.subarray(1))).toString('utf8');

function encodeName(name: string): SystemUseEntry[] {
  const bytes = Buffer.from(name, 'utf8');
  const entries: SystemUseEntry[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += MAX_NAME_PART) {
    const part = bytes.subarray(at, at + MAX_NAME_PART);
    const flags = at + MAX_NAME_PART < bytes.length ? NAME_CONTINUES : 0;
    entries.push({
      signature: 'NM',
      version: 1,
      data: Buffer.concat([Uint8Array.of(flags), part]),
    });
  }
  return entries;
}

/** RRIP 4.1.6: the order of the stamps is the order of their flag bits. */
const TIMES: readonly (keyof PosixTimes)[] = [
  'created',
  'modified',
  'accessed',
  'attributesChanged',
];

function decodeTimes(entry: SystemUseEntry): PosixTimes {
  const flags = entry.data[0] ?? 0;
  const isLong = (flags & LONG_DATES) !== 0;
  const times: { -readonly [K in keyof PosixTimes]: PosixTimes[K] } = {};
  let at = 1;
  for (const [bit, name] of TIMES.entries()) {
    if ((flags & (1 << bit)) === 0) continue;
    const date = isLong ? decodeLongDate(entry.data, at) : decodeShortDate(entry.data, at);
    if (date) times[name] = date;
    at += isLong ? 17 : 7;
  }
  return times;
}

function encodeTimes(times: PosixTimes): Uint8Array {
  const present = [...TIMES.entries()].filter(([, name]) => times[name]);
  const flags = present.reduce((sum, [bit]) => sum | (1 << bit), 0);
  return Buffer.concat([
    Uint8Array.of(flags),
    ...present.map(([, name]) => encodeShortDate(times[name])),
  ]);
}

function encodeSectorEntry(signature: string, sector: number): SystemUseEntry {
  const data = new Uint8Array(8);
  encodeBoth32(data, 0, sector);
  return { signature, version: 1, data };
}

/** RRIP 4.1.3.1: flags of a component record. */
const COMPONENT = { continues: 1, current: 2, parent: 4, root: 8 } as const;
const ENTRY_CONTINUES = 1;
const MAX_DATA = 251;

/** RRIP 4.1.3: the target of a symbolic link from all its SL entries, in order. */
function decodeSymlink(entries: readonly SystemUseEntry[]): string {
  let target = '';
  let isStartOfComponent = true;
  for (const { data } of entries) {
    for (let at = 1; at < data.length;) {
      requireBytes(data, { at, size: 2 });
      const flags = data[at] ?? 0;
      const size = data[at + 1] ?? 0;
      requireBytes(data, { at: at + 2, size });
      if (isStartOfComponent && target !== '' && !target.endsWith('/')) target += '/';
      target += textOfComponent(flags, data.subarray(at + 2, at + 2 + size));
      isStartOfComponent = (flags & COMPONENT.continues) === 0;
      at += 2 + size;
    }
  }
  return target;
}

function textOfComponent(flags: number, content: Uint8Array): string {
  if (flags & COMPONENT.root) return '/';
  if (flags & COMPONENT.current) return '.';
  if (flags & COMPONENT.parent) return '..';
  return Buffer.from(content).toString('utf8');
}

/** As many SL entries as the target needs. Repeated and trailing slashes are not kept. */
function encodeSymlink(target: string): SystemUseEntry[] {
  const groups: Uint8Array[][] = [[]];
  let size = 1;
  for (const component of componentsOf(target)) {
    if (size + component.length > MAX_DATA) {
      groups.push([]);
      size = 1;
    }
    groups.at(-1)?.push(component);
    size += component.length;
  }
  return groups.map((components, index) => ({
    signature: 'SL',
    version: 1,
    data: Buffer.concat([
      Uint8Array.of(index + 1 < groups.length ? ENTRY_CONTINUES : 0),
      ...components,
    ]),
  }));
}

function componentsOf(target: string): Uint8Array[] {
  const components: Uint8Array[] = target.startsWith('/') ? [Uint8Array.of(COMPONENT.root, 0)] : [];
  for (const part of target.split('/').filter((text) => text !== '')) {
    if (part === '.') components.push(Uint8Array.of(COMPONENT.current, 0));
    else if (part === '..') components.push(Uint8Array.of(COMPONENT.parent, 0));
    else append(components, namedComponents(Buffer.from(part, 'utf8')));
  }
  return components;
}

/** A name longer than one record's 248 bytes continues in the next. */
function namedComponents(name: Uint8Array): Uint8Array[] {
  const limit = MAX_DATA - 3;
  const parts: Uint8Array[] = [];
  for (let at = 0; at < name.length; at += limit) {
    const part = name.subarray(at, at + limit);
    const flags = at + limit < name.length ? COMPONENT.continues : 0;
    parts.push(Buffer.concat([Uint8Array.of(flags, part.length), part]));
  }
  return parts;
}
