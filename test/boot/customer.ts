import { parse, stringify } from 'yaml';
import type { PageValues } from '../support/page.ts';

/** What a customer gives. */
export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPXmhdrEYpNBELFzRHT6SRI4Aa2wFLqX1Vf8OBBaVcGa me@example';
export const PULL_SECRET = {
  auths: { 'registry.edge.example': { auth: 'dXNlcjpjdXN0b21lci13b3Jk' } },
};
export const PROXY = {
  http_proxy: 'http://proxy.edge.example:3128',
  https_proxy: 'http://user:p%40ss@proxy.edge.example:3128',
  no_proxy: 'localhost,127.0.0.1,.edge.example',
};

export const NTP = ['time.edge.example', '192.0.2.123'];

const listKargs = (
  proof: readonly string[],
): readonly { readonly operation: string; readonly value: string }[] =>
  [
    ...proof,
    'sealift.proof.only=ignition,agentdata,registry,pull,ssh,secret,files,site',
    // CoreOS starts it without being asked.
    'systemd.wants=NetworkManager.service',
  ].map((value) => ({ operation: 'append', value }));

/** With QEMU's own address for the first interface, and one that no machine here has. */
const hosts = (
  [
    ['52:54:00:12:34:56', '192.0.2.10'],
    ['52:54:00:bb:00:01', '192.0.2.11'],
  ] as const
).map(([mac_address, ip]) => ({
  network_yaml: `interfaces:
  - name: nic0
    type: ethernet
    state: up
    ipv4:
      enabled: true
      dhcp: false
      address: [{ip: ${ip}, prefix-length: 24}]
routes:
  config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: nic0}]
`,
  mac_interface_map: [{ mac_address, logical_nic_name: 'nic0' }],
}));

/** What the customer says to the service on its page. */
export const listPageValues = (proof: readonly string[]): PageValues => ({
  name: 'edge',
  sshKey: SSH_KEY,
  pullSecret: JSON.stringify(PULL_SECRET),
  httpProxy: PROXY.http_proxy,
  httpsProxy: PROXY.https_proxy,
  noProxy: PROXY.no_proxy,
  ntpSources: NTP.join(','),
  rendezvousIp: '192.0.2.10',
  kernelArguments: listKargs(proof).map(({ value }) => value),
  hosts: hosts.flatMap(({ network_yaml: yaml, mac_interface_map: map }) =>
    map.map(({ mac_address: mac, logical_nic_name: name }) => ({ yaml, mac, interface: name })),
  ),
});

/** The same as custom resources. */
export const writeResources = (proof: readonly string[]): string =>
  [
    {
      kind: 'InfraEnv',
      metadata: { name: 'edge' },
      spec: {
        sshAuthorizedKey: SSH_KEY,
        pullSecretRef: { name: 'secret' },
        proxy: {
          httpProxy: PROXY.http_proxy,
          httpsProxy: PROXY.https_proxy,
          noProxy: PROXY.no_proxy,
        },
        additionalNTPSources: NTP,
        nmStateConfigLabelSelector: { matchLabels: { site: 'edge' } },
        kernelArguments: listKargs(proof),
      },
    },
    {
      kind: 'Secret',
      metadata: { name: 'secret' },
      stringData: { '.dockerconfigjson': JSON.stringify(PULL_SECRET) },
    },
    ...hosts.map(({ network_yaml, mac_interface_map: map }, index) => ({
      kind: 'NMStateConfig',
      metadata: { name: `host${index}`, labels: { site: 'edge' } },
      spec: {
        config: parse(network_yaml) as unknown,
        interfaces: map.map(({ mac_address: macAddress, logical_nic_name: name }) => ({
          macAddress,
          name,
        })),
      },
    })),
  ]
    .map((resource) => stringify(resource))
    .join('---\n');
