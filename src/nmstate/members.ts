import {
  createCidr,
  type Family,
  formatAddress,
  type IpAddress,
  widthOf,
} from '../base/ip-address.ts';
import { parseMacAddress } from '../base/mac-address.ts';
import {
  expected,
  flag,
  foreign,
  foreignMembers,
  integer,
  ip,
  type Kind,
  list,
  type Members,
  object,
  type Place,
  reportAt,
  strictFlag,
  text,
  unused,
  word,
  quote,
} from './values.ts';

/*
 * This file owns the members of interfaces of every type, as nmstate 2.2.62 (nmstate.io) has them. Those
 * that are `foreign` here and in `state.ts` are the list of members that only nmstate itself can write
 * into profiles.
 */

export const U32 = 2 ** 32 - 1;

/**
 * A name that the kernel, a file name, a keyfile and the scripts of the hosts all read alike:
 * `mac_interface.ini` has lines like `MAC=NAME`, which shell scripts split. The first character is a
 * letter or a digit, so that no name is an option of a program.
 */
const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.@+#~,-]*$/u;

/** Names of files of the kernel beside those of interfaces (NetworkManager, `nm_utils_ifname_valid_kernel`). */
const RESERVED = ['all', 'default', 'bonding_masters'];

const interfaceName = text(NAME, 'the name of an interface');

export const name: Kind<string> = (value, place) =>
  RESERVED.some((word) => word === value)
    ? reportAt(place, `${quote(value)} is a name that the kernel keeps for itself`)
    : interfaceName(value, place);
/** The name of a profile, whose interface is found by its MAC address. */
export const label = text(/^[^\p{Cc}/]+$/u, 'a name on one line');
/** A line break would begin another setting. */
export const line = text(/^\P{Cc}+$/u, 'a string on one line');
const lineOrNothing = text(/^\P{Cc}*$/u, 'a string on one line');
const number = integer(0, U32);

/** Reads a MAC address in one of its usual forms, or the longer one of InfiniBand; an empty one counts as absent. */
export const mac: Kind<string> = (value, place) => {
  if (value === '') return null;
  const written = typeof value === 'string' ? value : '';
  const isLong = /^[\da-f]{2}(?:[:-][\da-f]{2}){19}$/i.test(written);
  const read = isLong ? written.replaceAll('-', ':') : parseMacAddress(written);
  return read?.toUpperCase() ?? reportAt(place, expected(value, 'a MAC address'));
};

const ADDRESS = object(
  {
    'ip': ip,
    'prefix-length': integer(0, 128),
    'mptcp-flags': foreign,
    'protocol': foreign,
    'valid-life-time': foreign,
    'preferred-life-time': foreign,
  },
  {
    required: ['ip', 'prefix-length'],
    aliases: {
      'valid-left': 'valid-life-time',
      'valid-lft': 'valid-life-time',
      'preferred-left': 'preferred-life-time',
      'preferred-lft': 'preferred-life-time',
    },
  },
);

/** An address of an interface, with its subnet. */
export type InterfaceAddress = ReturnType<typeof createAddress>;

const createAddress = (found: IpAddress, prefix: number, path: string) => {
  const ipText = formatAddress(found);
  return {
    /** Path of the address in the document. */
    path: `${path}.ip`,
    text: ipText,
    subnet: createCidr(found, prefix, `${ipText}/${prefix}`),
  };
};

const address =
  (family: Family): Kind<InterfaceAddress> =>
  (value, place) => {
    const read = ADDRESS(value, place);
    if (!read) return null;
    const { 'ip': found, 'prefix-length': prefix } = read;
    const at = (member: string): Place => ({ ...place, path: `${place.path}.${member}` });
    if (found.family !== family) {
      return reportAt(at('ip'), expected(formatAddress(found), `an IPv${family} address`));
    }
    if (prefix > widthOf(family)) {
      return reportAt(
        at('prefix-length'),
        expected(prefix, `a whole number from 0 to ${widthOf(family)}`),
      );
    }
    return createAddress(found, prefix, place.path);
  };

/**
 * Reads a word of DHCP in the case that NetworkManager knows; other texts stay as they are. With an empty one,
 * nmstate writes none, and NetworkManager chooses.
 */
const spelled =
  (known: ReadonlyMap<string, string>): Kind<string> =>
  (value, place) => {
    const read = lineOrNothing(value, place);
    return read === null ? null : (known.get(read) ?? read);
  };

/** NetworkManager's words for those of nmstate. */
const CLIENT_IDS = new Map([
  ['ll', 'mac'],
  ['LL', 'mac'],
  ['iaid+duid', 'duid'],
  ['IAID+DUID', 'duid'],
]);
const DUIDS = new Map(['LLT', 'LL', 'EN', 'UUID'].map((duid) => [duid, duid.toLowerCase()]));

const FAMILY = {
  'enabled': flag,
  'dhcp': flag,
  'auto-dns': flag,
  'auto-gateway': flag,
  'auto-routes': flag,
  'auto-route-metric': integer(-1, U32),
  'auto-route-table-id': number,
  'dhcp-send-hostname': strictFlag,
  'allow-extra-address': unused,
  'dhcp-custom-hostname': foreign,
};

export const COMMON = {
  'name': label,
  'type': unused,
  'state': unused,
  'description': lineOrNothing,
  'identifier': word(['name', 'mac-address'], ['pci-address']),
  'mac-address': mac,
  'mtu': number,
  'ipv4': object({
    ...FAMILY,
    'address': list(address(4)),
    'dhcp-client-id': spelled(CLIENT_IDS),
    'forwarding': foreign,
    'prefix-route-metric': foreign,
    'autoconf': (_: unknown, place: Place): null =>
      reportAt(place, 'autoconf is not allowed for IPv4', { hint: 'write dhcp instead' }),
  }),
  'ipv6': object({
    ...FAMILY,
    'address': list(address(6)),
    'autoconf': flag,
    'addr-gen-mode': word(['eui64', 'stable-privacy'], [], {
      'EUI64': 'eui64',
      '0': 'eui64',
      'STABLE-PRIVACY': 'stable-privacy',
      '1': 'stable-privacy',
    }),
    'dhcp-duid': spelled(DUIDS),
    'token': foreign,
  }),
  // Members that nmstate shows, and ignores in its input.
  'driver': unused,
  'permanent-mac-address': unused,
  'min-mtu': unused,
  'max-mtu': unused,
  ...foreignMembers(
    'profile-name pci-address wait-ip mptcp controller copy-mac-from lldp ' +
      'accept-all-mac-addresses ovs-db 802.1x ethtool dispatch alt-names',
  ),
};

export type IpSettings = NonNullable<Members<typeof COMMON>['ipv6']> &
  Pick<NonNullable<Members<typeof COMMON>['ipv4']>, 'dhcp-client-id'>;
