import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import {
  encodeReleaseBundle,
  formatReleaseBundleTag,
} from '../../src/openshift/release/release-bundle.ts';
import { parseManifest } from '../../src/registry/manifest.ts';

describe('formatReleaseBundleTag', () => {
  it.each([
    ['4.21.0', 'x86_64', 'ocp-release-bundle-4.21.0-x86_64'],
    ['4.21.0-ec.3', 'aarch64', 'ocp-release-bundle-4.21.0-ec.3-aarch64'],
    ['4.21.0-rc.0', 'ppc64le', 'ocp-release-bundle-4.21.0-rc.0-ppc64le'],
    [
      '4.21.0-0.nightly-2026-01-02-030405',
      'x86_64',
      'ocp-release-bundle-4.21.0-0.nightly-2026-01-02-030405',
    ],
    [
      '4.21.0-0.ci.test-2026-01-02-030405-ci-op-abcdefgh-latest',
      'x86_64',
      'ocp-release-bundle-4.21.0-0.ci.test-2026-01-02-030405-ci-op-abcd',
    ],
  ] as const)('%s on %s is %s', (version, arch, tag) => {
    expect(formatReleaseBundleTag(version, arch)).toBe(tag);
    expect(tag.length).toBeLessThanOrEqual(64);
  });
});

describe('encodeReleaseBundle', () => {
  const release = { version: '4.21.0', arch: 'aarch64', digestReference: 'r/x@sha256:0' } as const;
  const bundle = encodeReleaseBundle(release);

  it('is an image of one empty layer whose descriptors are right', () => {
    const manifest = parseManifest(bundle.manifest.bytes);
    expect(manifest).toMatchObject({
      kind: 'manifest',
      config: bundle.config.descriptor,
      layers: [bundle.layer.descriptor],
    });
    for (const { descriptor, bytes } of [bundle.manifest, bundle.config, bundle.layer]) {
      expect(descriptor.digest).toBe(digestOf(bytes));
      expect(descriptor.size).toBe(bytes.length);
    }
    const config = JSON.parse(Buffer.from(bundle.config.bytes).toString()) as unknown;
    expect(config).toMatchObject({
      architecture: 'arm64',
      os: 'linux',
      rootfs: { type: 'layers', diff_ids: [digestOf(gunzipSync(bundle.layer.bytes))] },
    });
  });

  it('stands under its tag in openshift/release-bundles', () => {
    expect(bundle.repository).toBe('openshift/release-bundles');
    expect(bundle.tag).toBe('ocp-release-bundle-4.21.0-aarch64');
  });

  it('gives the same bytes for the same release', () => {
    expect(encodeReleaseBundle(release)).toEqual(bundle);
    expect(bundle.layer.descriptor.digest).toBe(
      'sha256:b08193cf43a91db41bab4fe3cb9221c8e3ab5ecc9c6ece59e4990c7da59a13fc',
    );
  });
});
