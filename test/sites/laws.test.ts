import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { formatProblem } from '../../src/base/errors.ts';
import { checkSite, type SiteCheck } from '../../src/sites/check.ts';
import type { Plain } from '../../src/shape/shape.ts';
import { formatNetworkConfig } from '../../src/nmstate/format.ts';
import { runs } from '../support/properties.ts';
import { putAnything } from '../support/put-anything.ts';
import { TEST_CERTIFICATE, TEST_SSH_KEY } from '../support/installation-iso.ts';
import { createSiteInput, TEST_EPOCH } from '../support/site-inputs.ts';

const redaction = createRedaction();

/** With a value at nearly every key. */
const INSTALL = {
  apiVersion: 'v1',
  metadata: { name: 'alpha', labels: { a: 'b' } },
  baseDomain: 'edge.example.com',
  sshKey: TEST_SSH_KEY,
  fips: false,
  additionalTrustBundle: TEST_CERTIFICATE,
  additionalTrustBundlePolicy: 'Proxyonly',
  controlPlane: { name: 'master', replicas: 1, architecture: 'amd64', hyperthreading: 'Enabled' },
  compute: [{ name: 'worker', replicas: 0, platform: {} }],
  networking: {
    networkType: 'OVNKubernetes',
    machineNetwork: [{ cidr: '192.0.2.0/24' }],
    clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }],
    serviceNetwork: ['172.30.0.0/16'],
    ovnKubernetesConfig: { ipv4: { internalJoinSubnet: '100.99.0.0/16' } },
  },
  platform: { none: {} },
  publish: 'External',
  capabilities: { baselineCapabilitySet: 'v4.18', additionalEnabledCapabilities: ['Console'] },
  proxy: { httpProxy: 'http://p.example:3128', noProxy: 'a.example' },
  imageDigestSources: [
    { source: 'quay.io/a', mirrors: ['quay.io/b'], sourcePolicy: 'NeverContactSource' },
  ],
  pullSecret: '{"auths":{"quay.io":{"auth":"eA=="}}}',
};

const IMAGE_BASED = {
  hostname: 'alpha-0',
  additionalNTPSources: ['ntp.example.com'],
  releaseRegistry: 'registry.lab:5000',
  cluster_id: '3fd3a7a4-5d6c-4a5a-9f3e-0d3a3b6d9b11',
  nodeLabels: { site: 'a' },
  networkConfig: {
    'interfaces': [
      {
        'name': 'eth0',
        'type': 'ethernet',
        'state': 'up',
        'mac-address': '52:54:00:00:00:01',
        'mtu': 1500,
        'ipv4': {
          'enabled': true,
          'dhcp': false,
          'auto-dns': true,
          'address': [{ 'ip': '192.0.2.10', 'prefix-length': 24 }],
        },
        'ipv6': { enabled: true, dhcp: true, autoconf: true },
      },
      { name: 'eth0.7', type: 'vlan', vlan: { 'base-iface': 'eth0', 'id': 7 } },
      {
        'name': 'bond0',
        'type': 'bond',
        'link-aggregation': { mode: '802.3ad', options: { miimon: 100 }, port: ['eth1'] },
      },
      { name: 'br0', type: 'ovs-bridge', bridge: { port: [{ name: 'eth2' }, { name: 'br0' }] } },
      { name: 'vrf0', type: 'vrf', vrf: { 'port': ['eth3'], 'route-table-id': 100 } },
    ],
    'routes': {
      config: [
        {
          'destination': '0.0.0.0/0',
          'next-hop-address': '192.0.2.1',
          'next-hop-interface': 'eth0',
          'metric': 5,
        },
      ],
    },
    'route-rules': { config: [{ 'ip-from': '192.0.2.0/24', 'route-table': 254 }] },
    'dns-resolver': { config: { server: ['192.0.2.53', 'fe80::1%eth0'], search: ['a.example'] } },
  },
};

const check = (
  install: unknown,
  imageBased: unknown,
  show: (value: unknown) => string,
): SiteCheck =>
  checkSite(
    createSiteInput({
      'install-config.yaml': show(install),
      'image-based-config.yaml': show(imageBased),
    }),
    { epoch: TEST_EPOCH, redaction },
  );

const asJson = (value: unknown): string => JSON.stringify(value, undefined, 1);

describe('a valid site', () => {
  it('passes its check', () => {
    expect(check(INSTALL, IMAGE_BASED, asJson).problems).toEqual([]);
  });

  it('gives problems, but never throws, for any value at any key', () => {
    fc.assert(
      fc.property(putAnything(INSTALL), putAnything(IMAGE_BASED), (install, imageBased) => {
        const { site, facts, problems, warnings } = check(install, imageBased, asJson);
        expect(site === undefined).toBe(problems.length > 0);
        expect(facts).toBeDefined();
        for (const each of [...problems, ...warnings]) {
          expect(each.line).toBeGreaterThan(0);
          expect(each.column).toBeGreaterThan(0);
          expect(formatProblem(each)).not.toMatch(/\[object|undefined|NaN/);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('has the same problems in every form of YAML', () => {
    const tell = ({ problems, warnings }: SiteCheck): readonly string[] =>
      [...problems, ...warnings].map(({ path, problem }) => `${path}: ${problem}`).toSorted();
    const isMapping = (value: unknown): boolean =>
      typeof value === 'object' && value !== null && !Array.isArray(value);
    fc.assert(
      fc.property(
        putAnything(INSTALL).filter(isMapping),
        putAnything(IMAGE_BASED).filter(isMapping),
        (install, imageBased) => {
          const asYaml = (value: unknown): string =>
            formatNetworkConfig(JSON.parse(JSON.stringify(value)) as Plain);
          expect(tell(check(install, imageBased, asYaml))).toEqual(
            tell(check(install, imageBased, JSON.stringify)),
          );
        },
      ),
      { numRuns: runs(200) },
    );
  });

  it('gives problems, but never throws, for any changed byte of its files', () => {
    const files = [INSTALL, IMAGE_BASED].map((value) =>
      Buffer.from(formatNetworkConfig(value as Plain)),
    );
    const bytes = fc.constantFrom(...Buffer.from('\t\n :-[]{}"\'&*!|>%#?,0~\u00e4\ufeff\0'));
    fc.assert(
      fc.property(fc.nat(), fc.array(bytes, { maxLength: 3 }), fc.nat(3), (place, added, cut) => {
        const [install, imageBased] = files.map((file) => {
          const at = place % file.length;
          return Buffer.concat([file.subarray(0, at), Buffer.from(added), file.subarray(at + cut)]);
        });
        const { site, problems } = checkSite(
          createSiteInput({
            'install-config.yaml': install ?? '',
            'image-based-config.yaml': imageBased ?? '',
          }),
          { epoch: TEST_EPOCH, redaction },
        );
        expect(site === undefined).toBe(problems.length > 0);
        for (const each of problems) expect(formatProblem(each)).not.toContain('undefined');
      }),
      { numRuns: runs(300) },
    );
  });
});
