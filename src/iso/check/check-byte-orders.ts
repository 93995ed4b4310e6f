import { isBothEqual16, isBothEqual32 } from '../volume/both-endian.ts';
import type { SystemUseEntry } from '../directory/system-use.ts';

/** Offsets of numbers of 32 bits, and of 16. */
type BothFields = { readonly longs: readonly number[]; readonly shorts: readonly number[] };

const RECORD: BothFields = { longs: [2, 10], shorts: [28] };
const DESCRIPTOR: BothFields = { longs: [80, 132, 158, 166], shorts: [120, 124, 128, 184] };

/** Offsets of the numbers in a raw directory record whose two copies differ (ECMA-119 9.1). */
export const findUnequalInRecord = (raw: Uint8Array): number[] => findUnequal(raw, RECORD);

/** The same for a primary or supplementary volume descriptor (ECMA-119 8.4, 8.5). */
export const findUnequalInDescriptor = (raw: Uint8Array): number[] => findUnequal(raw, DESCRIPTOR);

/** Signatures of the system use entries with a number whose two copies differ (RRIP 4.1). */
export function findUnequalInEntries(entries: readonly SystemUseEntry[]): string[] {
  return entries.filter((entry) => hasUnequal(entry)).map((entry) => entry.signature);
}

function hasUnequal({ signature, data }: SystemUseEntry): boolean {
  const count = COUNT_OF_LONGS[signature] ?? 0;
  for (let at = 0; at < count * 8 && at + 8 <= data.length; at += 8) {
    if (!isBothEqual32(data, at)) return true;
  }
  return false;
}

const COUNT_OF_LONGS: Readonly<Record<string, number>> = { PX: 5, CE: 3, CL: 1, PL: 1, PN: 2 };

function findUnequal(raw: Uint8Array, fields: BothFields): number[] {
  return [
    ...fields.longs.filter((at) => !isBothEqual32(raw, at)),
    ...fields.shorts.filter((at) => !isBothEqual16(raw, at)),
  ];
}
