import { type Family, formatAddress, formatNetwork } from '../base/ip-address.ts';
import { isDynamic, isEnabled, listAddresses, outOf } from './addresses.ts';
import { explainHop } from './judge-addresses.ts';
import type { NetworkState, NetworkRoute, RouteRule } from './read.ts';
import type { NetworkInterface } from './state.ts';
import { type NetworkFinding, join } from './values.ts';

/* This file owns the rules for routes and route rules. */

type Explained = readonly [member: string, problem: string | undefined];

/** The problems of a route, and of the interface that it names. */
export function checkRoute(route: NetworkRoute, state: NetworkState): readonly NetworkFinding[] {
  const { destination, source, weight, 'next-hop-address': hop, 'route-type': type } = route;
  const ofFamily = (address: typeof hop): string | undefined =>
    address === undefined || address.family === destination.family
      ? undefined
      : `${formatAddress(address)} is not an IPv${destination.family} address`;
  const explained: readonly Explained[] = [
    ['destination', explainDestination(route)],
    [
      'next-hop-address',
      type === undefined
        ? (ofFamily(hop) ?? explainHop(hop, state.byName.get(outOf(route))))
        : hop && `a ${type} route has no next hop`,
    ],
    ['next-hop-interface', explainOut(route, state)],
    ['source', ofFamily(source)],
    [
      'weight',
      weight !== undefined && destination.family === 6
        ? 'routes of IPv6 have no weight'
        : undefined,
    ],
  ];
  return explained.flatMap(([member, problem]) =>
    problem === undefined ? [] : [{ path: join(route.path, member), problem }],
  );
}

function explainDestination({ destination, 'route-type': type }: NetworkRoute): string | undefined {
  const { family, value, prefix } = destination;
  const isOfNone = family === 4 && value >> 24n === 0n && prefix >= 8 && type === undefined;
  return isOfNone ? 'no host is in 0.0.0.0/8; the default route is 0.0.0.0/0' : undefined;
}

function explainOut(route: NetworkRoute, { byName }: NetworkState): string | undefined {
  const { destination, 'next-hop-interface': out, 'route-type': type } = route;
  if (type !== undefined)
    return out === undefined || out === 'lo' ? undefined : `a ${type} route has no next hop`;
  if (out === undefined) return `the route to ${formatNetwork(destination)} needs an interface`;
  const found = byName.get(out);
  if (!found) return out === 'lo' ? undefined : `no interface has the name "${out}"`;
  if (found.state !== 'up') return `"${out}" has the state ${found.state}`;
  return explainFamily(found, destination.family);
}

/** NetworkManager 1.42 refuses routes without an address of the family (nm-setting-ip4-config.c, verify). */
function explainFamily(found: NetworkInterface, family: Family): string | undefined {
  if (!isEnabled(found, family)) return `IPv${family} is not enabled on "${found.name}"`;
  const hasAny = isDynamic(found, family) || listAddresses(found, family).length > 0;
  return hasAny || found.type === 'loopback'
    ? undefined
    : `"${found.name}" has no IPv${family} address`;
}

/** The problems of a rule that chooses a route table. */
export function checkRule(rule: RouteRule): readonly NetworkFinding[] {
  const { path, family, 'ip-from': from, 'ip-to': to, fwmark, fwmask } = rule;
  if (from === undefined && to === undefined && family === undefined) {
    return [{ path, problem: 'a rule needs ip-from, ip-to or family' }];
  }
  const wanted = family === undefined ? (from ?? to)?.family : Number(family.slice(3));
  const ends = [['ip-from', from] as const, ['ip-to', to] as const];
  return [
    ...ends.flatMap(([member, end]) =>
      end === undefined || end.family === wanted
        ? []
        : [
            {
              path: join(path, member),
              problem: `${end.text} is not an IPv${String(wanted)} network`,
            },
          ],
    ),
    ...(fwmask !== undefined && fwmark === undefined
      ? [{ path: join(path, 'fwmask'), problem: 'needs fwmark' }]
      : []),
  ];
}
