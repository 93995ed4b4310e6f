import { parse, stringify } from 'yaml';
import type { LiveMedium } from './live-medium.ts';

const API = '/api/assisted-install/v2';
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

const listKargs = (proof: readonly string[]): readonly object[] =>
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

/** Creates a cluster and its InfraEnv at a service. @returns the URL of the image */
export async function createImage(
  url: string,
  { version, proof }: Pick<LiveMedium, 'version' | 'proof'>,
): Promise<string> {
  const post = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await fetch(`${url}${API}${path}`, init);
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, string>;
  };
  const cluster = { name: 'edge', openshift_version: version };
  const { id = '' } = await post('/clusters/disconnected', cluster);
  const infraEnv = await post('/infra-envs', {
    name: 'edge',
    cluster_id: id,
    image_type: 'disconnected-iso',
    ssh_authorized_key: SSH_KEY,
    pull_secret: JSON.stringify(PULL_SECRET),
    proxy: PROXY,
    additional_ntp_sources: NTP.join(','),
    static_network_config: hosts,
    rendezvous_ip: '192.0.2.10',
    kernel_arguments: listKargs(proof),
  });
  return infraEnv['download_url'] ?? '';
}

/** The service adds it to what it is given; to others it is to be given. */
export const SENTINEL = JSON.stringify({
  ignition: { version: '3.2.0' },
  storage: {
    files: [
      {
        path: '/etc/assisted/interactive-ui',
        overwrite: true,
        user: { name: 'root' },
        contents: { source: 'data:,' },
        mode: 0o644,
      },
    ],
  },
});

/** What the customer says to the service, as custom resources. */
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
