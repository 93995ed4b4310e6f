import { describe, expect, it } from 'vitest';
import { checkInstall, tell } from '../../support/site-inputs.ts';
import { TEST_CERTIFICATE, TEST_SSH_KEY } from '../../support/installation-iso.ts';

const HIDDEN = 'Invalid value: "[redacted]":';
const NO_NAME =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const SNO =
  'Required value: Only Single Node OpenShift (SNO) is supported, total number of ControlPlane.Replicas must be 1. Found';
const NO_WORKER =
  'Required value: Total number of Compute.Replicas must be 0 when ControlPlane.Replicas is 1 for platform none. Found';
const PLATFORMS =
  'aws, azure, baremetal, external, gcp, ibmcloud, none, nutanix, openstack, powervc, powervs, vsphere';
const OVN = 'Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster';

type Row = readonly [
  what: string,
  sections: Readonly<Record<string, string>>,
  ...problems: readonly string[],
];

const GENERAL: readonly Row[] = [
  ['no version', { apiVersion: '' }, '1:1 apiVersion: Required value: no version was provided'],
  [
    'an unknown version',
    { apiVersion: 'apiVersion: v2' },
    '1:13 apiVersion: Invalid value: "v2": cannot upconvert from version v2',
  ],
  [
    'a misspelt key',
    { baseDomian: 'baseDomian: a.example' },
    '9:1 baseDomian: unknown field "baseDomian"',
  ],
  [
    'a key that stands twice',
    { more: 'baseDomain: b.example' },
    '9:1 baseDomain: is written twice, first in line 3',
  ],
  [
    'text where a number belongs',
    { controlPlane: 'controlPlane: {name: master, replicas: one}' },
    '4:40 controlPlane.replicas: cannot unmarshal string into a field of type int',
  ],
  ['no cluster name', { metadata: '' }, `1:1 metadata.name: Invalid value: "": ${NO_NAME}`],
  [
    'a cluster name in capitals',
    { metadata: 'metadata: {name: Alpha}' },
    `2:18 metadata.name: Invalid value: "Alpha": ${NO_NAME}`,
  ],
  [
    'a cluster name of 55 characters',
    { metadata: `metadata: {name: ${'a'.repeat(55)}}` },
    `2:18 metadata.name: Invalid value: "${'a'.repeat(55)}": must be no more than 54 characters`,
  ],
  [
    'a domain with a blank',
    { baseDomain: 'baseDomain: edge example' },
    `3:13 baseDomain: Invalid value: "edge example": ${NO_NAME}`,
  ],
  [
    'a name and a domain that are too long together',
    { baseDomain: `baseDomain: ${'a.'.repeat(125)}a` },
    `3:13 baseDomain: Invalid value: "${`alpha.${'a.'.repeat(125)}`.slice(0, 200)}...": must be no more than 253 characters`,
  ],
  [
    'an invalid SSH key',
    { sshKey: 'sshKey: ssh-rsa nothing' },
    `9:9 sshKey: ${HIDDEN} ssh: no key found: is cut short: its base64 text is incomplete`,
  ],
  [
    'an Ed25519 key with FIPS',
    { sshKey: `sshKey: ${TEST_SSH_KEY}`, fips: 'fips: true' },
    `9:9 sshKey: ${HIDDEN} SSH key type ssh-ed25519 unavailable when FIPS is enabled. Please use rsa or ecdsa.`,
  ],
  [
    'a trust bundle that is not PEM',
    { bundle: 'additionalTrustBundle: nothing' },
    `9:24 additionalTrustBundle: ${HIDDEN} invalid block: has no block of PEM`,
  ],
  [
    'lines behind the certificates',
    { bundle: `additionalTrustBundle: ${JSON.stringify(`${TEST_CERTIFICATE}\n`)}` },
    `9:24 additionalTrustBundle: ${HIDDEN} invalid block: has text after the last block`,
  ],
  [
    'an invalid certificate',
    {
      bundle: `additionalTrustBundle: ${JSON.stringify('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')}`,
    },
    `9:24 additionalTrustBundle: ${HIDDEN} block 1 is not a certificate: x509: malformed certificate`,
  ],
  [
    'an unknown policy of trust',
    { policy: 'additionalTrustBundlePolicy: Never' },
    '9:30 additionalTrustBundlePolicy: Unsupported value: "Never": supported values: "Proxyonly", "Always"',
  ],
];

