import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import {
  encodeReleaseBundle,
  formatReleaseBundleTag,
  type ReleaseBundle,
} from '../../../src/openshift/release/bundle.ts';
import { parseManifest } from '../../../src/registry/manifest.ts';

describe('formatReleaseBundleTag', () => {
  it.each([
    ['4.21.0', 'x86_64', 'ocp-release-bundle-4.21.0-x86_64'],
    ['4.21.0+multi', 'x86_64', 'ocp-release-bundle-4.21.0_multi'],
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

describe('the release bundle', () => {
  const digest = digestOf('release');
  const release = {
    version: '4.21.0',
    arch: 'aarch64',
    image: { registry: 'quay.io', repository: 'ocp/release', digest },
  } as const;
  const list = Buffer.from('{"images": []}\n');
  let bundle: ReleaseBundle;
  beforeAll(async () => {
    bundle = await encodeReleaseBundle(release, list);
  });

  it('is an image with one layer, the list of images, and correct descriptors', () => {
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
      rootfs: { type: 'layers', diff_ids: [bundle.layer.descriptor.digest] },
    });
    const stdout = execFileSync('tar', ['-xOf', '-', 'bundle.json'], { input: bundle.layer.bytes });
    expect(stdout).toEqual(list);
  });

  it('names its release by digest in the annotation that openshift/appliance proposes', () => {
    const { annotations } = JSON.parse(Buffer.from(bundle.manifest.bytes).toString()) as {
      annotations: object;
    };
    expect(annotations).toEqual({
      'com.openshift.release-image-digest': digest,
      'org.opencontainers.image.version': '4.21.0',
      'org.opencontainers.image.base.name': `quay.io/ocp/release@${digest}`,
    });
  });

  it('has the tag by which the machine config daemon knows it', () => {
    expect(bundle.repository).toBe('openshift/release-bundles');
    expect(bundle.tag).toBe('ocp-release-bundle-4.21.0-aarch64');
  });

  it('has the same bytes for the same release on any machine', async () => {
    expect(await encodeReleaseBundle(release, list)).toEqual(bundle);
    expect(bundle.layer.descriptor.digest).toBe(
      'sha256:d8594d84ac4082c9cce4696f09dcb39426f52b534730af2b4b2b194a894a0e61',
    );
  });
});
