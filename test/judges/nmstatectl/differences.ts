import type { Differences } from '../find-judge.ts';

/** Where sealift differs from nmstatectl, by the document. */
export const DIFFERENCES: Differences = {
  'interfaces:\n- name: eth0\n  description: "to the; [spine] \\\\ #1 ü"\n':
    'nmstatectl does not escape a backslash, which has an escape in a keyfile',
  'interfaces:\n- name: eth0\n  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}\nroutes: {config: [{next-hop-interface: eth0, state: absent, destination: garbage}]}\n':
    'sealift does not read the destination of a route that is absent',
};

/** Differences of profiles without a harm, with the reason. */
export const OTHER_PROFILES: readonly (readonly [RegExp, string])[] = [
  [
    /connection\.autoconnect as "true"; sealift writes nothing$/,
    'nmstate writes a profile for the port of a bridge that it leaves alone',
  ],
];

/** Problems for which sealift refuses documents that nmstatectl and NetworkManager accept, with the reason. */
export const REFUSED_ALONE: readonly (readonly [RegExp, string])[] = [
  [/^missing field 'mac-address'$/, 'an interface that is found by its address needs one'],
  [
    /is above \d+, which the MTU/,
    'the kernel does not set an MTU above that of the interface below',
  ],
  [/^another interface has the same name$/, 'nmstate drops one of two interfaces in silence'],
  [/^[\d.:a-f]+ is not an IPv[46] address$/, 'NetworkManager drops a gateway of another family'],
  [/is not a whole number from/, 'NetworkManager drops options of bonds out of its range'],
  [/is not a list of IPv4 addresses/, 'NetworkManager drops targets that are not IPv4 addresses'],
  [/^must be the MAC address of one host$/, 'the kernel refuses the address of a group'],
  [/is the broadcast address of/, 'neighbours send to all hosts instead of to this one'],
  [/^no interface can have the address/, 'no host has such an address'],
  [/is the address of \S+ itself$/, 'the kernel refuses a route over the host itself'],
  [/^is not valid for the mode/, 'later versions of NetworkManager refuse the option'],
];

/** Differences from nmstatectl 2.2.38 alone, which later versions agree with, with the reason. */
export const OF_OLDER: readonly (readonly [RegExp, string])[] = [
  [/integer `-1`, expected unsigned/, 'it reads no metric of -1, the word for the default'],
  [/unknown variant `lacp`/, 'it has no second name for the mode 802.3ad'],
  [
    /cannot be specified in bond interface along with fail_over_mac/,
    'it refuses a MAC address that later versions leave out',
  ],
  [
    /^is only valid for the mode 802\.3ad$/,
    'it writes lacp_rate for other modes, which later versions refuse',
  ],
  [/has the state down$/, 'it drops routes of an interface that is down in silence'],
  [/^no interface has the name/, 'it drops routes of other interfaces in silence'],
  [/so none can have these domains$/, 'it drops domains in silence'],
  [/vlan\.parent as/, 'it names a parent that is found by its address by its name'],
  [/lo\.nmconnection ipv[46]\.route/, 'it writes no routes that drop packets'],
  [/ipv4\.route\d+ as "[^"]*,0\.0\.0\.0,/, 'it writes the unspecified address for no gateway'],
  [/route-metric as/, 'it keeps a metric of routes that no router advertises'],
];
