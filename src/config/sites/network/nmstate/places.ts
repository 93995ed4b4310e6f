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
  const type = textOf(value['type']) ?? '';
  const sections = findSections(type);
  const keys = Object.fromEntries(
    Object.keys(sections ?? {}).map((name) => [name, 'map' as const]),
  );
  const whole = { path, value, words: { ...INTERFACE, ...keys } };
  const families = ['ipv4', 'ipv6'].flatMap((name) => enter(whole, name, FAMILY));
  const own = Object.entries(sections ?? {}).flatMap(([name, words]) =>
    words ? enter(whole, name, words) : [],
  );
  return [
    // What interfaces of other types have nobody knows.
    ...(sections ? [whole] : []),
    ...families,
    ...families.flatMap((place) => enterEach(place, 'address', ADDRESS)),
    ...own,
    ...(type === 'bond' ? own.flatMap((place) => enter(place, 'options', BOND_OPTIONS)) : []),
  ];
}

/** An interface without a type is taken for an Ethernet interface where nothing is running. */
const findSections = (type: string): (typeof SECTIONS)[string] | undefined => {
  const name = type === '' ? 'ethernet' : type;
  return Object.hasOwn(SECTIONS, name) ? SECTIONS[name] : undefined;
};

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
