import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { checkInstallationConfig } from '../../src/sites/installation.ts';
import { TEST_CERTIFICATE, TEST_SSH_KEY } from '../support/installation-iso.ts';
import { putAnything } from '../support/put-anything.ts';
import { runs } from '../support/properties.ts';

const GOOD = {
  apiVersion: 'v1beta1',
  kind: 'ImageBasedInstallationConfig',
  metadata: { name: 'a' },
  additionalTrustBundle: TEST_CERTIFICATE,
  architecture: 'arm64',
  coreosInstallerArgs: ['--append-karg', 'console=ttyS0'],
  extraPartitionLabel: 'data',
  extraPartitionNumber: 6,
  extraPartitionStart: '-20G',
  ignitionConfigOverride: '{"ignition":{"version":"3.2.0"}}',
  imageDigestSources: [{ source: 'quay.io/a', mirrors: ['registry.lab:5000'], sourcePolicy: 'X' }],
  installationDisk: '/dev/vda',
  networkConfig: { interfaces: [{ name: 'eth0', ipv4: { enabled: true, dhcp: true } }] },
  proxy: { httpProxy: 'http://p.example', httpsProxy: 'https://p.example', noProxy: 'a, ::1' },
  pullSecret: '{"auths":{"quay.io":{"auth":"eDp5"}}}',
  releaseRegistry: 'registry.lab:5000',
  seedImage: 'quay.io/edge/seed:4.21.3',
  seedVersion: '4.21.3',
  shutdown: true,
  skipDiskCleanup: false,
  sshKey: TEST_SSH_KEY,
};

const check = (value: unknown) =>
  checkInstallationConfig(JSON.stringify(value, undefined, 1), 'i.yaml').problems;

it('an installation configuration with every key is valid', () => {
  expect(check(GOOD)).toEqual([]);
});

it('an installation configuration gives problems, but never throws, for any value at any key', () => {
  fc.assert(
    fc.property(putAnything(GOOD), (value) => {
      for (const each of check(value)) {
        expect(Math.min(each.line, each.column)).toBeGreaterThan(0);
        expect(formatProblem(each)).not.toMatch(/\[object|undefined|NaN/);
      }
    }),
    { numRuns: runs(300) },
  );
});