const CLUSTER: readonly Row[] = [
  [
    'another platform',
    { platform: 'platform: {aws: {region: x}}' },
    '7:17 Platform: Unsupported value: "aws": supported values: "none"',
  ],
  [
    'no platform',
    { platform: '' },
    `1:1 platform: Invalid value: "": must specify one of the platforms (${PLATFORMS})`,
  ],
  [
    'a platform without a value',
    { platform: 'platform:\n  none:' },
    `8:3 platform: Invalid value: "": must specify one of the platforms (${PLATFORMS})`,
  ],
  [
    'an unknown platform',
    { platform: 'platform: {nonne: {}}' },
    `7:11 platform: Invalid value: "": must specify one of the platforms (${PLATFORMS})`,
    '7:12 platform.nonne: unknown field "nonne"',
  ],
  [
    'two platforms',
    { platform: 'platform: {none: {}, aws: {}}' },
    '7:11 platform: Invalid value: "aws, none": must only specify a single type of platform',
    '7:27 Platform: Unsupported value: "aws": supported values: "none"',
  ],
  [
    'a platform that is text',
    { platform: 'platform: none' },
    '7:11 platform: cannot unmarshal string into a field of type object',
  ],
  [
    'a feature set',
    { featureSet: 'featureSet: TechPreviewNoUpgrade' },
    '9:13 FeatureSet: Unsupported value: "TechPreviewNoUpgrade": supported values: ""',
  ],
  [
    'the default feature set by its name',
    { featureSet: 'featureSet: Default' },
    '9:13 FeatureSet: Unsupported value: "Default": supported values: ""',
  ],
  [
    'a setting of the platform none',
    { platform: 'platform: {none: {vip: 192.0.2.1}}' },
    '7:19 platform.none.vip: unknown field "vip"',
  ],
  [
    'feature gates',
    { gates: 'featureGates: [A=true]' },
    '9:15 featureGates: Forbidden: featureGates can only be used with the CustomNoUpgrade feature set',
  ],
  [
    'three control plane machines',
    { controlPlane: 'controlPlane: {name: master, replicas: 3}' },
    `4:40 ControlPlane.Replicas: ${SNO} 3`,
  ],
  ['no control plane', { controlPlane: '' }, `1:1 ControlPlane.Replicas: ${SNO} 3`],
  ['no compute pool', { compute: '' }, `1:1 Compute.Replicas: ${NO_WORKER} 3`],
  [
    'a worker',
    { compute: 'compute: [{name: worker, replicas: 1}]' },
    `5:36 Compute.Replicas: ${NO_WORKER} 1`,
  ],
  [
    'workers of two pools',
    { compute: 'compute: [{name: worker}, {name: edge}]' },
    `5:10 Compute.Replicas: ${NO_WORKER} 3`,
  ],
  [
    'fewer machines than none',
    { compute: 'compute: [{name: worker, replicas: -1}, {name: edge, replicas: 1}]' },
    '5:36 compute[0].replicas: Invalid value: "-1": number of replicas must not be negative',
  ],
  [
    'a control plane of another name',
    { controlPlane: 'controlPlane: {name: main, replicas: 1}' },
    '4:22 controlPlane.name: Unsupported value: "main": supported values: "master"',
  ],
  [
    'a compute pool without a name',
    { compute: 'compute: [{replicas: 0}]' },
    '5:11 compute[0].name: Unsupported value: "": supported values: "worker", "edge"',
  ],
  [
    'two pools of one name',
    { compute: 'compute: [{name: worker, replicas: 0}, {name: worker, replicas: 0}]' },
    '5:47 compute[1].name: Duplicate value: "worker"',
  ],
  [
    'pools of two architectures',
    { compute: 'compute: [{name: worker, replicas: 0, architecture: arm64}]' },
    '5:53 compute[0].architecture: Invalid value: "arm64": heteregeneous multi-arch is not supported; compute pool architecture must match control plane',
  ],
  [
    'an unknown architecture',
    { controlPlane: 'controlPlane: {name: master, replicas: 1, architecture: x86_64}' },
    '4:57 controlPlane.architecture: Unsupported value: "x86_64": supported values: "amd64", "arm64", "ppc64le", "s390x"',
  ],
  [
    'hyperthreading of an unknown kind',
    { controlPlane: 'controlPlane: {name: master, replicas: 1, hyperthreading: on}' },
    '4:59 controlPlane.hyperthreading: Unsupported value: "on": supported values: "Disabled", "Enabled"',
  ],
  [
    'an internal cluster',
    { publish: 'publish: Internal' },
    '9:10 publish: Invalid value: "Internal": Internal publish strategy is not supported on "none" platform',
  ],
  [
    'an unknown way to publish',
    { publish: 'publish: Nowhere' },
    '9:10 publish: Unsupported value: "Nowhere": supported values: "External", "Internal", "Mixed"',
  ],
  [
    'a mode of credentials',
    { mode: 'credentialsMode: Mint' },
    '9:18 credentialsMode: Invalid value: "Mint": cannot be set when using the "none" platform',
  ],
  [
    'an unknown partitioning of CPUs',
    { mode: 'cpuPartitioningMode: Some' },
    '9:22 cpuPartitioningMode: Unsupported value: "Some": supported values: "None", "AllNodes"',
  ],
  [
    'a bootstrap without a disk',
    { bootstrap: 'bootstrapInPlace: {}' },
    '9:19 bootstrapInPlace.installationDisk: Required value: installationDisk must be set the target disk drive for the installation',
  ],
  [
    'an unknown set of capabilities',
    { more: 'capabilities: {baselineCapabilitySet: all}' },
    '9:39 capabilities.baselineCapabilitySet: Unsupported value: "all": supported values: "None", "v4.11", "v4.12", "v4.13", "v4.14", "v4.15", "v4.16", "v4.17", "v4.18", "vCurrent"',
  ],
  [
    'capabilities that lack what they need',
    {
      more: 'capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [marketplace]}',
    },
    '9:76 capabilities.additionalEnabledCapabilities: Invalid value: "marketplace": the marketplace capability requires the OperatorLifecycleManager capability',
    '9:76 capabilities.additionalEnabledCapabilities: Invalid value: "marketplace": the Ingress capability is required',
  ],
];

