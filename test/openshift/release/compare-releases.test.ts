import { describe, expect, it } from 'vitest';
import { compareReleases } from '../../../src/openshift/release/version.ts';

const [ONE, TWO] = ['a', 'b'].map((digit) => `sha256:${digit.repeat(64)}`);
const IMAGE = `quay.io/ocp/release@${ONE ?? ''}`;
const KNOWN = { image: IMAGE, version: '4.21.3', architecture: 'x86_64' };

describe('the release that a ClusterImageSet names', () => {
  it.each([
    ['same', IMAGE],
    ['same', `mirror.example:5000/other/name@${ONE ?? ''}`],
    ['same', `quay.io/ocp/release:4.21.4-x86_64@${ONE ?? ''}`], // the digest counts
    ['other', `quay.io/ocp/release@${TWO ?? ''}`],
    ['same', 'quay.io/ocp/release:4.21.3-x86_64'],
    ['same', 'localhost:5000/r:4.21.3'],
    ['same', 'quay.io/ocp/release:4.21.3-multi'],
    ['other', 'quay.io/ocp/release:4.21.4-x86_64'],
    ['other', 'quay.io/ocp/release:4.21.3-rc.1-x86_64'],
    ['other', 'quay.io/ocp/release:4.21.3-aarch64'],
    ['unknown', 'quay.io/ocp/release:latest'],
    ['unknown', 'localhost:5000/release'],
  ])('is %s: %s', (answer, given) => {
    expect(compareReleases(given, KNOWN)).toBe(answer);
  });

  it('is compared with the tag of the medium if its version is unknown otherwise', () => {
    const image = 'quay.io/ocp/release:4.21.3-x86_64';
    expect(compareReleases('q.io/r:4.21.3-x86_64', { image })).toBe('same');
    expect(compareReleases('q.io/r:4.21.3-aarch64', { image })).toBe('other');
    expect(compareReleases('q.io/r:4.21.2-x86_64', { image })).toBe('other');
    expect(compareReleases('q.io/r:4.21.3-x86_64', { image: IMAGE })).toBe('unknown');
  });
});
