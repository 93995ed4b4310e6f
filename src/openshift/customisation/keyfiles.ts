import { createHash } from 'node:crypto';
import { append } from '../../base/lists.ts';
import type { Keyfile } from './custom-values.ts';
import { planAddresses } from './keyfile-addresses.ts';
import { escapeText, formatKeyfile, malformed, type Section } from './keyfile-text.ts';
import type { Interface, InterfaceType } from './network-interfaces.ts';
import { readNetwork } from './network-state.ts';
import { refuse } from './network-values.ts';

/** NetworkManager's name of each type that is written here; nmstate writes more. */
const TYPES: Readonly<Record<InterfaceType, string>> = {
  'ethernet': '802-3-ethernet',
  'vlan': 'vlan',
  'bond': 'bond',
  'linux-bridge': 'bridge',
};

/** The bond or bridge that each port belongs to, by the name of the port. */
type Controllers = ReadonlyMap<string, Interface>;

/**
 * The profiles that nmstate 2.2 makes of a configuration with ethernet, VLAN, bond and bridge interfaces. Sections and
 * keys are in nmstate's order; identifiers are those that it derives from type and name.
 *
 * @throws ConfigError `nmstate.unsupported` where only nmstate itself can write the profiles; `nmstate.malformed`
 */
export function renderKeyfiles(networkConfig: string): readonly Keyfile[] {
  const { interfaces: listed, routes, resolver } = readNetwork(networkConfig);
  const controllers = listControllers(listed);
  const interfaces = listInterfaces(listed, controllers);
  const addresses = planAddresses(
    interfaces.filter(({ name }) => !controllers.has(name)),
    { routes, resolver },
  );
  const files = interfaces.map((each) => ({
    name: `${each.name}.nmconnection`,
    content: formatKeyfile([
      describeConnection(each, controllers.get(each.name)),
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

function listControllers(listed: readonly Interface[]): Controllers {
  const controllers = new Map<string, Interface>();
  for (const each of listed) {
    for (const port of portsOf(each)) {
      const { name = each.name } = controllers.get(port) ?? {};
      if (name !== each.name || port === each.name) {
        throw refuse(placeOf(each), `"${port}" cannot be a port of it and of ${name}`);
      }
      controllers.set(port, each);
    }
  }
  return controllers;
}

/** Controllers in front of their ports, by name; ports that only a controller names are ethernet. */
function listInterfaces(
  listed: readonly Interface[],
  controllers: Controllers,
): readonly Interface[] {
  const names = new Set<string>();
  for (const each of listed) {
    if (names.has(each.name)) throw refuse(placeOf(each), 'another interface has the same name');
    names.add(each.name);
    const hasAddresses = each.ipv4?.enabled === true || each.ipv6?.enabled === true;
    if (!hasAddresses || !controllers.has(each.name)) continue;
    const why = 'it is attached to a controller where IP is not allowed';
    throw refuse(placeOf(each), `cannot have IP enabled as ${why}`);
  }
  const all: Interface[] = [...listed];
  const implied = [...controllers.keys()].filter((name) => !names.has(name));
  append(
    all,
    implied.map((name): Interface => ({ name, type: 'ethernet' })),
  );
  return all.toSorted(
    (a, b) =>
      Number(controllers.has(a.name)) - Number(controllers.has(b.name)) ||
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );
}

const placeOf = ({ name }: Interface) => ({ owner: `interface "${name}"`, path: '' });

/** Under all of their names. */
function portsOf({ 'link-aggregation': bond, bridge }: Interface): readonly string[] {
  const bonded = [bond?.port, bond?.ports, bond?.slaves].map((names = []) => names);
  const bridged = [bridge?.port, bridge?.ports].map((ports = []) => ports);
  return [...bonded.flat(), ...bridged.flat().map(({ name }) => name)];
}

function describeConnection(
  { name, type, identifier }: Interface,
  controller: Interface | undefined,
): Section {
  const isController = type === 'bond' || type === 'linux-bridge';
  return {
    name: 'connection',
    entries: [
      ['autoconnect', 'true'],
      ['autoconnect-slaves', isController ? '1' : '-1'],
      ['id', name],
      ...(identifier === 'mac-address' ? [] : [['interface-name', name] as const]),
      ...(controller
        ? ([
            ['master', controller.name],
            ['slave-type', TYPES[controller.type]],
          ] as const)
        : []),
      ['type', TYPES[type]],
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

function describeController({
  type,
  bridge,
  'link-aggregation': bond,
}: Interface): readonly Section[] {
  if (type === 'bond') {
    return [{ name: 'bond', entries: sortEntries({ ...bond?.options, mode: bond?.mode }) }];
  }
  if (type !== 'linux-bridge') return [];
  const stp = bridge?.options?.stp?.enabled;
  return [{ name: 'bridge', entries: sortEntries({ stp, 'vlan-filtering': false }) }];
}

const sortEntries = (members: Readonly<Record<string, unknown>>): Section['entries'] =>
  Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, String(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

function describeEthernet({ identifier, mtu, 'mac-address': mac }: Interface): readonly Section[] {
  const key = identifier === 'mac-address' ? 'mac-address' : 'cloned-mac-address';
  const entries = sortEntries({ [key]: mac?.toUpperCase(), mtu });
  return entries.length === 0 ? [] : [{ name: 'ethernet', entries }];
}

function describeVlan({ vlan }: Interface): readonly Section[] {
  if (!vlan) return [];
  const { id, 'base-iface': parent } = vlan;
  return [{ name: 'vlan', entries: sortEntries({ flags: 1, id, parent }) }];
}

const describeUser = ({ description = '' }: Interface): readonly Section[] =>
  description === ''
    ? []
    : [{ name: 'user', entries: [['nmstate.interface.description', escapeText(description)]] }];
