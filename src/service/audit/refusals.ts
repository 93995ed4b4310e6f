import type { AuditEntry } from './chain.ts';

/*
 * Owns what the audit log has about requests that were refused for who asked: a line for the first of a kind, and one a
 * minute that counts the others, so that they do not fill the disk.
 */

export type RefusedRequest = {
  readonly method: string;
  /** Template of its route. */
  readonly route: string;
  readonly status: number;
  /** Words of our own, without values of the request. */
  readonly reason?: string;
  readonly address: string;
};

export type Refusals = {
  readonly refuse: (request: RefusedRequest) => void;
  readonly sweep: () => void;
  readonly end: () => void;
};

type Counted = { readonly entry: AuditEntry; readonly since: number; count: number };

const MINUTE = 60_000;
/** Number of kinds counted separately each minute; the rest share one count. */
const MOST = 100;

export function createRefusals({
  now,
  add,
}: {
  readonly now: () => number;
  readonly add: (entry: AuditEntry) => void;
}): Refusals {
  const kinds = new Map<string, Counted>();
  const finish = (key: string, { entry, count }: Counted): void => {
    kinds.delete(key);
    if (count > 0) add({ ...entry, count });
  };
  return {
    refuse({ method, route, status, reason, address }) {
      const own = [method, route, status, reason, address].join(' ');
      const isKnown = kinds.has(own) || kinds.size < MOST;
      const key = isKnown ? own : '';
      const known = kinds.get(key);
      if (known) {
        known.count += 1;
        return;
      }
      const what = isKnown ? { method, route, status, reason } : { status: 'others' };
      const entry = { event: 'request.refuse', what, ...(isKnown && { who: { address } }) };
      kinds.set(key, { entry, since: now(), count: 0 });
      add(entry);
    },
    sweep() {
      for (const [key, kind] of kinds) if (now() - kind.since >= MINUTE) finish(key, kind);
    },
    end() {
      for (const [key, kind] of kinds) finish(key, kind);
    },
  };
}
