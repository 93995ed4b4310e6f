import { contains, formatAddress } from '../base/ip-address.ts';
import { parseMacAddress } from '../base/mac-address.ts';
import { listOwned, type Owned } from './judge-addresses.ts';
import type { MappedInterface } from './mac-map.ts';
import type { NetworkState } from './read.ts';
import type { NetworkFinding } from './values.ts';

/* This file owns the comparison of the hosts of one document or request: two of them must not be one to others. */

export type ComparedHost = {
  readonly interfaces: readonly MappedInterface[];
  readonly state: NetworkState;
  /** The place of a value of this host, for a message about another host. */
  readonly placeOf: (path: string) => string;
};

export type SharedFindings = {
  readonly problems: readonly NetworkFinding[];
  readonly warnings: readonly NetworkFinding[];
};

/**
 * Compares hosts: the findings of each, about hosts before it. A MAC address is a problem: the network of one of
 * the hosts would be lost. So is an address in the subnet of a default gateway, where hosts meet; in other
 * subnets, such as that of a bridge inside each host, it is a warning.
 */
export function compareHosts(hosts: readonly ComparedHost[]): readonly SharedFindings[] {
  const macs = new Set<string>();
  const addresses = new Map<string, Owned & { readonly host: ComparedHost }>();
  return hosts.map((host) => {
    const own = listMacs(host);
    const repeated = own.filter((mac) => macs.has(mac));
    for (const mac of own) macs.add(mac);
    const problems: NetworkFinding[] = repeated.map((mac) => ({
      path: '',
      problem: `MAC ${mac} belongs to two hosts`,
    }));
    const warnings: NetworkFinding[] = [];
    for (const each of host.state.interfaces.flatMap(listOwned)) {
      const key = formatAddress(each.subnet);
      const known = addresses.get(key);
      if (known === undefined) addresses.set(key, { ...each, host });
      else if (known.host !== host)
        (isMeeting(host.state, each) ? problems : warnings).push(explainShared(each, known));
    }
    return { problems, warnings };
  });
}

const listMacs = ({ interfaces }: ComparedHost): readonly string[] => [
  ...new Set(interfaces.map(({ macAddress }) => parseMacAddress(macAddress) ?? macAddress)),
];

const isMeeting = ({ routes }: NetworkState, { subnet }: Owned): boolean =>
  routes.some(({ destination, 'next-hop-address': hop }) => {
    return destination.prefix === 0 && hop !== undefined && contains(subnet, hop);
  });

function explainShared(
  { owner, path, text }: Owned,
  other: Owned & { readonly host: ComparedHost },
): NetworkFinding {
  const place = other.host.placeOf(other.path);
  const where = place === '' ? '' : ` (${place})`;
  const problem = `${text} is also the address of "${other.owner}" of another host${where}`;
  return { path, owner, problem };
}
