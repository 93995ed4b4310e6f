import type { IncomingMessage, ServerResponse } from 'node:http';
import { createShares, createRate } from '../base/http/shares.ts';
import { type ClientAddresses, createClientAddresses } from '../base/http/client-address.ts';
import { ApiFailure } from './openapi.ts';

/*
 * Owns what one tenant, or one address, may have of the service at a time: requests in flight, calls a second, and bytes of
 * bodies. Records have limits of their own, in state/.
 */

export type BudgetLimits = {
  /** Requests in flight of a tenant. */
  readonly tenant: number;
  /** Calls of the API a second, of an address and of a tenant. */
  readonly rate: number;
  /** Bytes of bodies in memory: all, and those of one owner. */
  readonly bodies: number;
  readonly bodiesEach: number;
};

const BUDGET_LIMITS: BudgetLimits = {
  tenant: 512,
  rate: 100,
  bodies: 32 << 20,
  bodiesEach: 8 << 20,
};

/** Each throws ApiFailure 429 for an owner that has too much, and 503 if all have. */
export type Budgets = {
  /** Counts a call of an address. */
  readonly countCall: (request: IncomingMessage) => void;
  /** Counts one more request of a tenant, until `leave`; false if the tenant has too many. Users without a name have no limit. */
  readonly enter: (tenant: string) => boolean;
  readonly leave: (tenant: string) => void;
  /** Requests in flight of each tenant, in this process. */
  readonly listTenants: () => ReadonlyMap<string, number>;
  /** Counts a request of a tenant until it is answered. */
  readonly admit: (request: Incoming, tenant: string) => void;
  /** Counts bytes of a body until its request is answered. @param cancel called if others need the room */
  readonly openBody: (request: Incoming, cancel: (failure: ApiFailure) => void) => BodyLease;
};

type Incoming = { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse };

export type BodyLease = { readonly add: (bytes: number) => void };

type Lease = { readonly owner: string; bytes: number; readonly cancel: (why: ApiFailure) => void };

/** Seconds of calls that an owner may make at once. */
const BURST = 10;

/** Bytes of a body that cost as much as a call. */
const UNIT = 16 << 10;

export type BudgetSettings = {
  /** Default: `BUDGET_LIMITS`. */
  readonly budgets?: BudgetLimits;
  readonly addresses?: ClientAddresses;
  /** Requests in flight of a tenant in other processes of this service. */
  readonly elsewhere?: (tenant: string) => number;
};

export function createBudgets({
  budgets: limits = BUDGET_LIMITS,
  addresses = createClientAddresses(),
  elsewhere,
}: BudgetSettings): Budgets {
  const inFlight = createShares({ each: limits.tenant, all: Infinity }, elsewhere);
  const rate = createRate({ perSecond: limits.rate, burst: limits.rate * BURST });
  const tenants = new WeakMap<IncomingMessage, string>();
  const ownerOf = (incoming: IncomingMessage): string =>
    tenants.get(incoming) ?? addresses.ofRequest(incoming);
  const enter: Budgets['enter'] = (tenant) => tenant === '' || inFlight.take(tenant, 1) === 'taken';
  const leave: Budgets['leave'] = (tenant) => {
    if (tenant !== '') inFlight.give(tenant, 1);
  };
  const useRate = (owner: string): void => {
    const wait = rate.use(owner, 1);
    if (wait === undefined) return;
    throw new ApiFailure(429, `there are more than ${limits.rate} calls a second: wait a while`);
  };
  return {
    countCall(request) {
      useRate(addresses.ofRequest(request));
    },
    enter,
    leave,
    listTenants: inFlight.list,
    admit({ incoming, outgoing }, tenant) {
      if (tenants.has(incoming)) return;
      if (!enter(tenant)) {
        throw new ApiFailure(429, `${limits.tenant} requests of this tenant are being answered`);
      }
      if (tenant === '') return;
      tenants.set(incoming, `tenant ${tenant}`);
      outgoing.once('close', () => {
        leave(tenant);
      });
    },
    openBody: createBodyBudget(limits, {
      ownerOf,
      use: (owner, bytes) => void rate.use(owner, bytes / UNIT),
    }),
  };
}

function createBodyBudget(
  { bodies: all, bodiesEach: each }: BudgetLimits,
  {
    ownerOf,
    use,
  }: {
    readonly ownerOf: (request: IncomingMessage) => string;
    readonly use: (owner: string, bytes: number) => void;
  },
): Budgets['openBody'] {
  const budget = createShares({ each, all });
  const leases = new Set<Lease>();
  const drop = (lease: Lease): void => {
    if (leases.delete(lease)) budget.give(lease.owner, lease.bytes);
  };
  /** Cancels the oldest body of the owner who has most; false if that is the one who asks. */
  const makeRoom = (asking: string): boolean => {
    const largest = budget.findLargest();
    const lease = [...leases].find(({ owner, bytes }) => owner === largest && bytes > 0);
    if (!lease || largest === asking) return false;
    drop(lease);
    lease.cancel(FULL);
    return true;
  };
  return ({ incoming, outgoing }, cancel) => {
    const lease: Lease = { owner: ownerOf(incoming), bytes: 0, cancel };
    leases.add(lease);
    outgoing.once('close', () => {
      drop(lease);
    });
    return {
      add(bytes) {
        if (!leases.has(lease)) throw FULL;
        let taken = budget.take(lease.owner, bytes);
        while (taken === 'all' && makeRoom(lease.owner)) taken = budget.take(lease.owner, bytes);
        if (taken === 'each') {
          throw new ApiFailure(429, `bodies of one sender may have ${each} bytes at a time`);
        }
        if (taken === 'all') throw FULL;
        lease.bytes += bytes;
        use(lease.owner, bytes);
      },
    };
  };
}

const FULL = new ApiFailure(503, 'too many bodies are being read');
