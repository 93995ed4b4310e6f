/**
 * The form of a host's network, and its document in nmstate: an address on a port, on a bond of ports, or on
 * a VLAN on either. It is the one rule that the page has alone; the server judges the document.
 *
 * @typedef {{
 *   method: string, address: string, prefix: string, gateway: string, dns: string, search: string,
 *   vlan: string, bond: string, mtu: string, address6: string, prefix6: string, gateway6: string,
 *   bondName: string, vlanName: string,
 * }} NetworkValues
 * @typedef {import('./yaml.js').PlainMap} PlainMap
 */

/** @type {NetworkValues} */
export const EMPTY_NETWORK = {
  method: 'fixed',
  address: '',
  prefix: '',
  gateway: '',
  dns: '',
  search: '',
  vlan: '',
  bond: 'active-backup',
  mtu: '',
  address6: '',
  prefix6: '',
  gateway6: '',
  bondName: '',
  vlanName: '',
};

/**
 * @param {NetworkValues} values
 * @param {readonly string[]} ports names of the host's interfaces; more than one are a bond
 * @returns {PlainMap}
 */
export function buildNetwork(values, ports) {
  const isBonded = ports.length > 1;
  const base = isBonded ? values.bondName || 'bond0' : (ports[0] ?? '');
  const top = values.vlan === '' ? base : values.vlanName || `${base}.${values.vlan}`;
  /**
   * @param {string} name
   * @param {string} type
   * @param {PlainMap} [more]
   */
  const describe = (name, type, more) => ({
    name,
    type,
    state: 'up',
    ...(values.mtu !== '' && { mtu: toNumber(values.mtu) }),
    ...more,
    ...(name === top ? describeAddresses(values) : WITHOUT_ADDRESS),
  });
  return {
    interfaces: [
      ...ports.map((name) => describe(name, 'ethernet')),
      ...(isBonded ? [describe(base, 'bond', describeBond(values.bond, ports))] : []),
      ...(top === base ? [] : [describe(top, 'vlan', describeVlan(base, values.vlan))]),
    ],
    ...describeRoutes(values, top),
    ...describeNames(values),
  };
}

const WITHOUT_ADDRESS = { ipv4: { enabled: false }, ipv6: { enabled: false } };

/**
 * @param {string} mode
 * @param {readonly string[]} port
 */
const describeBond = (mode, port) => ({
  'link-aggregation': { mode, options: { miimon: 100 }, port },
});

/**
 * @param {string} base
 * @param {string} id
 */
const describeVlan = (base, id) => ({ vlan: { 'base-iface': base, 'id': toNumber(id) } });

/** @param {NetworkValues} values */
function describeAddresses({ method, address, prefix, address6, prefix6 }) {
  return {
    ipv4: method === 'dhcp' ? { enabled: true, dhcp: true } : describeAddress(address, prefix),
    ipv6: describeAddress(address6, prefix6),
  };
}

/**
 * @param {string} text perhaps with its prefix length: 192.0.2.10/24
 * @param {string} prefix perhaps a subnet mask
 */
function describeAddress(text, prefix) {
  if (text === '') return { enabled: false };
  const [ip = '', length = ''] = text.split('/');
  const given = (prefix === '' ? length : prefix).replace(/^\//, '');
  return {
    enabled: true,
    dhcp: false,
    address: [{ ip, ...(given !== '' && { 'prefix-length': toPrefix(given) }) }],
  };
}

/**
 * A text that is no number stays as it is, and the server says so.
 *
 * @param {string} text
 */
const toNumber = (text) => (/^\d{1,9}$/.test(text) ? Number(text) : text);

/** @param {string} text a length, or a mask such as 255.255.255.0 */
function toPrefix(text) {
  const octets = text.split('.').map(Number);
  if (octets.length !== 4 || !octets.every((each) => each >= 0 && each < 256)) {
    return toNumber(text);
  }
  const bits = octets.map((each) => each.toString(2).padStart(8, '0')).join('');
  return /^1*0*$/.test(bits) ? bits.replaceAll('0', '').length : text;
}

/**
 * @param {NetworkValues} values
 * @param {string} out
 */
function describeRoutes({ gateway, gateway6 }, out) {
  const config = [
    ['0.0.0.0/0', gateway],
    ['::/0', gateway6],
  ]
    .filter(([, next]) => next !== '')
    .map(([destination = '', next = '']) => ({
      destination,
      'next-hop-address': next,
      'next-hop-interface': out,
    }));
  return config.length === 0 ? {} : { routes: { config } };
}

/** @param {NetworkValues} values */
function describeNames({ dns, search }) {
  const config = {
    ...(dns !== '' && { server: splitWords(dns) }),
    ...(search !== '' && { search: splitWords(search) }),
  };
  return Object.keys(config).length === 0 ? {} : { 'dns-resolver': { config } };
}

/** @param {string} text */
export const splitWords = (text) => text.split(/[\s,;]+/).filter((word) => word !== '');

/** Members that a problem's path may end in, each with its field. */
const FIELDS = /** @type {const} */ ([
  [/ipv4\.address\[\d+\](?:\.prefix-length)?$/, 'prefix'],
  [/ipv6\.address\[\d+\](?:\.prefix-length)?$/, 'prefix6'],
  [/\.ipv4/, 'address'],
  [/\.ipv6/, 'address6'],
  [/search/, 'search'],
  [/^dns-resolver/, 'dns'],
  [/\.vlan\b/, 'vlan'],
  [/link-aggregation/, 'bond'],
  [/\.mtu$/, 'mtu'],
]);

/**
 * The field that a member of the built document is made of.
 *
 * @param {string} path
 * @param {Pick<NetworkValues, 'gateway' | 'vlan'>} values
 * @returns {keyof NetworkValues}
 */
export function fieldOfPath(path, { gateway, vlan }) {
  const [, route] = /^routes(?:\.config\[(\d+)\])?/.exec(path) ?? [];
  if (path.startsWith('routes')) {
    return route === '1' || (route === '0' && gateway === '') ? 'gateway6' : 'gateway';
  }
  const found = FIELDS.find(([pattern]) => pattern.test(path))?.[1];
  return found ?? (path.endsWith('.name') && vlan !== '' ? 'vlan' : 'address');
}

/**
 * A message without the interface and member that the form made.
 *
 * @param {string} message
 */
export const withoutPath = (message) =>
  message.replace(/^interface "[^"]*": /, '').replace(/^[a-z46]+[\w.[\]-]*: /, '');
