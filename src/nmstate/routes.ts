import { type Family, formatAddress, formatNetwork } from '../base/ip-address.ts';
import type { KeyfileEntry } from './keyfile.ts';
import type { NetworkRoute } from './read.ts';

/* This file owns routes in profiles. */

const MAIN_TABLE = 254;
/** The kernel's metric of IPv6 routes (IP6_RT_PRIO_USER). */
const IPV6_METRIC = 1024;

/** Routes in nmstate's order, by their texts; of those that differ only in their metric, the first. */
export function describeRoutes(
  routes: readonly NetworkRoute[],
  family: Family,
): readonly KeyfileEntry[] {
  const known = new Set<string>();
  const described = routes
    .map((route) => ({ key: keyOf(route), ...formatRoute(route, family) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .filter(({ key }) => !known.has(key) && known.add(key));
  return described.flatMap(({ route, options }, index): readonly KeyfileEntry[] => [
    [`route${index}`, route],
    [`route${index}_options`, options],
  ]);
}

/** nmstate keeps two routes of which one names the main table as 0, and writes the same table for both. */
function keyOf(route: NetworkRoute): string {
  const {
    destination,
    weight = 0,
    'route-type': type = '',
    'table-id': table = MAIN_TABLE,
  } = route;
  const numbers = [table, weight].map((number) => String(number).padStart(10, '0'));
  return [formatNetwork(destination), formatHop(route), ...numbers, type].join('\0');
}

/** The unspecified address means that there is no gateway. */
const formatHop = ({ 'next-hop-address': hop }: NetworkRoute): string =>
  hop === undefined || hop.value === 0n ? '' : formatAddress(hop);

const tableOf = ({ 'table-id': table = 0 }: NetworkRoute): number =>
  table === 0 ? MAIN_TABLE : table;

function formatRoute(
  route: NetworkRoute,
  family: Family,
): { readonly route: string; readonly options: string } {
  const { destination, metric = -1, weight, 'route-type': type } = route;
  const metricOr = family === 6 ? IPV6_METRIC : 0;
  return {
    route: `${formatNetwork(destination)},${formatHop(route)},${metric === -1 ? metricOr : metric}`,
    options: [
      `table=${tableOf(route)}`,
      ...(weight === undefined ? [] : [`weight=${weight}`]),
      ...(type === undefined ? [] : [`type=${type}`]),
    ].join(','),
  };
}
