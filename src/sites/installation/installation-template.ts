import { formatModeline, SCHEMA } from '../../shape/document.ts';

/** A commented image-based-installation-config.yaml with the members of openshift-install's template. */
export const INSTALLATION_TEMPLATE = `${formatModeline(SCHEMA.installation)}# What an installation ISO installs, and where; the same for any number of sites.
apiVersion: v1beta1
kind: ImageBasedInstallationConfig
metadata:
  name: example-image-based-installation-config

# The image that was made of a cluster of the seed, and that cluster's version. They must agree.
seedImage: quay.io/openshift-kni/seed-image:4.16.0
seedVersion: 4.16.0

# What of the host is overwritten.
installationDisk: /dev/vda
# skipDiskCleanup: false

# Credentials for the seed image and the release images; they go on the ISO. JSON text, file:PATH or
# env:NAME.
pullSecret: file:pull-secret.json

# One public key line for the user core of the live system, or file:PATH or env:NAME.
# sshKey: file:id_ed25519.pub

# Power off when all is installed.
# shutdown: true

# amd64 or arm64.
# architecture: amd64

# The partition for container storage. A negative start counts from the end of the disk.
# extraPartitionLabel: var-lib-containers
# extraPartitionNumber: 5
# extraPartitionStart: -40G

# Options of coreos-installer and their values, each an element of its own.
# coreosInstallerArgs:
#   - --append-karg
#   - console=ttyS0

# Where the images are that the live system pulls, if not where they are named.
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

# Addresses of the live system where there is no DHCP: an nmstate document.
# networkConfig:
#   interfaces:
#     - name: eth0
#       type: ethernet
#       state: up
#       mac-address: 00:00:00:00:00:00
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

# Ignition of specification 3.0 to 3.2, merged into that of the live system.
# ignitionConfigOverride: file:override.ign
`;
