import { buildNetwork, EMPTY_NETWORK } from './network-form.js';

/**
 * @typedef {import('./network-form.js').NetworkValues} NetworkValues
 * @typedef {{ values: NetworkValues, ports: readonly string[] } | { obstacle: string }} ReadForm
 */

/**
 * Reads a document into the form. The form can show exactly the documents that it builds, apart from members
 * that have their default; anything else is named as an obstacle.
 *
 * @param {unknown} value as the server read the YAML
 * @returns {ReadForm}
 */
export function readNetwork(value) {
  const { values, ports } = guess(value);
  const obstacle = findDifference(
    withoutDefaults(buildNetwork(values, ports), ''),
    withoutDefaults(value, ''),
    '',
  );
  return obstacle === undefined ? { values, ports } : { obstacle };
}

/**
 * @param {unknown} value
 * @param {...(string | number)} path
 * @returns {unknown}
 */
function look(value, ...path) {
  let found = value;
  for (const step of path) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = /** @type {Record<string | number, unknown>} */ (found)[step];
  }
  return found;
}

/** @param {unknown} value */
const textOf = (value) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : '';

/** @param {unknown} value */
const listOf = (value) => (Array.isArray(value) ? /** @type {unknown[]} */ (value) : []);

/**
 * @param {unknown} value
 * @returns {{ values: NetworkValues, ports: readonly string[] }}
 */
function guess(value) {
  const interfaces = listOf(look(value, 'interfaces'));
  /** @param {string} type */
  const find = (type) => interfaces.find((each) => look(each, 'type') === type);
  const [vlan, bond] = [find('vlan'), find('bond')];
  const top = vlan ?? bond ?? interfaces[0];
  const first = bond ?? interfaces.find((each) => each !== vlan) ?? {};
  const ports = bond
    ? listOf(look(bond, 'link-aggregation', 'port')).map(textOf)
    : [textOf(look(first, 'name'))];
  const routes = listOf(look(value, 'routes', 'config'));
  /** @param {string} destination */
  const gatewayTo = (destination) =>
    textOf(
      look(
        routes.find((route) => look(route, 'destination') === destination),
        'next-hop-address',
      ),
    );
  /** @param {string} name */
  const words = (name) =>
    listOf(look(value, 'dns-resolver', 'config', name))
      .map(textOf)
      .join(', ');
  return {
    ports,
    values: {
      ...EMPTY_NETWORK,
      method: look(top, 'ipv4', 'dhcp') === true ? 'dhcp' : 'fixed',
      address: textOf(look(top, 'ipv4', 'address', 0, 'ip')),
      prefix: textOf(look(top, 'ipv4', 'address', 0, 'prefix-length')),
      address6: textOf(look(top, 'ipv6', 'address', 0, 'ip')),
      prefix6: textOf(look(top, 'ipv6', 'address', 0, 'prefix-length')),
      gateway: gatewayTo('0.0.0.0/0'),
      gateway6: gatewayTo('::/0'),
      dns: words('server'),
      search: words('search'),
      mtu: textOf(look(top, 'mtu')),
      vlan: textOf(look(vlan, 'vlan', 'id')),
      vlanName: textOf(look(vlan, 'name')),
      bond: textOf(look(bond, 'link-aggregation', 'mode')) || EMPTY_NETWORK.bond,
      bondName: textOf(look(bond, 'name')),
    },
  };
}

/** Members whose value is what nmstate takes without them. */
const DEFAULTS = [
  /^interfaces\[\]\.state=up$/,
  /^interfaces\[\]\.type=ethernet$/,
  /^interfaces\[\]\.ipv[46]\.(?:dhcp|autoconf)=false$/,
  /^interfaces\[\]\.vlan\.protocol=802\.1q$/,
  /^routes\.config\[\]\.table-id=254$/,
];

/**
 * A document without members that have their default; interfaces have the order of their names. A family
 * that is not enabled is left out.
 *
 * @param {unknown} value
 * @param {string} path
 * @returns {unknown}
 */
function withoutDefaults(value, path) {
  if (Array.isArray(value)) {
    const items = listOf(value).map((/** @type {unknown} */ item) =>
      withoutDefaults(item, `${path}[]`),
    );
    return path === 'interfaces' ? items.sort((a, b) => compare(nameOf(a), nameOf(b))) : items;
  }
  if (typeof value !== 'object' || value === null) return textOf(value) || value;
  return Object.fromEntries(
    Object.entries(/** @type {Record<string, unknown>} */ (value))
      .map(([name, member]) => ({ name, at: path === '' ? name : `${path}.${name}`, member }))
      .filter(({ at, member }) => !isDefault(at, member))
      .map(({ name, at, member }) => [name, withoutDefaults(member, at)]),
  );
}

/**
 * @param {string} path
 * @param {unknown} value
 */
const isDefault = (path, value) =>
  DEFAULTS.some((pattern) =>
    pattern.test(`${path}=${typeof value === 'boolean' ? String(value) : textOf(value)}`),
  ) ||
  (/\.ipv[46]$/.test(path) && look(value, 'enabled') !== true);

/** @param {unknown} item */
const nameOf = (item) => textOf(look(item, 'name'));

/**
 * @param {string} a
 * @param {string} b
 */
const compare = (a, b) => (a < b ? -1 : Number(a > b));

/**
 * The first member that differs.
 *
 * @param {unknown} a
 * @param {unknown} b
 * @param {string} path
 * @returns {string | undefined}
 */
function findDifference(a, b, path) {
  const isBoth = [a, b].every((each) => typeof each === 'object' && each !== null);
  if (!isBoth) return a === b ? undefined : path;
  const isList = Array.isArray(a) || Array.isArray(b);
  for (const key of new Set([...Object.keys(b ?? {}), ...Object.keys(a ?? {})])) {
    const inside = isList ? `${path}[${key}]` : `${path}${path === '' ? '' : '.'}${key}`;
    const found = findDifference(look(a, key), look(b, key), inside);
    if (found !== undefined) return found;
  }
  return undefined;
}
