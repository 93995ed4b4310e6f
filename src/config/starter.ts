import { formatModeline, SCHEMA } from '../shape/configuration.ts';
import { PLACEHOLDER } from './secrets.ts';

/* Owns the files that "sealift init" writes. */

export type TemplateName = 'ove' | 'minimal';

/** A commented configuration that passes validation. */
export const renderStarter = (name: TemplateName): string =>
  [HEAD, name === 'ove' ? OVE : MINIMAL, REST].join('');

const HEAD = `${formatModeline(SCHEMA.appliance)}# Contents of the appliance media. Check it: sealift validate
apiVersion: v1beta1
kind: ApplianceConfig

ocpRelease:
  # X.Y for the newest release of the channel, or exactly X.Y.Z. 4.14 or newer.
  version: "4.21"
  # stable, fast, candidate or eus.
  channel: stable
  # x86_64, aarch64 or ppc64le.
  cpuArchitecture: x86_64
  # The release payload itself, by tag or digest, instead of version and channel.
  # url: quay.io/openshift-release-dev/ocp-release:4.21.0-x86_64

# Credentials to fetch with; they do not go on the media. The JSON text, file:PATH or env:NAME.
pullSecret: file:pull-secret.json

# Public keys for the user core, one a line, or file:PATH or env:NAME.
# sshKey: file:id_ed25519.pub

# Console password of the user core, best by reference.
# userCorePass: env:CORE_PASSWORD
`;

const MINIMAL = `
# Install from the web interface of the media.
# enableInteractiveFlow: true

# Keep the default catalog sources; leave this off if there is no internet.
# enableDefaultSources: false

# Stop the registry on the nodes after the installation.
# stopLocalRegistry: false

# Images to carry besides the release.
# additionalImages:
#   - name: registry.redhat.io/rhel9/support-tools:latest
`;

const OVE = `
# Install from the web interface of the media.
enableInteractiveFlow: true

# The hosts have no internet access.
enableDefaultSources: false
useDefaultSourceNames: true

# Keep the registry on the nodes after the installation.
stopLocalRegistry: false
# From 4.22 on the cluster's own registry takes over.
# skipLocalRegistry: true

imageRegistry:
  useBinary: true

additionalImages:
  - name: registry.redhat.io/rhel9/support-tools:latest
`;

const REST = `
# Operators to carry, by catalog, package and channel. "sealift catalog list" lists the contents of a catalog,
# "sealift plan" the size of each package.
# operators:
#   - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.21
#     packages:
#       - name: local-storage-operator
#         channels:
#           - name: stable
#       - name: kubernetes-nmstate-operator

# Images to leave out: regular expressions.
# blockedImages:
#   - name: registry.example.com/unwanted/.*

# Boot and install with FIPS mode on; must agree with the install-config.
# enableFips: false

# How sealift builds.
# build:
#   baseIso: rhcos-live.iso
#   kernelArguments:
#     - console=ttyS0
#   caBundle: ca.pem
#   registriesConf: registries.conf
#   maxSize: 45GiB
#   registryData: medium
#   embed:
#     pullSecret: file:host-pull-secret.json
`;

/** A file of a new directory; the path is relative to it. */
export type StarterFile = { readonly path: string; readonly text: string };

/** Modeline with the schema's path relative to the template folder. */
const MODELINE = formatModeline(`../${SCHEMA.site}`);

/** Two sites and their template folder, valid except for the pull secret; addresses are those of RFC 5737. */
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
    text: `${MODELINE}# Settings that all sites share. A hole like {{ name }} is filled from the column of that name in
# sites.csv; put the value in quotes if it could be read as a number.
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

/** A commented image-based-installation-config.yaml with the members of openshift-install's template. */
export const INSTALLATION_TEMPLATE = `${formatModeline(SCHEMA.installation)}# What an installation ISO installs, and where; one ISO serves any number of sites.
apiVersion: v1beta1
kind: ImageBasedInstallationConfig
metadata:
  name: example-image-based-installation-config

# The seed image, and the version of the cluster that it was made from. They must agree.
seedImage: quay.io/openshift-kni/seed-image:4.16.0
seedVersion: 4.16.0

# The disk of the host, which is overwritten.
installationDisk: /dev/vda
# skipDiskCleanup: false

# Credentials for the seed image and the release images; they go on the ISO. JSON text, file:PATH or
# env:NAME.
pullSecret: file:pull-secret.json

# One public key line for the user core of the live system, or file:PATH or env:NAME.
# sshKey: file:id_ed25519.pub

# Power off after the installation.
# shutdown: true

# amd64 or arm64.
# architecture: amd64

# The partition for container storage. A negative start counts from the end of the disk.
# extraPartitionLabel: var-lib-containers
# extraPartitionNumber: 5
# extraPartitionStart: -40G

# Options of coreos-installer and their values, one list element each.
# coreosInstallerArgs:
#   - --append-karg
#   - console=ttyS0

# Where the live system pulls images from, if not from the registries in their names.
# releaseRegistry: registry.example.com
# imageDigestSources:
#   - source: quay.io/openshift-release-dev/ocp-v4.0-art-dev
#     mirrors:
#       - registry.example.com/openshift/release

# Certificates that the live system trusts, in PEM, or file:PATH or env:NAME.
# additionalTrustBundle: file:ca.pem

# proxy:
#   httpProxy: http://proxy.example.com:3128
#   httpsProxy: http://proxy.example.com:3128
#   noProxy: .example.com,10.0.0.0/8

# Addresses of the live system if there is no DHCP: an nmstate document.
# networkConfig:
#   interfaces:
#     - name: eth0
#       type: ethernet
#       state: up
#       mac-address: 02:00:00:00:00:01
#       ipv4:
#         enabled: true
#         dhcp: false
#         address:
#           - ip: 192.168.122.2
#             prefix-length: 23
#       ipv6:
#         enabled: true
#         dhcp: false
#         address:
#           - ip: 2001:db8::2
#             prefix-length: 64

# An Ignition config of specification 3.0 to 3.2, merged into the config of the live system.
# ignitionConfigOverride: file:override.ign
`;
