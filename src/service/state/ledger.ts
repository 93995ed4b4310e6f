import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { IntegrityError } from '../../base/errors.ts';
import { sumSizes } from '../../base/lists.ts';
import { COLLECTIONS, type Collection, type LedgerHead, type RecordHead } from './state.ts';

/*
 * Owns the ledger: a chain of lines, one for each change of a record, each with an HMAC over itself
 * and the one before. Without the key, no line can be made, moved or left out in the middle. Read
 * from its beginning, it gives the revision and the digest of every record: a record that was put
 * back, removed or written by others differs from it. Only all of it, with all records, can be put
 * back; the last line, kept elsewhere, shows that.
 */

/** Facts that the ledger has about a record. */
export type LedgerEntry = Omit<RecordHead, 'id'> & {
  /** Digest of the record as it is stored. */
  readonly digest: string;
  /** Bytes of the stored body. */
  readonly size: number;
};

/** A record after a change. */
export type EntryChange = {
  readonly collection: Collection;
  readonly id: string;
  /** Absent: the record was removed. */
  readonly entry?: LedgerEntry;
};

/** A line as it is stored: JSON text, and its HMAC-SHA256 in base64. */
export type LedgerLine = { readonly seq: number; readonly text: string; readonly mac: string };

/** `prev`: the line begins the ledger, all records are stated again behind it; the mac before it. */
type LineContent = { readonly prev: string } | EntryChange;

export type Usage = { readonly records: number; readonly bytes: number };

export type Ledger = {
  readonly head: () => LedgerHead;
  readonly find: (collection: Collection, id: string) => LedgerEntry | undefined;
  /** Ids of a tenant's records, in no order. */
  readonly idsOf: (collection: Collection, tenant: string) => readonly string[];
  readonly usageOf: (tenant: string) => Usage;
  /** Number of lines since the ledger began, and of records. */
  readonly size: () => { readonly lines: number; readonly records: number };
  /** Makes the lines of changes; they count once they are stored and followed. */
  readonly extend: (changes: readonly EntryChange[]) => readonly LedgerLine[];
  /** Makes a new beginning: lines that say all that the lines up to now said. */
  readonly restate: () => readonly LedgerLine[];
  /** Takes stored lines, except known ones; returns the records that changed, as they were before. */
  readonly follow: (lines: readonly LedgerLine[]) => readonly EntryChange[];
  readonly requireExpected: () => void;
  readonly all: () => readonly EntryChange[];
};

type Tenant = {
  readonly ids: Record<Collection, Set<string>>;
  records: number;
  bytes: number;
};

const NOTHING: LedgerHead = { seq: 0, mac: '' };

/** `key` has 32 bytes; `expected` is a line that must be in the ledger, or before its beginning. */
export function createLedger(key: Uint8Array, expected: LedgerHead = NOTHING): Ledger {
  let head = NOTHING;
  let begun = 0;
  const index = createIndex();
  const macOf = (prev: string, text: string): string =>
    createHmac('sha256', key).update(prev).update('\n').update(text).digest('base64');
  const chain = (contents: Iterable<LineContent>): readonly LedgerLine[] => {
    let last = head;
    return Array.from(contents, (content) => {
      const seq = last.seq + 1;
      const text = formatLine(seq, content);
      last = { seq, mac: macOf('prev' in content ? '' : last.mac, text) };
      return { text, ...last };
    });
  };
  const isGenuine = (line: LedgerLine, content: LineContent, isNext: boolean): boolean => {
    if (!('prev' in content)) return isNext && isEqual(macOf(head.mac, line.text), line.mac);
    return (!isNext || content.prev === head.mac) && isEqual(macOf('', line.text), line.mac);
  };
  const followOne = (line: LedgerLine): readonly EntryChange[] => {
    const content = parseLine(line);
    const isNext = line.seq === head.seq + 1;
    if (!content || !isGenuine(line, content, isNext)) throw damagedLine(line.seq);
    if (line.seq === expected.seq && line.mac !== expected.mac) throw rolledBack(expected.seq);
    head = { seq: line.seq, mac: line.mac };
    if (!('prev' in content)) return [index.put(content)];
    if (!isNext) index.clear(); // lines in between are gone, and all that they said is stated again
    begun = line.seq;
    return [];
  };
  return {
    head: () => head,
    find: index.find,
    idsOf: index.idsOf,
    usageOf: index.usageOf,
    size: () => ({ lines: head.seq - begun, records: index.size() }),
    extend: (changes) => chain(head.seq === 0 ? [{ prev: '' }, ...changes] : changes),
    restate: () => chain([{ prev: head.mac }, ...index.all()]),
    follow: (lines) =>
      lines.flatMap((line) => {
        if (line.seq > head.seq) return followOne(line);
        if (line.seq < head.seq || line.mac === head.mac) return [];
        throw rolledBack(head.seq);
      }),
    requireExpected() {
      if (head.seq < expected.seq) throw rolledBack(expected.seq);
    },
    all: index.all,
  };
}

