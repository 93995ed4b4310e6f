import {
  createCidr,
  type Family,
  formatAddress,
  type IpAddress,
  widthOf,
} from '../base/ip-address.ts';
import { parseMacAddress } from '../base/mac-address.ts';
import { formatSteps, type Path } from '../shape/decode.ts';
import {
  FLAG,
  FREE,
  list,
  partial,
  record,
  refine,
  type Shape,
  transform,
  type TypeOf,
} from '../shape/shape.ts';
import {
  expected,
  flag,
  foreignMembers,
  integer,
  ip,
  quote,
  text,
  parsedText,
  word,
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

export const name = refine(text(NAME, 'the name of an interface'), (written) =>
  RESERVED.includes(written)
    ? `${quote(written)} is a name that the kernel keeps for itself`
    : undefined,
);
/** The name of a profile, whose interface is found by its MAC address. */
export const label = text(/^[^\p{Cc}/]+$/u, 'a name on one line');
/** A line break would begin another setting. */
export const line = text(/^\P{Cc}+$/u, 'a string on one line');
const lineOrNothing = text(/^\P{Cc}*$/u, 'a string on one line');
const number = integer(0, U32);

/** Reads a MAC address in one of its usual forms, or the longer one of InfiniBand; an empty one counts as absent. */
export const mac: Shape<string | undefined> = transform(
  parsedText('a MAC address', (written) => {
    const isLong = /^[\da-f]{2}(?:[:-][\da-f]{2}){19}$/i.test(written);
    const read = isLong ? written.replaceAll('-', ':') : parseMacAddress(written);
    return written === '' ? '' : read?.toUpperCase();
  }),
  (read) => (read === '' ? undefined : read),
);

export type InterfaceAddress = ReturnType<typeof createAddress>;

const createAddress = (found: IpAddress, prefix: number, path: Path) => {
  const ipText = formatAddress(found);
  return {
    /** Path of the address in the document. */
    path: `${formatSteps(path)}.ip`,
    text: ipText,
    subnet: createCidr(found, prefix, `${ipText}/${prefix}`),
  };
};

const address = (family: Family): Shape<InterfaceAddress> =>
  transform(
    record(
      {
        'ip': refine(ip, (found) =>
          found.family === family
            ? undefined
            : expected(formatAddress(found), `an IPv${family} address`),
        ),
        'prefix-length': integer(0, widthOf(family)),
        ...foreignMembers('mptcp-flags protocol valid-life-time preferred-life-time'),
      },
      {
        aliases: {
          'valid-left': 'valid-life-time',
          'valid-lft': 'valid-life-time',
          'preferred-left': 'preferred-life-time',
          'preferred-lft': 'preferred-life-time',
        },
      },
    ),
    ({ 'ip': found, 'prefix-length': prefix }, path) => createAddress(found, prefix, path),
  );

/**
 * Reads a word of DHCP in the case that NetworkManager knows; other texts stay as they are. With an empty one,
 * nmstate writes none, and NetworkManager chooses.
 */
const spelled = (known: ReadonlyMap<string, string>): Shape<string> =>
  transform(lineOrNothing, (read) => known.get(read) ?? read);

/** NetworkManager's words for those of nmstate. */
const CLIENT_IDS = new Map([
  ['ll', 'mac'],
  ['LL', 'mac'],
  ['iaid+duid', 'duid'],
  ['IAID+DUID', 'duid'],
]);
/** The words that nmstate takes, with those that it means. */
const ADDRESS_MODES: Readonly<Record<string, 'eui64' | 'stable-privacy'>> = {
  'eui64': 'eui64',
  'EUI64': 'eui64',
  '0': 'eui64',
  'stable-privacy': 'stable-privacy',
  'STABLE-PRIVACY': 'stable-privacy',
  '1': 'stable-privacy',
};
const ADDRESS_MODE = parsedText('one of eui64, stable-privacy', (written) =>
  Object.hasOwn(ADDRESS_MODES, written) ? ADDRESS_MODES[written] : undefined,
);
const DUIDS = new Map(['LLT', 'LL', 'EN', 'UUID'].map((duid) => [duid, duid.toLowerCase()]));

const FAMILY = partial({
  'enabled': flag,
  'dhcp': flag,
  'auto-dns': flag,
  'auto-gateway': flag,
  'auto-routes': flag,
  'auto-route-metric': integer(-1, U32),
  'auto-route-table-id': number,
  'dhcp-send-hostname': FLAG,
  'allow-extra-address': FREE,
}).members;

/** Members of every type, besides the name. */
export const COMMON = {
  ...partial({
    'type': FREE,
    'state': FREE,
    'description': lineOrNothing,
    'identifier': word(['name', 'mac-address'], ['pci-address']),
    'mac-address': mac,
    'mtu': number,
    'ipv4': record({
      ...FAMILY,
      ...partial({
        'address': list(address(4)),
        'dhcp-client-id': spelled(CLIENT_IDS),
        'autoconf': refine(
          FREE as Shape<boolean>,
          () => 'autoconf is not allowed for IPv4; write dhcp instead',
        ),
      }).members,
      ...foreignMembers('dhcp-custom-hostname forwarding prefix-route-metric'),
    }),
    'ipv6': record({
      ...FAMILY,
      ...partial({
        'address': list(address(6)),
        'autoconf': flag,
        'addr-gen-mode': ADDRESS_MODE,
        'dhcp-duid': spelled(DUIDS),
      }).members,
      ...foreignMembers('dhcp-custom-hostname token'),
    }),
    // Members that nmstate shows, and ignores in its input.
    'driver': FREE,
    'permanent-mac-address': FREE,
    'min-mtu': FREE,
    'max-mtu': FREE,
  }).members,
  ...foreignMembers(
    'profile-name pci-address wait-ip mptcp controller copy-mac-from lldp ' +
      'accept-all-mac-addresses ovs-db 802.1x ethtool dispatch alt-names',
  ),
};

type Common = { readonly [K in keyof typeof COMMON]: TypeOf<(typeof COMMON)[K]> };
export type IpSettings = Partial<Common['ipv6'] & Pick<Common['ipv4'], 'dhcp-client-id'>>;
