import { isIP } from 'node:net';
import { objectOrEmpty } from '../../base/lists.ts';
import {
  choice,
  flag,
  integer,
  ip,
  list,
  object,
  refuse,
  strictFlag,
  text,
  unused,
  word,
  unsupported,
  type Kind,
  type Place,
} from './network-values.ts';

// What of nmstate 2.2 (nmstate.io) is translated here, all of it to the letter. Nothing else is read over: other members
// need nmstate itself, and other values are refused.

export const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$/;
/** IFNAMSIZ without the final zero. */
const LONGEST_NAME = 15;
/** RFC 8200 5. */
const LEAST_IPV6_MTU = 1280;
export const U32 = 2 ** 32 - 1;
const U16 = 2 ** 16 - 1;
const U8 = 2 ** 8 - 1;

export const name = text(NAME, 'the name of an interface');
/** Line breaks would begin other settings. */
const line = text(/^\P{Cc}+$/u, 'a text on one line');
const mac = text(/^[\da-f]{2}(?:[:-][\da-f]{2}){5}$/i, 'a MAC address');
const number = integer(0, U32);
const digit: Kind<number> = (value, place) => Number(flag(value, place));

const address =
  (family: 4 | 6): Kind<string> =>
  (value, place) => {
    const most = family === 4 ? 32 : 128;
    const explain = (found: string): string =>
      `Invalid IPv${family} network prefix length '${found}', should be in the range of 0 to ${most}`;
    const read = object({ 'ip': ip, 'prefix-length': integer(0, most, explain) }, [
      'ip',
      'prefix-length',
    ]);
    const { 'ip': found, 'prefix-length': length } = read(value, place);
    if (isIP(found) === family) return `${found}/${length}`;
    throw refuse(place, `Got IPv${isIP(found)} address ${found} in ipv${family} config section`);
  };

const FAMILY = {
  'enabled': flag,
  'dhcp': flag,
  'auto-dns': flag,
  'auto-gateway': flag,
  'auto-routes': flag,
  'auto-route-metric': number,
  'auto-route-table-id': number,
  'dhcp-send-hostname': strictFlag,
  'allow-extra-address': unused,
};

const COMMON = {
  'name': name,
  'type': unused,
  'state': unused,
  'description': text(/^\P{Cc}*$/u, 'a text on one line'),
  'identifier': word(['name', 'mac-address'], ['pci-address']),
  'mac-address': mac,
  'mtu': integer(0, U16),
  'ipv4': object({
    ...FAMILY,
    'address': list(address(4)),
    'dhcp-client-id': line,
    'autoconf': (_: unknown, place: Place): boolean => {
      throw refuse(place, 'autoconf is not allowed for IPv4');
    },
  }),
  'ipv6': object({
    ...FAMILY,
    'address': list(address(6)),
    'autoconf': flag,
    'addr-gen-mode': word(['eui64', 'stable-privacy']),
    'dhcp-duid': line,
  }),
  // What nmstate shows, and ignores when it is given.
  'driver': unused,
  'permanent-mac-address': unused,
  'min-mtu': unused,
  'max-mtu': unused,
};

const VLAN = object(
  { 'base-iface': name, 'id': integer(0, 4094), 'protocol': word(['802.1q'], ['802.1ad']) },
  ['base-iface', 'id'],
);

/** In the numbers of the kernel. */
export const BOND_MODES = [
  'balance-rr',
  'active-backup',
  'balance-xor',
  'broadcast',
  '802.3ad',
  'balance-tlb',
  'balance-alb',
];

const ARP_VALIDATE = 'none active backup all filter filter_active filter_backup'.split(' ');
const HASHES = 'layer2 layer3+4 layer2+3 encap2+3 encap3+4 vlan+srcmac'.split(' ');

