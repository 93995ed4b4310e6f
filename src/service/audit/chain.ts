import { createHash } from 'node:crypto';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import type { LedgerHead } from '../state/state.ts';

/*
 * Owns the lines of the audit log: a chain of SHA-256. Each line has the hash of the line before it, and its own
 * over all of its other members, so a line that was changed, moved or left out is found by anyone, without a key. Who
 * can write to the file can also make the whole chain again: only a hash that is kept outside shows that.
 */

/** Members of an entry, without secrets. */
export type AuditEntry = {
  readonly event: string;
  readonly [member: string]: Json | undefined;
};

export type AuditTail = {
  readonly sequence: number;
  /** 64 hex digits. */
  readonly hash: string;
  /** The state of the records at that time. */
  readonly ledger?: LedgerHead;
};

/** A line that was read, and whose hash is that of its members. */
export type AuditLine = AuditTail & {
  readonly time: string;
  readonly previous: string;
};

export const AUDIT_BEGINNING: AuditTail = { sequence: 0, hash: '0'.repeat(64) };

/** Bytes that no line has more of: texts of tokens are bounded (auth/identity.ts). */
export const LONGEST_LINE = 32 << 10;

/**
 * Formats the next line of a chain, with its line break: canonical JSON. Its hash is the SHA-256 of the
 * canonical JSON of its members without `hash`; `jq -cSj 'del(.hash)'
 * sha256sum` gives the same.
 */
export function formatAuditLine(
  { sequence: before, hash: previous, ledger: known }: AuditTail,
  entry: AuditEntry & { readonly time: string },
  ledger = known,
): { readonly text: string; readonly tail: AuditTail } {
  const sequence = before + 1;
  const members: Json = { ...entry, sequence, previous, ...(ledger && { ledger }) };
  const hash = hashOf(members);
  const text = `${formatCanonicalJson({ ...members, hash })}\n`;
  return { text, tail: { sequence, hash, ...(ledger && { ledger }) } };
}

/** Reads a line; undefined if it is not a line of a log, or its hash is not that of its members. */
export function readAuditLine(text: string): AuditLine | undefined {
  const { hash, ...members } = parseMembers(text);
  const { sequence, previous, time, ledger } = members;
  if (typeof sequence !== 'number' || typeof previous !== 'string' || typeof time !== 'string') {
    return undefined;
  }
  // Another spelling of the same members is not a line of ours.
  if (typeof hash !== 'string' || hash !== hashOf(members)) return undefined;
  if (text !== formatCanonicalJson({ ...members, hash })) return undefined;
  return { sequence, previous, time, hash, ...(isHead(ledger) && { ledger }) };
}

const hashOf = (members: Json): string =>
  createHash('sha256').update(formatCanonicalJson(members)).digest('hex');

function parseMembers(text: string): Readonly<Record<string, Json>> {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === 'object' && value !== null && !Array.isArray(value) && isShallow(value)
      ? (value as Readonly<Record<string, Json>>)
      : {};
  } catch {
    return {};
  }
}

/** Levels that no line has more of; thousands of them would be too deep to hash. */
const DEEPEST = 8;

const isShallow = (value: Json | undefined, levels = DEEPEST): boolean =>
  typeof value !== 'object' ||
  !value ||
  (levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1)));

const isHead = (value: unknown): value is LedgerHead =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as LedgerHead).seq === 'number' &&
  typeof (value as LedgerHead).mac === 'string';
