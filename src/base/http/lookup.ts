import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { kindOfAddress, kindOfHost, mayName, type AddressKind } from './address.ts';
import { RegistryError } from '../errors.ts';

/** All addresses of a name; an error as of the system's own. */
export type Lookup = (
  hostname: string,
  report: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export const lookupAll: Lookup = (hostname, report) => {
  systemLookup(hostname, { all: true }, report);
};

/** Names are checked when a connection is made: what they stand for may change at any time. */
export const guardLookup = (lookup: Lookup, namedBy: AddressKind): LookupFunction =>
  passLookup((hostname, report) => {
    lookup(hostname, (error, addresses) => {
      const refused = addresses.find(({ address }) => !mayName(namedBy, kindOfAddress(address)));
      if (error || !refused) report(error, addresses);
      else report(refuseAddress(hostname, refused.address, namedBy), []);
    });
  });

/** A look-up as Node's connections want it. */
export const passLookup =
  (lookup: Lookup): LookupFunction =>
  (hostname, { all = false }, report) => {
    lookup(hostname, (error, addresses) => {
      if (error || all) report(error, addresses);
      else report(null, addresses[0]?.address ?? '', addresses[0]?.family);
    });
  };

/**
 * An address in the place of a name is never looked up.
 *
 * @throws RegistryError `registry.address`
 */
export function checkName(hostname: string, namedBy: AddressKind | undefined): void {
  const kind = kindOfHost(hostname);
  if (namedBy === undefined || kind === undefined || mayName(namedBy, kind)) return;
  throw refuseAddress(hostname, hostname, namedBy);
}

function refuseAddress(host: string, address: string, namedBy: AddressKind): RegistryError {
  const kind = kindOfHost(address) ?? kindOfAddress(address);
  return new RegistryError(
    'registry.address',
    `${host} has a ${kind} address, which a host with a ${namedBy} address may not name`,
    {
      expected: `a ${namedBy} address`,
      found: address,
      hint: 'have the registry name a host that others can reach, too',
    },
  );
}
