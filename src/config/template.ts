import { formatModeline, SCHEMA } from '../shape/document.ts';

export type TemplateName = 'ove' | 'minimal';

/** A commented configuration that passes validation. */
export const renderTemplate = (name: TemplateName): string =>
  [HEAD, name === 'ove' ? OVE : MINIMAL, REST].join('');

const HEAD = `${formatModeline(SCHEMA.appliance)}# What goes on the appliance media. Check it: sealift validate
apiVersion: v1beta1
kind: ApplianceConfig

ocpRelease:
  # X.Y takes the newest of the channel, X.Y.Z that release. 4.14 or newer.
  version: "4.21"
  # stable, fast, candidate or eus.
  channel: stable
  # x86_64, aarch64 or ppc64le.
  cpuArchitecture: x86_64
  # The release payload itself, by tag or digest, instead of version and channel.
  # url: quay.io/openshift-release-dev/ocp-release:4.21.0-x86_64

# Credentials to fetch with; they do not go on the media. The JSON text, file:PATH or env:NAME.
pullSecret: file:pull-secret.json

# One public key line for the user core, or file:PATH or env:NAME.
# sshKey: file:id_ed25519.pub

# Console password of the user core, best by reference.
# userCorePass: env:CORE_PASSWORD
`;

const MINIMAL = `
# Install from the web interface of the media.
# enableInteractiveFlow: true

# Keep the default catalog sources; leave this off where there is no internet.
# enableDefaultSources: false

# Stop the registry on the nodes when the cluster is installed.
# stopLocalRegistry: false

# Images to carry besides the release.
# additionalImages:
#   - name: registry.redhat.io/rhel9/support-tools:latest
`;

const OVE = `
# Install from the web interface of the media.
enableInteractiveFlow: true

# There is no internet where this boots.
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
# Operators to carry, by catalog, package and channel. "sealift catalog list" shows what a catalog has,
# "sealift plan" what each package costs.
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
