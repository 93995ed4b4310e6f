import type { DocumentProblem } from '../../../base/errors.ts';
import type { Report } from '../../../shape/report.ts';
import { invalid, required } from '../../../shape/report.ts';
import { flagOf, listOf, mapOf, textOf, type FreeMap } from '../free.ts';
import type { NetworkInterface } from '../interfaces.ts';
import {
  parseAddress,
  parseCidr,
  type Cidr,
  type Family,
  type IpAddress,
} from '../../../base/ip-address.ts';

/** Routes over interfaces that are there. */
export function checkRoutes(
  report: Report,
  network: FreeMap,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const byName = new Map(interfaces.map((each) => [each.name, each]));
  return listOf(mapOf(network['routes'])['config'])
    .map(mapOf)
    .flatMap((route, index) =>
      route['state'] === 'absent'
        ? []
        : Object.entries(explainRoute(route, byName)).map(([name, why]) =>
            report(`networkConfig.routes.config[${index}].${name}`, why),
          ),
    );
}

type Interfaces = ReadonlyMap<string, NetworkInterface>;

type Target = IpAddress | Cidr;

/** What is wrong, by the member of the route. */
function explainRoute(route: FreeMap, byName: Interfaces): Readonly<Record<string, string>> {
  const destination = textOf(route['destination']) ?? '';
  const target = parseCidr(destination) ?? parseAddress(destination);
  const via = textOf(route['next-hop-address']) ?? '';
  const out = textOf(route['next-hop-interface']) ?? '';
  const isSink = (textOf(route['route-type']) ?? '') !== '';
  const why = {
    'destination': explainDestination(destination, target),
    'next-hop-address': isSink ? explainSink(via) : explainAddress(via, target),
    'next-hop-interface': isSink ? undefined : explainOut(out, byName, target),
    'source': explainAddress(textOf(route['source']) ?? '', target),
    'weight': explainWeight(textOf(route['weight'])),
  };
  return Object.fromEntries(
    Object.entries(why).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function explainDestination(text: string, target: Target | undefined): string | undefined {
  if (text === '') return required('a route needs a destination');
  if (!target) return invalid(text, 'not a valid network');
  const isZero = target.family === 4 && target.value >> 24n === 0n;
  return isZero && 'prefix' in target && target.prefix >= 8
    ? invalid(text, 'not a usable host network; the default route is 0.0.0.0/0')
    : undefined;
}

const explainSink = (via: string): string | undefined =>
  via === '' ? undefined : invalid(via, 'a route with a route-type leads to no next hop');

/** Of a next hop, or of where packets come from. */
function explainAddress(text: string, target: Target | undefined): string | undefined {
  if (text === '') return undefined;
  const address = parseAddress(text);
  if (!address) return invalid(text, 'not a valid IP address');
  const fits = !target || target.family === address.family;
  return fits ? undefined : invalid(text, 'this is of another family than the destination');
}

function explainOut(
  out: string,
  byName: Interfaces,
  target: Target | undefined,
): string | undefined {
  if (out === '') return required('a route needs an interface');
  // Every node has it.
  if (out === 'lo') return undefined;
  const found = byName.get(out);
  if (!found) return invalid(out, 'no interface above has this name');
  const state = textOf(found.value['state']);
  if (state === 'absent') return invalid(out, 'this interface is taken away above');
  if (!target || state === 'ignore' || isEnabled(found, target.family)) return undefined;
  return invalid(out, `IPv${target.family} is not enabled on this interface`);
}

const isEnabled = ({ value }: NetworkInterface, family: Family): boolean =>
  flagOf(mapOf(value[`ipv${family}`])['enabled']) === true;

const explainWeight = (text: string | undefined): string | undefined =>
  text === undefined || !/^\d+$/.test(text) || (Number(text) > 0 && Number(text) <= 256)
    ? undefined
    : invalid(text, 'this must be from 1 to 256');

/** Rules that choose a table of routes by address. */
export const checkRouteRules = (report: Report, network: FreeMap): readonly DocumentProblem[] =>
  listOf(mapOf(network['route-rules'])['config'])
    .map(mapOf)
    .flatMap((rule, index) =>
      rule['state'] === 'absent'
        ? []
        : checkRouteRule(report, `networkConfig.route-rules.config[${index}]`, rule),
    );

function checkRouteRule(report: Report, path: string, rule: FreeMap): readonly DocumentProblem[] {
  const family = textOf(rule['family']) ?? '';
  const ends = (['ip-from', 'ip-to'] as const)
    .map((name) => ({ name, text: textOf(rule[name]) ?? '' }))
    .filter(({ text }) => text !== '')
    .map((end) => ({ ...end, target: parseCidr(end.text) ?? parseAddress(end.text) }));
  if (ends.length === 0 && family === '') {
    return [report(path, required('a rule needs ip-from, ip-to or family'))];
  }
  const wanted = /^ipv[46]$/.test(family) ? Number(family.slice(3)) : ends[0]?.target?.family;
  return ends.flatMap(({ name, text, target }) => {
    if (!target) return [report(`${path}.${name}`, invalid(text, 'not a valid network'))];
    return target.family === wanted
      ? []
      : [report(`${path}.${name}`, invalid(text, `not an IPv${String(wanted)} address`))];
  });
}
