import { describe, expect, it } from 'vitest';
import { checkInstall, tell } from '../../support/site-inputs.ts';

type Row = readonly [
  what: string,
  sections: Readonly<Record<string, string>>,
  ...problems: readonly string[],
];

const MACHINE = 'machineNetwork: [{cidr: 192.0.2.0/24}]';
const JOIN = 'networking.ovnKubernetesConfig.ipv4.internalJoinSubnet';

const join = (subnet: string): Row[1] => ({
  networking: `networking: {${MACHINE}, ovnKubernetesConfig: {ipv4: {internalJoinSubnet: ${subnet}}}}`,
});

const capabilities = (members: string): Row[1] => ({ c: `capabilities: {${members}}` });

describe('a single node without a platform cannot have', () => {
  it.for<Row>([
    [
      'a capability that no release knows',
      capabilities('additionalEnabledCapabilities: [Console, Terminal]'),
      expect.stringMatching(
        /^9:57 capabilities\.additionalEnabledCapabilities\[1\]: Unsupported value: "Terminal": supported values: "Build", /,
      ) as string,
    ],
    [
      'a set of capabilities that no release has',
      capabilities('baselineCapabilitySet: v4.10'),
      expect.stringMatching(
        /^9:39 capabilities\.baselineCapabilitySet: Unsupported value: "v4\.10": /,
      ) as string,
    ],
    [
      'a set of capabilities of a time before Ingress was one',
      capabilities('baselineCapabilitySet: v4.15'),
      '9:15 capabilities.additionalEnabledCapabilities: Invalid value: "": the Ingress capability is required',
    ],
    [
      'a strategy for each of its operators',
      { s: 'operatorPublishingStrategy: {apiserver: External}' },
      '9:29 operatorPublishingStrategy: Invalid value: "External": operator publishing strategy is only allowed with mixed publishing strategy installs',
    ],
    [
      'an arbiter',
      { a: 'arbiter: {name: arbiter, replicas: 1}' },
      '9:10 arbiter: Invalid value: "1": number of controlPlane replicas must be at least 2 for arbiter deployments',
    ],
    [
      'an MTU of its cluster network',
      { networking: `networking: {${MACHINE}, clusterNetworkMTU: 1400}` },
      '6:73 networking.clusterNetworkMTU: Invalid value: "1400": cluster network MTU is allowed only in AWS deployments',
    ],
    [
      'cluster networks whose nodes differ in size',
      {
        networking: `networking: {${MACHINE}, clusterNetwork: [{cidr: 10.128.0.0/15, hostPrefix: 23}, {cidr: 10.130.0.0/15, hostPrefix: 24}]}`,
      },
      '6:144 networking.clusterNetwork[1].hostPrefix: Invalid value: "24": cluster network host subnetwork prefix must be the same value for IPv4 networks',
    ],
    [
      'an invalid join network',
      join('nothing'),
      `6:103 ${JOIN}: Invalid value: "nothing": invalid CIDR address: nothing`,
    ],
    [
      'a join network with a host part',
      join('100.99.0.1/16'),
      `6:103 ${JOIN}: Invalid value: "100.99.0.1/16": invalid network address. got 100.99.0.1/16, expecting 100.99.0.0/16`,
    ],
    [
      'a join network that is too small',
      join('100.99.0.0/24'),
      `6:103 ${JOIN}: Invalid value: "100.99.0.0/24": it is not large enough for the 512 nodes of the cluster networks`,
    ],
  ])('%s', ([, sections, ...expected]) => {
    expect(tell(checkInstall(sections).problems)).toEqual(expected);
  });
});

describe('a single node without a platform may have', () => {
  it.for<Row>([
    [
      'capabilities of its own choice',
      capabilities(
        'baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress, baremetal, OperatorLifecycleManager, marketplace]',
      ),
    ],
    [
      'an older set of capabilities, and Ingress',
      capabilities(
        'baselineCapabilitySet: v4.11, additionalEnabledCapabilities: [Ingress, NodeTuning]',
      ),
    ],
    [
      'capabilities beside those of today',
      capabilities('additionalEnabledCapabilities: [ClusterAPI]'),
    ],
    [
      'a stream of its operating system',
      { controlPlane: 'controlPlane: {name: master, replicas: 1, osImageStream: rhel-9}' },
    ],
    [
      'settings of OVN-Kubernetes that are not looked at',
      { networking: `networking: {${MACHINE}, ovnKubernetesConfig: {ipv6: {}}}` },
    ],
    ['a name that is written as a number', { metadata: 'metadata: {name: 123}' }],
  ])('%s', ([, sections]) => {
    expect(tell(checkInstall(sections).problems)).toEqual([]);
  });
});

describe('deprecated networking keys', () => {
  const networks = (members: string): readonly string[] | undefined =>
    checkInstall({ networking: `networking: {${members}}` }).site?.install.machineNetworks;

  it('are ignored next to the keys that replace them', () => {
    expect(
      networks(
        `${MACHINE}, machineCIDR: 198.51.100.0/24, type: OpenShiftSDN, networkType: OVNKubernetes`,
      ),
    ).toEqual(['192.0.2.0/24']);
  });

  it('are checked like the keys that replace them', () => {
    expect(
      tell(
        checkInstall({
          networking:
            'networking: {machineCIDR: 192.0.2.1/24, serviceCIDR: 10.0.0.0/8, type: OpenShiftSDN}',
        }).problems,
      ).map((text) => text.split(': ')[0]),
    ).toEqual([
      '6:13 networking.clusterNetwork',
      '6:27 networking.machineCIDR',
      '6:54 networking.serviceCIDR',
      '6:72 Networking.NetworkType',
    ]);
  });
});
