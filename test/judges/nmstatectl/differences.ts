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
  [/^is not valid for the mode/, 'later versions of NetworkManager refuse the option'],
];