const ACCESS: readonly Row[] = [
  ['no pull secret', { pullSecret: '' }, `1:1 pullSecret: ${HIDDEN} unexpected end of JSON input`],
  [
    'a pull secret that is not valid JSON',
    { pullSecret: 'pullSecret: nothing' },
    `8:13 pullSecret: ${HIDDEN} not valid JSON`,
  ],
  [
    'a pull secret without registries',
    { pullSecret: `pullSecret: '{"auths":{}}'` },
    `8:13 pullSecret: ${HIDDEN} auths required`,
  ],
  [
    'a registry without credentials',
    {
      pullSecret: `pullSecret: '{"auths":{"q.example":{"email":"a"},"r.example":{"auth":"eA=="}}}'`,
    },
    `8:13 pullSecret: ${HIDDEN} "q.example" requires either auth or credsStore`,
  ],
  [
    'a proxy without a URL',
    { proxy: 'proxy: {noProxy: a.example}' },
    '9:8 proxy: Required value: must include httpProxy or httpsProxy',
  ],
  [
    'a proxy of another scheme',
    { proxy: 'proxy: {httpProxy: "https://p.example"}' },
    '9:20 proxy.httpProxy: Unsupported value: "https": supported values: "http"',
  ],
  [
    'a proxy that is not a valid URL',
    { proxy: 'proxy: {httpProxy: localhost}' },
    '9:20 proxy.httpProxy: Invalid value: "localhost": parse "localhost": invalid URI for request',
  ],
  [
    'a proxy inside of the cluster',
    { proxy: 'proxy: {httpsProxy: "http://172.30.0.9:3128"}' },
    '9:21 proxy.httpsProxy: Invalid value: "http://172.30.0.9:3128": proxy value is part of the service networks',
  ],
  [
    'a list of exceptions with blanks',
    { proxy: 'proxy: {httpProxy: "http://p.example", noProxy: "a.example, b.example"}' },
    '9:49 proxy.noProxy: Invalid value: "a.example, b.example": noProxy must not have spaces',
  ],
  [
    'an exception with a wildcard',
    { proxy: 'proxy: {httpProxy: "http://p.example", noProxy: "a.example,*.b.example"}' },
    '9:49 proxy.noProxy: Invalid value: "a.example,*.b.example": each element of noProxy must be a IP, CIDR or domain without wildcard characters, which is violated by element 1 "*.b.example"',
  ],
  [
    'a mirrored source with a tag',
    { sources: 'imageDigestSources: [{source: "quay.io/a/b:latest", mirrors: [quay.io/c]}]' },
    '9:31 imageDigestSources[0].source: Invalid value: "quay.io/a/b:latest": must be repository--not reference',
  ],
  [
    'a mirror that is not a repository',
    { sources: 'imageDigestSources: [{source: quay.io/a, mirrors: ["?"]}]' },
    '9:52 imageDigestSources[0].mirrors[0]: Invalid value: "?": failed to parse: invalid reference format',
  ],
  [
    'a source without a name',
    { sources: 'imageDigestSources: [{mirrors: [quay.io/a]}]' },
    '9:22 imageDigestSources[0].source: Invalid value: "": failed to parse: invalid reference format',
  ],
  [
    'an unknown policy of a source',
    {
      sources:
        'imageDigestSources: [{source: quay.io/a, mirrors: [quay.io/b], sourcePolicy: Never}]',
    },
    '9:78 imageDigestSources[0].sourcePolicy: Invalid value: "Never": supported values are "NeverContactSource" and "AllowContactingSource"',
  ],
  [
    'a policy without a mirror',
    { sources: 'imageDigestSources: [{source: quay.io/a, sourcePolicy: NeverContactSource}]' },
    '9:56 imageDigestSources[0].sourcePolicy: Invalid value: "NeverContactSource": sourcePolicy cannot be configured without a mirror',
  ],
  [
    'mirrors in two keys',
    {
      sources: 'imageDigestSources: [{source: quay.io/a, mirrors: [quay.io/b]}]',
      old: 'imageContentSources: [{source: quay.io/a, mirrors: [quay.io/b]}]',
    },
    '10:22 imageContentSources: Invalid value: "1": cannot set imageContentSources and imageDigestSources at the same time',
  ],
];

