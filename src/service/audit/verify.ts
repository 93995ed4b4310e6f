import { DifferenceError } from '../../base/errors.ts';
import { openForeign } from '../../base/disk/open-file.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { AUDIT_BEGINNING, readAuditLine, type AuditLine } from './chain.ts';
import { readLines, type ReadLine } from './read-lines.ts';

/* Owns the check of audit logs: files of one chain, the oldest first. */

export type VerifiedLog = {
  readonly lines: number;
  /** True if the chain begins in the first file: no earlier file is missing. */
  readonly isFromBeginning: boolean;
  readonly first: AuditEnd;
  readonly last: AuditEnd;
  /** Change of the records that the last line saw; null if it saw none. */
  readonly ledger: number | null;
  /** Number of the line with the expected hash. */
  readonly expectedAt?: number;
};

type AuditEnd = { readonly sequence: number; readonly hash: string; readonly time: string };

/**
 * Checks that files have one whole chain; `expected` is the hash of a line in it, or before it.
 *
 * @throws DifferenceError `audit.broken` for the first wrong line, `audit.empty`, `audit.hash-missing`;
 * errors of `openForeign`
 */
export async function verifyAuditLog(
  paths: readonly string[],
  expected?: string,
): Promise<VerifiedLog> {
  const chain = createChain(expected);
  for (const path of paths) {
    let number = 0;
    for await (const line of readFile(path)) {
      number += 1;
      chain.add(line, { path, number });
    }
  }
  return chain.end();
}

type Chain = {
  readonly add: (line: ReadLine, place: LinePlace) => void;
  readonly end: () => VerifiedLog;
};

function createChain(expected: string | undefined): Chain {
  let first: AuditLine | undefined;
  let last: AuditLine | undefined;
  let lines = 0;
  let expectedAt: number | undefined;
  return {
    add(text, place) {
      const line = requireNext(text, last, place);
      first ??= line;
      last = line;
      lines += 1;
      if (line.hash === expected) expectedAt = line.sequence;
      else if (line.previous === expected) expectedAt ??= line.sequence - 1;
    },
    end() {
      if (!first || !last) throw new DifferenceError('audit.empty', 'the audit log has no line');
      if (expected !== undefined && expectedAt === undefined) throw missing(expected, last);
      return {
        lines,
        isFromBeginning: first.previous === AUDIT_BEGINNING.hash,
        first: toEnd(first),
        last: toEnd(last),
        ledger: last.ledger?.seq ?? null,
        ...withoutUndefined({ expectedAt }),
      };
    },
  };
}

const toEnd = ({ sequence, hash, time }: AuditLine): AuditEnd => ({ sequence, hash, time });

async function* readFile(path: string) {
  const file = await openForeign(path);
  try {
    yield* readLines(file);
  } catch (error) {
    if (!isUnpackFault(error)) throw error;
    throw new DifferenceError('audit.broken', `"${path}" cannot be unpacked`, { cause: error });
  } finally {
    await file.close();
  }
}

const isUnpackFault = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');

type LinePlace = { readonly path: string; readonly number: number };

function requireNext(
  { text, isWhole }: ReadLine,
  before: AuditLine | undefined,
  place: LinePlace,
): AuditLine {
  const line = text === undefined ? undefined : readAuditLine(text);
  if (!isWhole) throw broken(place, 'it is cut off', before);
  if (!line) throw broken(place, 'its hash is not that of its members', before);
  if (!before) return line;
  if (line.sequence !== before.sequence + 1) {
    const found = `it has number ${line.sequence}, after ${before.sequence}`;
    throw broken(place, found, before);
  }
  if (line.previous === before.hash) return line;
  throw broken(place, 'it does not name the hash of the line before it', before);
}

const broken = (
  { path, number }: LinePlace,
  problem: string,
  before: AuditLine | undefined,
): DifferenceError =>
  new DifferenceError(
    'audit.broken',
    `line ${number} of "${path}" is not the next one: ${problem}`,
    {
      ...(before && { expected: `a line after ${before.sequence} with hash ${before.hash}` }),
      hint: 'compare it with the copy that is kept elsewhere; files of one chain are given oldest first',
    },
  );

const missing = (expected: string, last: AuditLine): DifferenceError =>
  new DifferenceError('audit.hash-missing', 'the audit log does not have the expected hash', {
    expected,
    found: `a chain that ends at ${last.sequence} with ${last.hash}`,
    hint: 'the log was made again, or begins later: give its earlier files as well',
  });
