import { describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { formatUpgradeLabel } from '../../../src/stages/4-lay-out/lay-out-upgrade-iso.ts';

const labelOf = (version: string, seed = version): string =>
  formatUpgradeLabel({
    version,
    reference: { registry: 'quay.io', repository: 'ocp/release', digest: digestOf(seed) },
  });

describe('the volume label of an upgrade ISO', () => {
  it.each(['4.22.1', '4.22.0-rc.3', '4.22.0-ec.12', '4.22.100-0.hotfix.12345'])(
    'is upgrade_ and the version %s, which fits',
    (version) => {
      expect(labelOf(version)).toBe(`upgrade_${version}`);
      expect(Buffer.byteLength(labelOf(version))).toBeLessThanOrEqual(32);
    },
  );

  it.each([
    ['4.22.0-0.nightly-2026-05-01-000000', 'upgrade_4.22.0_'],
    ['4.22.0-0.ci.test-2026-05-01-000000-ci-op-abcdefgh-latest', 'upgrade_4.22.0_'],
    ['4.22.0-0.okd-scos-2026-05-01-000000', 'upgrade_4.22.0_'],
    ['4.22.12345678901234567890123', 'upgrade_4.22.1234567890_'],
  ])('is shortened, for version %s, to %s and eight digits of the digest', (version, start) => {
    const label = labelOf(version);
    expect(label.startsWith(start), label).toBe(true);
    expect(label).toMatch(/_[0-9a-f]{8}$/);
    expect(Buffer.byteLength(label)).toBeLessThanOrEqual(32);
    expect(labelOf(version, 'another release')).not.toBe(label);
  });
});
