import { isMapping, listOf, mapOf, textOf, type FreeMap } from '../free.ts';
import {
  ADDRESS,
  BOND_OPTIONS,
  DOCUMENT,
  FAMILY,
  HOSTNAME,
  INTERFACE,
  RESOLVER,
  RESOLVER_CONFIG,
  ROUTE,
  ROUTE_RULE,
  ROUTE_RULES,
  ROUTES,
  SECTIONS,
  type Words,
} from './words.ts';

/** A mapping of a document, and the words that it may have. */
export type Place = { readonly path: string; readonly value: FreeMap; readonly words: Words };

/** Every mapping of an nmstate document whose words are known. */
export function listPlaces(network: FreeMap): readonly Place[] {
  const root = { path: 'networkConfig', value: network, words: DOCUMENT };
  const resolver = enter(root, 'dns-resolver', RESOLVER);
  const routes = enter(root, 'routes', ROUTES);
  const rules = enter(root, 'route-rules', ROUTE_RULES);
  return [
    root,
    ...enter(root, 'hostname', HOSTNAME),
    ...resolver,
    ...resolver.flatMap((place) => enter(place, 'config', RESOLVER_CONFIG)),
    ...routes,
    ...routes.flatMap((place) => enterEach(place, 'config', ROUTE)),
    ...rules,
    ...rules.flatMap((place) => enterEach(place, 'config', ROUTE_RULE)),
    ...enterEach(root, 'interfaces', INTERFACE).flatMap(listInterfacePlaces),
  ];
}

/** Of an interface that goes away nothing but its name, type and state is read. */
function listInterfacePlaces({ path, value }: Place): readonly Place[] {
  if (value['state'] === 'absent') return [];
  // An interface without a type is taken for an Ethernet interface where nothing is running.
  const type = textOf(value['type']) ?? 'ethernet';
  const { sections, words } = TYPES.get(type) ?? {};
  const whole = { path, value, words: words ?? {} };
  const families = ['ipv4', 'ipv6'].flatMap((name) => enter(whole, name, FAMILY));
  const own = Object.entries(sections ?? {}).flatMap(([name, below]) =>
    below ? enter(whole, name, below) : [],
  );
  return [
    // What interfaces of other types have nobody knows.
    ...(words ? [whole] : []),
    ...families,
    ...families.flatMap((place) => enterEach(place, 'address', ADDRESS)),
    ...own,
    ...(type === 'bond' ? own.flatMap((place) => enter(place, 'options', BOND_OPTIONS)) : []),
  ];
}

/** What is known of each type of interface. */
const TYPES = new Map(
  Object.entries(SECTIONS).map(([type, sections]) => {
    const names = Object.keys(sections).map((name) => [name, 'map'] as const);
    return [type, { sections, words: { ...INTERFACE, ...Object.fromEntries(names) } }];
  }),
);

function enter({ path, value }: Place, name: string, words: Words): readonly Place[] {
  const below = value[name];
  return isMapping(below) ? [{ path: `${path}.${name}`, value: below, words }] : [];
}

const enterEach = ({ path, value }: Place, name: string, words: Words): readonly Place[] =>
  listOf(value[name]).map((item, index) => ({
    path: `${path}.${name}[${index}]`,
    value: mapOf(item),
    words,
  }));
