import type { Differences } from '../find-judge.ts';

/** Where sealift differs from nmstatectl, by the document. */
export const DIFFERENCES: Differences = {
  'interfaces:\n- name: eth0\n  description: "to the; [spine] \\\\ #1 ü"\n':
    'nmstatectl does not escape a backslash, which has an escape in a keyfile',
  'interfaces:\n- name: eth0\n  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}\nroutes: {config: [{next-hop-interface: eth0, state: absent, destination: garbage}]}\n':
    'sealift does not read the destination of a route that is absent',
};
