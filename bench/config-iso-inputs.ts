import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of a table and of the template that it fills. */
export type SiteInputs = { readonly table: string; readonly template: string };

/** Writes a table of so many single-node clusters and a template with what most of them have. */
export function writeSiteInputs(directory: string, count: number): SiteInputs {
  const template = join(directory, 'template');
  mkdirSync(join(template, 'extra-manifests'), { recursive: true });
  writeFileSync(join(template, 'install-config.yaml'), renderInstallConfig());
  writeFileSync(join(template, 'image-based-config.yaml'), IMAGE_BASED_CONFIG);
  writeFileSync(join(template, 'extra-manifests/site.yaml'), MANIFEST);
  const table = join(directory, 'sites.csv');
  const rows = Array.from({ length: count }, (_, index) => formatRow(index));
  writeFileSync(table, ['name,address,mac', ...rows, ''].join('\n'));
  return { table, template };
}

/** Each has an address of its own in the machine network; the first 256 are left out. */
function formatRow(index: number): string {
  const at = index + 256;
  const mac = [at >> 8, at & 0xff].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
  return `edge-${String(index).padStart(5, '0')},192.168.${at >> 8}.${at & 0xff},52:54:00:00:${mac}`;
}

function renderInstallConfig(): string {
  const auths = ['quay.io', 'registry.redhat.io', 'registry.example.com:5000'].map((host) => [
    host,
    { auth: Buffer.from(`bench:${'token'.repeat(100)}`).toString('base64') },
  ]);
  return `apiVersion: v1
metadata:
  name: {{ name }}
baseDomain: edge.example.com
compute:
  - name: worker
    replicas: 0
controlPlane:
  name: master
  replicas: 1
networking:
  networkType: OVNKubernetes
  machineNetwork:
    - cidr: 192.168.0.0/16
  clusterNetwork:
    - cidr: 10.128.0.0/14
      hostPrefix: 23
  serviceNetwork:
    - 172.30.0.0/16
platform:
  none: {}
imageDigestSources:
  - source: quay.io/openshift-release-dev/ocp-release
    mirrors:
      - registry.example.com:5000/openshift/release-images
pullSecret: '${JSON.stringify({ auths: Object.fromEntries(auths) as unknown })}'
sshKey: ${makeSshKey()}
`;
}

const IMAGE_BASED_CONFIG = `apiVersion: v1beta1
kind: ImageBasedConfig
metadata:
  name: {{ name }}
hostname: {{ name }}
releaseRegistry: registry.example.com:5000
additionalNTPSources:
  - ntp.example.com
networkConfig:
  interfaces:
    - name: eth0
      type: ethernet
      state: up
      mac-address: {{ mac }}
      ipv4:
        enabled: true
        dhcp: false
        address:
          - ip: {{ address }}
            prefix-length: 16
  dns-resolver:
    config:
      server:
        - 192.168.0.2
  routes:
    config:
      - destination: 0.0.0.0/0
        next-hop-address: 192.168.0.1
        next-hop-interface: eth0
`;

const MANIFEST = `apiVersion: v1
kind: ConfigMap
metadata:
  name: site
  namespace: default
data:
  name: {{ name }}
`;

/** RFC 4253 6.6 and RFC 8709 4: name and key, each after its size. */
function makeSshKey(): string {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const parts = [Buffer.from('ssh-ed25519'), Buffer.from(x, 'base64url')].flatMap((part) => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(part.length);
    return [size, part];
  });
  return `ssh-ed25519 ${Buffer.concat(parts).toString('base64')} bench`;
}