const network = (members: string): Row[1] => ({ networking: `networking: {${members}}` });
const machine = (...cidrs: readonly string[]): string =>
  `machineNetwork: [${cidrs.map((cidr) => `{cidr: "${cidr}"}`).join(', ')}]`;

const NETWORKS: readonly Row[] = [
  [
    'another kind of network',
    network(`${machine('192.0.2.0/24')}, networkType: OpenShiftSDN`),
    `6:69 Networking.NetworkType: Invalid value: "OpenShiftSDN": ${OVN}`,
  ],
  [
    'three machine networks',
    network(machine('192.0.2.0/26', '192.0.2.64/26', '192.0.2.128/26')),
    '6:30 Networking.MachineNetwork: Too many: 3: must have at most 2 items',
  ],
  [
    'an invalid network',
    network(machine('192.0.2.0')),
    '6:38 networking.machineNetwork[0].cidr: Invalid value: "192.0.2.0": invalid CIDR address: 192.0.2.0',
  ],
  [
    'a network with a host part',
    network(machine('10.0.2.1/24')),
    '6:38 networking.machineNetwork[0].cidr: Invalid value: "10.0.2.1/24": invalid network address. got 10.0.2.1/24, expecting 10.0.2.0/24',
  ],
  [
    'the network of everything',
    network(`${machine('192.0.2.0/24')}, serviceNetwork: ["0.0.0.0/16"]`),
    '6:73 networking.serviceNetwork[0]: Invalid value: "0.0.0.0/16": address must be specified',
  ],
  [
    'machine networks in each other',
    network(machine('192.0.2.0/24', '192.0.2.64/26')),
    '6:62 networking.machineNetwork[1].cidr: Invalid value: "192.0.2.64/26": machine network must not overlap with machine network 0',
  ],
  [
    'a network that OVN-Kubernetes uses itself',
    network(machine('100.64.1.0/24')),
    '6:38 networking.machineNetwork[0].cidr: Invalid value: "100.64.1.0/24": must not overlap with the OVNKubernetes internal subnet 100.64.0.0/16',
  ],
  [
    'a service network that is too large',
    network(`${machine('192.0.2.0/24')}, serviceNetwork: [172.16.0.0/11]`),
    '6:73 networking.serviceNetwork[0]: Invalid value: "172.16.0.0/11": invalid network address. got 172.16.0.0/11, expecting 172.0.0.0/11',
    '6:73 networking.serviceNetwork[0]: Invalid value: "172.16.0.0/11": subnet size for IPv4 service network must be /12 or longer',
  ],
  [
    'services among the machines',
    network(machine('172.30.0.0/24')),
    '6:13 networking.serviceNetwork: Invalid value: "172.30.0.0/16": service network must not overlap with machine network 0',
  ],
  [
    'two service networks of one family',
    network(`${machine('192.0.2.0/24')}, serviceNetwork: [172.30.0.0/16, 172.31.0.0/16]`),
    '6:72 networking.serviceNetwork: Invalid value: "172.30.0.0/16, 172.31.0.0/16": only one service network can be specified',
  ],
  [
    'pods among the services',
    network(`${machine('192.0.2.0/24')}, clusterNetwork: [{cidr: 172.30.0.0/17, hostPrefix: 23}]`),
    '6:80 networking.clusterNetwork[0].cidr: Invalid value: "172.30.0.0/17": cluster network must not overlap with service network 0',
  ],
  [
    'a node with more addresses than all nodes',
    network(`${machine('192.0.2.0/24')}, clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 12}]`),
    '6:107 networking.clusterNetwork[0].hostPrefix: Invalid value: "12": cluster network host subnetwork prefix 12 must not be larger size than CIDR 10.128.0.0/14',
  ],
  [
    'a cluster network without a prefix for hosts',
    network(`${machine('192.0.2.0/24')}, clusterNetwork: [{cidr: 10.128.0.0/14}]`),
    '6:73 networking.clusterNetwork[0].hostPrefix: Invalid value: "0": cluster network host subnetwork prefix 0 must not be larger size than CIDR 10.128.0.0/14',
  ],
  [
    'a node with more addresses than all nodes, in the old spelling',
    network(
      `${machine('192.0.2.0/24')}, clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 20}]`,
    ),
    '6:74 networking.clusterNetworks[0].hostPrefix: Invalid value: "12": cluster network host subnetwork prefix 12 must not be larger size than CIDR 10.128.0.0/14',
  ],
  [
    'an IPv6 host prefix other than 64',
    network(
      'machineNetwork: [{cidr: "2001:db8::/64"}], serviceNetwork: ["fd02::/112"], clusterNetwork: [{cidr: "fd01::/48", hostPrefix: 56}]',
    ),
    '6:138 networking.clusterNetwork[0].hostPrefix: Invalid value: "56": cluster network host subnetwork prefix must be 64 for IPv6 networks',
  ],
  [
    'an IPv6 host prefix above 64',
    network(
      'machineNetwork: [{cidr: "2001:db8::/64"}], serviceNetwork: ["fd02::/112"], clusterNetwork: [{cidr: "fd01::/48", hostPrefix: 80}]',
    ),
    '6:138 networking.clusterNetwork[0].hostPrefix: Invalid value: "80": cluster network host subnetwork prefix must be 64 for IPv6 networks',
  ],
  [
    'services of two families and machines of one',
    network(`${machine('192.0.2.0/24')}, serviceNetwork: [172.30.0.0/16, "fd02::/112"]`),
    '6:13 networking.clusterNetwork: Invalid value: "10.128.0.0/14": dual-stack IPv4/IPv6 requires an IPv6 network in this list',
    '6:30 networking.machineNetwork: Invalid value: "192.0.2.0/24": dual-stack IPv4/IPv6 requires an IPv6 network in this list',
  ],
  [
    'families in another order than the services',
    network(
      `${machine('2001:db8::/64', '192.0.2.0/24')}, serviceNetwork: [172.30.0.0/16, "fd02::/112"], ` +
        'clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: "fd01::/48", hostPrefix: 64}]',
    ),
    '6:30 networking.machineNetwork: Invalid value: "2001:db8::/64, 192.0.2.0/24": IPv4 must come first, as in the list of service networks',
  ],
];

