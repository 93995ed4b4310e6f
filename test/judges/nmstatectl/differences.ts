import type { Differences } from '../find-judge.ts';

/** Where sealift differs from nmstatectl, by the document; those marked 29 are settled with that issue. */
export const DIFFERENCES: Differences = {
  'interfaces:\n- name: eth0\n  description: "to the; [spine] \\\\ #1 ü"\n':
    'nmstatectl does not escape a backslash, which has an escape in a keyfile (29)',
  'interfaces: [{name: eth0.5, type: vlan, vlan: {base-iface: eth0, id: "5", protocol: 802.1q}}]':
    'sealift leaves the protocol 802.1q of a VLAN out of the profile (29)',
  'interfaces: [{name: bond0, type: bond, link-aggregation: {mode: 4, slaves: [eth1], options: {miimon: 100, lacp_rate: 1, use_carrier: yes}}}]':
    'nmstatectl 2.2.62 no longer reads "slaves"; sealift still does (29)',
  'interfaces:\n- name: eth0\n  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}\nroutes: {config: [{next-hop-interface: eth0, state: absent, destination: garbage}]}\n':
    'sealift does not read the destination of a route that is absent (29)',
  'interfaces:\n- name: eth0\n  ipv6: {enabled: true, dhcp: true, autoconf: true}\ndns-resolver: {config: {server: ["fe80::1%eth0"]}}':
    'nmstatectl writes a link-local name server without its zone (29)',
};