const BOND = object(
  {
    mode: choice(BOND_MODES),
    port: list(name),
    ports: list(name),
    slaves: list(name),
    options: object({
      ad_actor_sys_prio: integer(0, U16),
      ad_actor_system: (value: unknown, place: Place) => mac(value, place).toUpperCase(),
      ad_select: choice(['stable', 'bandwidth', 'count']),
      ad_user_port_key: integer(0, U16),
      all_slaves_active: (value: unknown, place: Place) =>
        Number(choice(['dropped', 'delivered'])(value, place) === 'delivered'),
      arp_all_targets: choice(['any', 'all']),
      arp_interval: number,
      arp_ip_target: (value: unknown, place: Place) =>
        typeof value === 'string' ? list(ip)(value.split(','), place).join(',') : ip(value, place),
      arp_missed_max: integer(0, U8),
      arp_validate: choice(ARP_VALIDATE),
      downdelay: number,
      fail_over_mac: choice(['none', 'active', 'follow']),
      lacp_rate: choice(['slow', 'fast']),
      lp_interval: number,
      miimon: number,
      min_links: number,
      num_grat_arp: integer(0, U8),
      num_unsol_na: integer(0, U8),
      packets_per_slave: number,
      primary: name,
      primary_reselect: choice(['always', 'better', 'failure']),
      resend_igmp: number,
      tlb_dynamic_lb: digit,
      updelay: number,
      use_carrier: digit,
      xmit_hash_policy: choice(HASHES),
    }),
  },
  ['mode'],
);

const PORTS = list(object({ name, vlan: object({}) }, ['name']));
const BRIDGE = object({
  port: PORTS,
  ports: PORTS,
  options: object({ stp: object({ enabled: flag }) }),
});

/** By type. */
const INTERFACES = {
  'ethernet': object({ ...COMMON, ethernet: object({}) }, ['name']),
  'vlan': object({ ...COMMON, vlan: VLAN }, ['name', 'vlan']),
  'bond': object({ ...COMMON, 'link-aggregation': BOND }, ['name', 'link-aggregation']),
  'linux-bridge': object({ ...COMMON, bridge: BRIDGE }, ['name']),
};

export type InterfaceType = keyof typeof INTERFACES;

export type Interface = Omit<ReturnType<(typeof INTERFACES)['ethernet']>, 'type'> & {
  readonly 'type': InterfaceType;
  readonly 'vlan'?: ReturnType<typeof VLAN>;
  readonly 'link-aggregation'?: ReturnType<typeof BOND>;
  readonly 'bridge'?: ReturnType<typeof BRIDGE>;
};

const STATE = word(['up', 'down', 'absent', 'ignore'], ['unknown']);

/** Undefined where it has no profile, or none that is written here. */
export const networkInterface: Kind<Interface | undefined> = (value, place) => {
  const { name: found } = object({ name }, ['name'])(value, { ...place, foreign: [] });
  const inside = { ...place, owner: `interface "${found}"`, path: '' };
  const members = objectOrEmpty(value);
  const state = STATE(members['state'] ?? 'up', { ...inside, path: 'state' });
  if (state === 'absent' || state === 'ignore') return undefined;
  const type = line(members['type'] ?? 'ethernet', { ...inside, path: 'type' }).toLowerCase();
  if (isType(type)) {
    const read = { ...INTERFACES[type](value, inside), type };
    requirePossible(read, inside);
    return read;
  }
  place.foreign.push(unsupported(`${inside.owner} is of type ${type}`));
  return undefined;
};

const isType = (type: string): type is InterfaceType => Object.hasOwn(INTERFACES, type);

/** The script that installs the profiles at boot shortens the first part of a VLAN's name where the whole is too long. */
const fitsKernel = (text: string, type: InterfaceType): boolean =>
  text.length <= LONGEST_NAME || (type === 'vlan' && /^[^.]{1,15}\.\d{1,4}$/.test(text));

function requirePossible(found: Interface, place: Place): void {
  const { name: text, type, identifier = 'name', ipv6, mtu = LEAST_IPV6_MTU } = found;
  if (identifier === 'name' && !fitsKernel(text, type)) {
    throw refuse(place, `a name has at most ${LONGEST_NAME} characters`);
  }
  if (identifier === 'mac-address' && found['mac-address'] === undefined) {
    throw refuse(place, "missing field 'mac-address'");
  }
  if (ipv6?.enabled !== true || mtu >= LEAST_IPV6_MTU) return;
  const least = `MTU should be >= ${LEAST_IPV6_MTU} when IPv6 is enabled`;
  throw refuse(place, `${least}, but got mtu: ${mtu}`);
}