/** Digest of a record as it is stored: all of its columns. */
export const digestRow = (
  { tenant, revision, parent }: Omit<RecordHead, 'id'>,
  body: string,
): string =>
  createHash('sha256')
    .update(JSON.stringify([tenant, revision, parent ?? null, body]))
    .digest('base64')
    .slice(0, 22); // 132 bits

export const rolledBack = (seq: number): IntegrityError =>
  new IntegrityError(
    'service.rolled-back',
    `the stored records are older than change ${seq}, which was made before`,
    {
      expected: `change ${seq}, or a later one`,
      found: 'earlier changes only, or others',
      hint: 'restore the newest backup; if this is the newest, restart the service',
    },
  );

const damagedLine = (seq: number): IntegrityError =>
  new IntegrityError(
    'service.ledger-damaged',
    `line ${seq} of the ledger of records was not written by this service`,
    { hint: 'restore records and ledger from one backup' },
  );

const isEqual = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

function formatLine(seq: number, content: LineContent): string {
  if ('prev' in content) return JSON.stringify([seq, content.prev]);
  const { collection, id, entry } = content;
  if (!entry) return JSON.stringify([seq, collection, id]);
  const { tenant, revision, digest, size, parent } = entry;
  const members = [seq, collection, id, tenant, revision, digest, size];
  return JSON.stringify(parent === undefined ? members : [...members, parent]);
}

/** Reads a line; undefined if its number is another one. Its HMAC is checked before it is used. */
function parseLine({ seq, text }: LedgerLine): LineContent | undefined {
  const read = parseArray(text) as StoredMembers | undefined;
  if (read?.[0] !== seq) return undefined;
  const [, collection, id, tenant, revision, digest, size, parent] = read;
  if (id === undefined) return { prev: collection };
  if (tenant === undefined) return { collection: collection as Collection, id };
  const entry = { tenant, revision, digest, size, ...(parent !== undefined && { parent }) };
  return { collection: collection as Collection, id, entry } as EntryChange;
}

/** A beginning has two members, a removal three. */
type StoredMembers = readonly [
  number,
  string,
  string?,
  string?,
  number?,
  string?,
  number?,
  string?,
];

/** True if the line begins a ledger, if it is one of ours. */
export const isBaseLine = (line: LedgerLine): boolean => {
  const content = parseLine(line);
  return content !== undefined && 'prev' in content;
};

function parseArray(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const forCollections = <Value>(create: () => Value): Record<Collection, Value> => ({
  'clusters': create(),
  'infra-envs': create(),
  'image-urls': create(),
});

/** Creates the index of all records, in memory: some 400 bytes each. */
function createIndex() {
  const entries = forCollections(() => new Map<string, LedgerEntry>());
  const tenants = new Map<string, Tenant>();
  const count = (change: EntryChange & { readonly entry: LedgerEntry }, sign: 1 | -1): void => {
    const { collection, id, entry } = change;
    const found = tenants.get(entry.tenant);
    const tenant = found ?? {
      ids: forCollections(() => new Set<string>()),
      records: 0,
      bytes: 0,
    };
    tenants.set(entry.tenant, tenant);
    if (sign === 1) tenant.ids[collection].add(id);
    else tenant.ids[collection].delete(id);
    tenant.records += sign;
    tenant.bytes += sign * entry.size;
    if (tenant.records === 0) tenants.delete(entry.tenant);
  };
  return {
    find: (collection: Collection, id: string) => entries[collection].get(id),
    idsOf: (collection: Collection, tenant: string) => [
      ...(tenants.get(tenant)?.ids[collection] ?? []),
    ],
    usageOf: (tenant: string): Usage => tenants.get(tenant) ?? { records: 0, bytes: 0 },
    size: () => sumSizes(Object.values(entries)),
    put({ collection, id, entry }: EntryChange): EntryChange {
      const before = entries[collection].get(id);
      if (before) count({ collection, id, entry: before }, -1);
      if (entry) {
        entries[collection].set(id, entry);
        count({ collection, id, entry }, 1);
      } else entries[collection].delete(id);
      return { collection, id, ...(before && { entry: before }) };
    },
    clear(): void {
      for (const map of [...Object.values(entries), tenants]) map.clear();
    },
    all: (): readonly EntryChange[] =>
      COLLECTIONS.flatMap((collection) =>
        [...entries[collection]].map(([id, entry]) => ({ collection, id, entry })),
      ),
  };
}
