import { describe, expect, it } from 'vitest';
import type { Digest } from '../../../src/base/digest.ts';
import { findStreamIso } from '../../../src/openshift/release/base-iso.ts';

const SHA256: Digest = `sha256:${'a'.repeat(64)}`;

/** Of the shape that openshift-install prints. */
const stream = (disk: object): string =>
  JSON.stringify({
    stream: 'rhcos-4.21',
    metadata: { 'last-modified': '2026-01-02T03:04:05Z' },
    architectures: {
      x86_64: {
        artifacts: {
          aws: { release: '9.6.20260101-0', formats: { 'vmdk.gz': { disk } } },
          metal: {
            release: '9.6.20260101-0',
            formats: { iso: { disk }, pxe: { kernel: disk, initramfs: disk, rootfs: disk } },
          },
        },
        images: { gcp: { project: 'rhcos-cloud' } },
      },
      aarch64: { artifacts: { metal: { formats: { pxe: { kernel: disk } } } } },
      ppc64le: { artifacts: { qemu: { formats: {} } } },
    },
  });

const plain = { location: 'https://a.example/live.x86_64.iso', sha256: 'a'.repeat(64) };
const PACKED = 'https://a.example/live.iso.xz?a=b';

describe('a CoreOS stream', () => {
  it('names a live ISO and its digest', () => {
    const found = { url: plain.location, sha256: SHA256 };
    expect(findStreamIso(stream(plain), 'x86_64', 's')).toEqual(found);
  });

  it('has the digest of a packed ISO next to the digest of the file', () => {
    const disk = {
      'location': PACKED,
      'sha256': 'b'.repeat(64),
      'uncompressed-sha256': 'a'.repeat(64),
    };
    expect(findStreamIso(stream(disk), 'x86_64', 's')).toEqual({ url: PACKED, sha256: SHA256 });
  });

  it.each([
    ['for another architecture only', 'aarch64', 'no ISO found to download for aarch64'],
    ['for none of metal', 'ppc64le', "coreOs stream data not found for 'metal' artifact"],
  ] as const)('that has an ISO %s is refused with this reason', (_what, arch, message) => {
    expect(() => findStreamIso(stream(plain), arch, '"s.json"')).toThrow(
      expect.objectContaining({
        code: 'coreos-stream.no-iso',
        exitCode: 3,
        message: `CoreOS stream "s.json": ${message}`,
      }),
    );
  });

  it('without the architecture is refused with the architectures that it has', () => {
    const text = JSON.stringify({ architectures: { s390x: {}, ppc64le: {} } });
    expect(() => findStreamIso(text, 'x86_64', 's')).toThrow(
      expect.objectContaining({ code: 'coreos-stream.no-iso', found: 's390x, ppc64le' }),
    );
  });

  it.each([
    ['no JSON', '<html>'],
    ['an array', '[]'],
    ['null', 'null'],
    ['something else', '{"architectures":[]}'],
    ['without an address', stream({ sha256: 'a'.repeat(64) })],
    ['with an invalid address', stream({ location: 'here', sha256: 'a'.repeat(64) })],
    ['without a digest', stream({ location: plain.location })],
    ['with half a digest', stream({ ...plain, sha256: 'abc' })],
    ['without the digest of what is packed', stream({ ...plain, location: PACKED })],
  ])('that is %s is malformed', (_what, text) => {
    expect(() => findStreamIso(text, 'x86_64', 's')).toThrow(
      expect.objectContaining({ code: 'coreos-stream.malformed', exitCode: 3 }),
    );
  });

  it('is read without members that JavaScript objects inherit', () => {
    const text = '{"architectures":{"x86_64":{"artifacts":{"__proto__":{"formats":{}}}}}}';
    expect(() => findStreamIso(text, 'x86_64', 's')).toThrow("'metal' artifact");
  });
});
