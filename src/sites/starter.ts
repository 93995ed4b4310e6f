import { formatModeline, SCHEMA } from '../shape/document.ts';
import { PLACEHOLDER } from '../config/secret/placeholder.ts';

/** A file below the directory that is begun. */
export type StarterFile = { readonly path: string; readonly text: string };

/** From the template's folder. */
const MODELINE = formatModeline(`../${SCHEMA.site}`);

/**
 * A table of two sites and the site folder that it fills, valid but for the placeholder of its pull
 * secret, with addresses of the documentation ranges (RFC 5737).
 */
export const SITES_STARTER: readonly StarterFile[] = [
  {
    path: 'sites.csv',
    text: `name,baseDomain,hostname,mac,machineNetwork,ip,prefixLength,gateway,dns,ntp
site-0001,edge.example.com,host-0001.edge.example.com,52:54:00:00:00:01,192.0.2.0/28,192.0.2.2,28,192.0.2.1,198.51.100.53,198.51.100.123
site-0002,edge.example.com,host-0002.edge.example.com,52:54:00:00:00:02,192.0.2.16/28,192.0.2.18,28,192.0.2.17,198.51.100.53,198.51.100.123
`,
  },
  {
    path: 'template/install-config.yaml',
    text: `${MODELINE}# What is the same on every site. A hole like {{ name }} is filled from the column of that name in
# sites.csv; put the value in quotes wherever it could be read as a number.
apiVersion: v1
baseDomain: "{{ baseDomain }}"
metadata:
  name: "{{ name }}"
controlPlane:
  name: master
  replicas: 1
compute:
  - name: worker
    replicas: 0
networking:
  networkType: OVNKubernetes
  machineNetwork:
    - cidr: "{{ machineNetwork }}"
  clusterNetwork:
    - cidr: 10.128.0.0/14
      hostPrefix: 23
  serviceNetwork:
    - 172.30.0.0/16
platform:
  none: {}
# The pull secret of the sites, which goes on every ISO: file:PATH (from this folder), env:NAME, or the
# JSON text on one line. sshKey and additionalTrustBundle can be such references too.
pullSecret: "${PLACEHOLDER}"
`,
  },
  {
    path: 'template/image-based-config.yaml',
    text: `${MODELINE}apiVersion: v1beta1
kind: ImageBasedConfig
metadata:
  name: "{{ name }}"
hostname: "{{ hostname }}"
additionalNTPSources:
  - "{{ ntp }}"
# Addresses of the site's host: an nmstate document.
networkConfig:
  interfaces:
    - name: eth0
      type: ethernet
      state: up
      mac-address: "{{ mac }}"
      ipv4:
        enabled: true
        dhcp: false
        address:
          - ip: "{{ ip }}"
            prefix-length: {{ prefixLength }}
  dns-resolver:
    config:
      server:
        - "{{ dns }}"
  routes:
    config:
      - destination: 0.0.0.0/0
        next-hop-address: "{{ gateway }}"
        next-hop-interface: eth0
`,
  },
];
