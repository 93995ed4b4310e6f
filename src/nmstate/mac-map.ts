import { findRepeated } from '../base/lists.ts';
import { parseMacAddress } from '../base/mac-address.ts';
import { isThere, listBases, listPorts } from './addresses.ts';
import { isAddressOfHost } from './bond.ts';
import type { NetworkState } from './read.ts';
import type { NetworkInterface } from './state.ts';
import { expected, type NetworkFinding } from './values.ts';

/*
 * This file owns the rules for MAC addresses: for those of the document, and for the map by which a host
 * finds its network, which gives the names in the document to its interfaces.
 */

/** An interface of a document, with the MAC address by which a host has it. */
export type MappedInterface = { readonly name: string; readonly macAddress: string };

/** The form of nmstate. */
const normalise = (mac: string): string => parseMacAddress(mac)?.toUpperCase() ?? mac;

/** Names that systemd gives to devices (systemd.net-naming-scheme), which need no map. */
const PREDICTABLE = /^en[PsvxXbucaipod]/;

/** Problems of a map, and of the names that it lacks (assisted-service, staticnetworkconfig). */
export function checkMap(
  { interfaces, byName }: NetworkState,
  map: readonly MappedInterface[],
): readonly NetworkFinding[] {
  const names = new Set(map.map(({ name }) => name));
  const macs = map.map(({ macAddress }) => normalise(macAddress));
  const there = interfaces.filter(isThere);
  const found = new Set(
    there.filter(({ identifier }) => identifier === 'mac-address').map(({ name }) => name),
  );
  const lacks = (name: string): boolean =>
    !names.has(name) && !found.has(name) && !PREDICTABLE.test(name);
  return [
    ...map.flatMap(({ macAddress, name }) => explainMac(normalise(macAddress), name)),
    ...findRepeated(macs).map((mac) => ({ path: '', problem: `the MAC map has ${mac} twice` })),
    ...there.flatMap((each) => {
      const ports = each.type === 'bond' ? listPorts(each) : [];
      const isLacking = each.type === 'ethernet' && lacks(each.name);
      return [
        ...(isLacking ? [lacking(each.name, `${each.path}.name`)] : []),
        ...ports
          .filter(({ name }) => lacks(name) && !byName.has(name))
          .map(({ name, path }) => lacking(name, path)),
      ];
    }),
  ];
}

const lacking = (name: string, path: string): NetworkFinding => ({
  path,
  owner: name,
  problem: 'the MAC map has no entry for this interface',
  hint: `add its MAC address with the name "${name}"`,
  isUnmapped: true,
});

/** Each entry becomes a line `MAC=NAME`, which a script of the host reads. */
function explainMac(mac: string, name: string): readonly NetworkFinding[] {
  const about = { path: '', owner: name };
  if (/\p{Cc}/u.test(name)) {
    return [
      { path: '', problem: `MAC map: ${expected(name, 'the name of an interface on one line')}` },
    ];
  }
  if (parseMacAddress(mac) === undefined) {
    return [{ ...about, problem: `MAC map: ${expected(mac, 'a MAC address')}` }];
  }
  return isAddressOfHost(mac)
    ? []
    : [{ ...about, problem: `MAC map: no interface can have the address ${mac}` }];
}

/** Entries that name no interface of the document, or contradict its address. */
export function warnOfMap(
  { interfaces, byName }: NetworkState,
  map: readonly MappedInterface[],
): readonly NetworkFinding[] {
  const named = new Set(
    interfaces.flatMap((each) =>
      [each, ...listPorts(each), ...listBases(each)].map(({ name }) => name),
    ),
  );
  return map.flatMap(({ name, macAddress }) => {
    const { path, 'mac-address': mac } = byName.get(name) ?? {};
    if (!named.has(name)) {
      return [{ path: '', problem: `the MAC map names "${name}", which is not in the document` }];
    }
    if (mac === undefined || mac === normalise(macAddress)) return [];
    const problem = `the document has ${mac}, but the MAC map ${normalise(macAddress)}`;
    return [{ path: `${path ?? ''}.mac-address`, owner: name, problem }];
  });
}

/** Interfaces of one kind that have the address of another one before them. */
export function findSharedMacs(
  interfaces: readonly NetworkInterface[],
  isOfKind: (each: NetworkInterface) => boolean,
): readonly NetworkFinding[] {
  const owners = new Map<string, string>();
  return interfaces.filter(isThere).flatMap((each) => {
    const { name, path, 'mac-address': mac } = each;
    if (mac === undefined || !isOfKind(each)) return [];
    const owner = owners.get(mac);
    owners.set(mac, name);
    if (owner === undefined) return [];
    const problem = `${mac} is also the address of "${owner}"`;
    return [{ path: `${path}.mac-address`, owner: name, problem }];
  });
}
