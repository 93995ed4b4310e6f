import { createHash } from 'node:crypto';
import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/members.ts';
import { parse } from '../../base/text/yaml.ts';
import type { Keyfile } from './custom-values.ts';
import { formatKeyfile, malformed, type Section } from './keyfile-text.ts';
import { planAddresses, type Resolver, type Route } from './keyfile-addresses.ts';

type Members = Readonly<Record<string, unknown>>;

/** NetworkManager's name of each type that is written here; nmstate writes more. */
const TYPES: Readonly<Record<string, string>> = {
  'ethernet': '802-3-ethernet',
  'vlan': 'vlan',
  'bond': 'bond',
  'linux-bridge': 'bridge',
};

type Interface = {
  readonly name: string;
  readonly type: string;
  readonly value: Members;
  /** The bond or bridge that it belongs to. */
  readonly controller?: { readonly name: string; readonly type: string };
};

/**
 * The profiles that nmstate 2.2 makes of a configuration with ethernet, VLAN, bond and bridge interfaces. Sections and
 * keys are in nmstate's order; identifiers are those that it derives from type and name.
 *
 * @throws ConfigError `nmstate.unsupported` where only nmstate itself can write the profiles; `nmstate.malformed`
 */
export function renderKeyfiles(networkConfig: string): readonly Keyfile[] {
  const state = readState(networkConfig);
  const interfaces = listInterfaces(state);
  const routes = listOf(objectOrEmpty(state['routes'])['config']).filter(
    (route) => route['state'] !== 'absent',
  ) as readonly Route[];
  const resolver = objectOrEmpty(objectOrEmpty(state['dns-resolver'])['config']) as Resolver;
  const addresses = planAddresses(
    interfaces.filter(({ controller }) => !controller),
    { routes, resolver },
  );
  const files = interfaces.map((each) => ({
    name: `${each.name}.nmconnection`,
    content: formatKeyfile([
      describeConnection(each),
      ...describeController(each),
      ...(addresses.get(each.name) ?? []),
      ...describeEthernet(each),
      ...describeVlan(each),
      ...describeUser(each),
    ]),
  }));
  if (files.length > 0) return files;
  throw malformed('nmstate generated an empty NetworkManager config file content');
}

function readState(networkConfig: string): Members {
  try {
    return objectOrEmpty(parse(networkConfig));
  } catch (cause) {
    throw malformed('it is not YAML', cause);
  }
}

const listOf = (value: unknown): readonly Members[] =>
  Array.isArray(value) ? value.map(objectOrEmpty) : [];

/** Those that are up, controllers in front of their ports, by name; ports that only a controller names are ethernet. */
function listInterfaces(state: Members): readonly Interface[] {
  const listed = listOf(state['interfaces']).filter((value) => value['state'] !== 'absent');
  const controllers = new Map<string, { readonly name: string; readonly type: string }>();
  for (const value of listed) {
    for (const port of portsOf(value)) {
      controllers.set(port, { name: nameOf(value), type: String(value['type']) });
    }
  }
  const names = new Set(listed.map(nameOf));
  const implied = [...controllers.keys()].filter((name) => !names.has(name));
  const all = [...listed, ...implied.map((name): Members => ({ name, type: 'ethernet' }))];
  const interfaces = all.map((value): Interface => {
    const name = nameOf(value);
    const { type = 'ethernet' } = value as { readonly type?: string };
    if (!Object.hasOwn(TYPES, type)) throw unsupported(name, `is of type ${type}`);
    const controller = controllers.get(name);
    return { name, type, value, ...(controller && { controller }) };
  });
  return interfaces.toSorted(
    (a, b) =>
      Number(a.controller !== undefined) - Number(b.controller !== undefined) ||
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

const unsupported = (name: string, why: string): ConfigError =>
  new ConfigError('nmstate.unsupported', `interface "${name}" ${why}`, {
    expected: 'ethernet, vlan, bond or linux-bridge',
    hint: 'install nmstate, whose nmstatectl writes the profiles of every type',
  });

const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$/;

function nameOf({ name }: Members): string {
  if (typeof name === 'string' && FILE_NAME.test(name)) return name;
  throw malformed(name === undefined ? "missing field 'name'" : 'an interface has an odd name');
}

function portsOf(value: Members): readonly string[] {
  const bond = objectOrEmpty(value['link-aggregation']);
  const list = bond['port'] ?? bond['ports'] ?? bond['slaves'];
  const bridge = objectOrEmpty(value['bridge']);
  return [
    ...(Array.isArray(list) ? list.map(String) : []),
    ...listOf(bridge['port'] ?? bridge['ports']).map(nameOf),
  ];
}

function describeConnection({ name, type, value, controller }: Interface): Section {
  const isController = type === 'bond' || type === 'linux-bridge';
  const isByAddress = value['identifier'] === 'mac-address';
  return {
    name: 'connection',
    entries: [
      ['autoconnect', 'true'],
      ['autoconnect-slaves', isController ? '1' : '-1'],
      ['id', name],
      ...(isByAddress ? [] : [['interface-name', name] as const]),
      ...(controller
        ? ([
            ['master', controller.name],
            ['slave-type', TYPES[controller.type] ?? ''],
          ] as const)
        : []),
      ['type', TYPES[type] ?? ''],
      ['uuid', formatUuid(`${type}://${name}`)],
    ],
  };
}

/** RFC 9562 5.5 in the namespace of URLs. */
function formatUuid(text: string): string {
  const namespace = Buffer.from('6ba7b8119dad11d180b400c04fd430c8', 'hex');
  const bytes = createHash('sha1').update(namespace).update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function describeController({ name, type, value }: Interface): readonly Section[] {
  if (type === 'bond') {
    const bond = objectOrEmpty(value['link-aggregation']);
    const options = { ...objectOrEmpty(bond['options']), mode: bond['mode'] };
    return [{ name: 'bond', entries: sortEntries(options) }];
  }
  if (type !== 'linux-bridge') return [];
  const { options, ...others } = objectOrEmpty(value['bridge']);
  const { stp, ...unknown } = objectOrEmpty(options);
  const odd = Object.keys(unknown).concat(
    Object.keys(others).filter((key) => !/^ports?$/.test(key)),
  );
  if (odd.length > 0)
    throw unsupported(name, `has bridge options that are not known: ${odd.join()}`);
  const { enabled } = objectOrEmpty(stp);
  return [{ name: 'bridge', entries: sortEntries({ 'stp': enabled, 'vlan-filtering': false }) }];
}

const sortEntries = (members: Members): Section['entries'] =>
  Object.entries(members)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => [key, String(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

function describeEthernet({ value }: Interface): readonly Section[] {
  const address =
    typeof value['mac-address'] === 'string' ? value['mac-address'].toUpperCase() : undefined;
  const isByAddress = value['identifier'] === 'mac-address';
  const entries = sortEntries({
    [isByAddress ? 'mac-address' : 'cloned-mac-address']: address,
    mtu: value['mtu'],
  });
  return entries.length === 0 ? [] : [{ name: 'ethernet', entries }];
}

function describeVlan({ type, value }: Interface): readonly Section[] {
  if (type !== 'vlan') return [];
  const { id, 'base-iface': parent } = objectOrEmpty(value['vlan']);
  return [{ name: 'vlan', entries: sortEntries({ flags: 1, id, parent }) }];
}

const describeUser = ({ value: { description } }: Interface): readonly Section[] =>
  typeof description === 'string'
    ? [{ name: 'user', entries: [['nmstate.interface.description', description]] }]
    : [];