describe('an install-config.yaml is refused for', () => {
  it.for([...GENERAL, ...CLUSTER, ...ACCESS, ...NETWORKS])('%s', ([, sections, ...expected]) => {
    const { site, problems } = checkInstall(sections);
    expect(tell(problems)).toEqual(expected);
    expect(site).toBeUndefined();
  });
});

describe('an install-config.yaml is accepted with', () => {
  it.for<Row>([
    ['an older version', { apiVersion: 'apiVersion: v1beta4' }],
    ['a dot behind the domain', { baseDomain: 'baseDomain: edge.example.com.' }],
    ['several keys of SSH', { sshKey: `sshKey: "${TEST_SSH_KEY}\\n\\n${TEST_SSH_KEY}\\n"` }],
    ['the default feature set', { featureSet: 'featureSet: ""' }],
    ['keys in other cases', { baseDomain: 'BASEDOMAIN: edge.example.com' }],
    ['two machine networks of IPv4', network(machine('192.0.2.0/25', '192.0.2.128/25'))],
    ['machine networks of two families', network(machine('192.0.2.0/24', '2001:db8::/64'))],
    [
      'networks in the old spelling',
      network(
        'machineCIDR: 192.0.2.0/24, serviceCIDR: 172.30.0.0/16, type: OVNKubernetes, ' +
          'clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 9}]',
      ),
    ],
    ['a machine network of IPv6 alone', network(machine('2001:db8::/64'))],
    [
      'a join network out of the way',
      network(
        `${machine('100.64.1.0/24')}, ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.99.0.0/16}}`,
      ),
    ],
    [
      'a registry as a mirror',
      { s: 'imageDigestSources: [{source: quay.io/a, mirrors: ["registry.lab:5000"]}]' },
    ],
    ['a source without mirrors', { s: 'imageDigestSources: [{source: quay.io/a}]' }],
    [
      'exceptions to the proxy',
      { p: 'proxy: {httpProxy: "http://p:3128", noProxy: ".a.example,192.0.2.0/24,fd00::1"}' },
    ],
    [
      'everything excepted from the proxy',
      { p: 'proxy: {httpsProxy: "https://p:3128", noProxy: "*"}' },
    ],
    ['capabilities of a release', { c: 'capabilities: {baselineCapabilitySet: v4.18}' }],
  ])('%s', ([, sections]) => {
    expect(tell(checkInstall(sections).problems)).toEqual([]);
  });
});
