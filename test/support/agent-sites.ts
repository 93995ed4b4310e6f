import { stringify } from 'yaml';
import type { SiteInput } from '../../src/sites/site.ts';

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHCFmLFL13SImDrNz5evDoOppu3OBQjM4xomBPUVLAd4 u@h';

type Members = Readonly<Record<string, unknown>>;

type Cluster = {
  readonly masters?: number;
  readonly workers?: number;
  readonly arbiters?: number;
  readonly platform?: Members;
};

export const BAREMETAL = {
  baremetal: { apiVIPs: ['192.0.2.5'], ingressVIPs: ['192.0.2.6'] },
} as const;

/** install-config.yaml of a cluster; further members replace those that it has. */
export function agentInstallConfig(
  { masters = 1, workers = 0, arbiters, platform = { none: {} } }: Cluster = {},
  more: Members = {},
): Members {
  return {
    apiVersion: 'v1',
    baseDomain: 'example.com',
    metadata: { name: 'site1' },
    controlPlane: { architecture: 'amd64', name: 'master', replicas: masters },
    compute: [{ architecture: 'amd64', name: 'worker', replicas: workers }],
    ...(arbiters !== undefined && {
      arbiter: { architecture: 'amd64', name: 'arbiter', replicas: arbiters },
    }),
    networking: {
      networkType: 'OVNKubernetes',
      clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
      machineNetwork: [{ cidr: '192.0.2.0/24' }],
      serviceNetwork: ['172.30.0.0/16'],
    },
    platform,
    pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
    sshKey: SSH_KEY,
    ...more,
  };
}

/** Host number `index` from 0, with the static address 192.0.2.10 and up. */
export function agentHost(index: number, role?: string, more: Members = {}): Members {
  const macAddress = `52:54:00:00:00:0${index + 1}`;
  const address = [{ 'ip': `192.0.2.${10 + index}`, 'prefix-length': 24 }];
  return {
    hostname: `m${index}.example.com`,
    ...(role !== undefined && { role }),
    interfaces: [{ name: 'eth0', macAddress }],
    networkConfig: {
      'interfaces': [
        {
          'name': 'eth0',
          'type': 'ethernet',
          'state': 'up',
          'mac-address': macAddress,
          'ipv4': { enabled: true, dhcp: false, address },
        },
      ],
      'dns-resolver': { config: { server: ['192.0.2.1'] } },
      'routes': {
        config: [
          {
            'destination': '0.0.0.0/0',
            'next-hop-address': '192.0.2.1',
            'next-hop-interface': 'eth0',
          },
        ],
      },
    },
    ...more,
  };
}

export const agentConfig = (hosts: readonly Members[], more: Members = {}): Members => ({
  apiVersion: 'v1beta1',
  kind: 'AgentConfig',
  metadata: { name: 'site1' },
  rendezvousIP: '192.0.2.10',
  hosts,
  ...more,
});

export function agentSite(
  install: Members,
  agent: Members,
  more: Readonly<Record<string, string>> = {},
): SiteInput {
  const files = {
    'install-config.yaml': stringify(install),
    'agent-config.yaml': stringify(agent),
    ...more,
  };
  return {
    name: 'site1',
    files: Object.entries(files).map(([path, text]) => ({
      path,
      bytes: Buffer.from(text),
      shownAs: path,
    })),
  };
}
