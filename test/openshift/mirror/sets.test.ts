import { describe, expect, it } from 'vitest';
import { archNames, platformOf } from '../../../src/openshift/release/bundle.ts';
import { blockImages, compileBlocked } from '../../../src/openshift/mirror/sets.ts';
import {
  planAdditionalSet,
  planReleaseSet,
  type ImageSet,
} from '../../../src/openshift/mirror/sets.ts';
import {
  chooseRegistryImage,
  CONFIGURE,
  type RegistryImageOrigin,
} from '../../../src/openshift/mirror/server.ts';
import type { Release } from '../../../src/openshift/release/release.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;
const hex = 'a'.repeat(64);

const releaseOf = (version: string, ...components: string[]): Release => ({
  version,
  reference: parseReference(`quay.io/ocp/release@${digest('a')}`),
  arch: 'x86_64',
  created: '2025-10-01T00:00:00Z',
  components: components.map((name) => ({
    name,
    reference: parseReference(`quay.io/ocp/art@${digest('b')}`),
  })),
  definitions: [],
  imagePolicies: [],
  adminGates: {},
  metadata: { version, previous: [], metadata: {} },
});

const additional = (names: readonly string[]): ImageSet =>
  planAdditionalSet(names.map((name) => ({ name })));

describe('the places of a release', () => {
  it('give the release image one tag, the hex of its digest', () => {
    const { images } = planReleaseSet(releaseOf('4.21.1'));
    expect(images.map(({ destination }) => destination)).toEqual([
      { repository: 'openshift/release-images', tags: [hex] },
    ]);
  });

  it('give every component a tag of the release and its name', () => {
    const { images } = planReleaseSet(releaseOf('4.21.1', 'etcd', 'x'.repeat(80)));
    expect(images[1]?.destination).toEqual({
      repository: 'openshift/release',
      tags: [`${hex}-etcd`],
    });
    expect(images[2]?.destination.tags[0]).toHaveLength(127);
  });
});

describe('the places of additional images', () => {
  const place = (name: string): unknown => additional([name]).images[0]?.destination;

  it('are their own path and tag', () => {
    expect(place('registry.redhat.io/rhel9/support-tools:latest')).toEqual({
      repository: 'rhel9/support-tools',
      tags: ['latest'],
    });
    expect(place('registry.example.com:5000/img:1')).toEqual({ repository: 'img', tags: ['1'] });
  });

  it('have a tag made of the digest if they have no tag', () => {
    expect(place(`quay.io/a/b@${digest('c')}`)).toEqual({
      repository: 'a/b',
      tags: [`sha256-${'c'.repeat(64)}`],
    });
    expect(place(`quay.io/a/b:1@${digest('c')}`)).toEqual({ repository: 'a/b', tags: ['1'] });
  });

  it('are the ones in the configuration, if it has any', () => {
    const named = { name: 'quay.io/a/b:1', targetRepo: 'own/place', targetTag: 'v2' };
    expect(planAdditionalSet([named]).images[0]?.destination).toEqual({
      repository: 'own/place',
      tags: ['v2'],
    });
  });

  it('cannot be planned for a name without tag and digest', () => {
    expect(() => additional(['quay.io/a/b'])).toThrow(
      expect.objectContaining({ code: 'mirror.no-version', hint: expect.any(String) as string }),
    );
  });

  it('are planned once: an image that is named twice is an error with both names', () => {
    expect(() => additional(['docker.io/a:1', 'docker.io/library/a:1'])).toThrow(
      'additional images "docker.io/a:1" and "docker.io/library/a:1" are the same image',
    );
    expect(() => additional(['quay.io/a:1', 'quay.io/b:1', 'quay.io/a:1'])).toThrow(
      expect.objectContaining({ code: 'mirror.twice', exitCode: 3 }),
    );
  });
});

describe('blocked images', () => {
  const sets = [
    planReleaseSet(releaseOf('4.21.1', 'etcd')),
    additional(['quay.io/team/tool:1', 'quay.io/team/Other:1'.toLowerCase()]),
  ];
  const names = (patterns: string[]): string[] =>
    blockImages(sets, compileBlocked(patterns)).sets.flatMap(({ images }) =>
      images.map(({ name }) => name),
    );

  it('are images with a source that a pattern matches anywhere', () => {
    expect(names(['team/to'])).toEqual(['release-image', 'etcd', 'quay.io/team/other:1']);
    expect(names(['^quay.io/team/tool:1$'])).not.toContain('quay.io/team/tool:1');
    expect(names(['^team/tool$'])).not.toContain('quay.io/team/tool:1');
  });

  it('are also images with a destination that a pattern matches', () => {
    expect(names(['-etcd$'])).not.toContain('etcd');
  });

  it('are reported with the pattern that matches', () => {
    expect(blockImages(sets, compileBlocked(['nothing', 'tool'])).blocked).toEqual([
      { image: 'quay.io/team/tool:1', pattern: 'tool' },
    ]);
  });

  it('may be given by patterns with leading flags, as in Go', () => {
    expect(names(['(?i)TEAM/TOOL'])).not.toContain('quay.io/team/tool:1');
  });

  it('never include the release image', () => {
    expect(() => blockImages(sets, compileBlocked(['ocp/release']))).toThrow(
      expect.objectContaining({ code: 'mirror.release-blocked', exitCode: 3 }),
    );
  });

  it('are refused if a pattern is not a valid regular expression', () => {
    expect(() => blockImages(sets, compileBlocked(['a(']))).toThrow(
      expect.objectContaining({ code: 'pattern.malformed' }),
    );
  });
});

describe('the registry server on the nodes', () => {
  const configure = CONFIGURE;
  const choose = (version: string, uri?: string): RegistryImageOrigin =>
    chooseRegistryImage({
      release: releaseOf(version, 'docker-registry'),
      configure,
      ...(uri !== undefined && { uri }),
    });

  it.each(['4.17.2', '4.22.0'])('is the configured image for %s', (version) => {
    expect(choose(version, 'docker.io/registry:2')).toEqual({
      kind: 'configured',
      reference: parseReference('docker.io/library/registry:2'),
    });
  });

  it.each(['4.21.0', '4.21.5', '4.21.0-0.ci-2025-01-01', '4.21.0-0.ec.3', '4.22.0-0.nightly-1'])(
    "is the payload's own in %s",
    (version) => {
      const reference = parseReference(`quay.io/ocp/art@${digest('b')}`);
      expect(choose(version)).toEqual({ kind: 'component', reference });
      expect(choose(version, '')).toEqual({ kind: 'component', reference });
    },
  );

  it.each(['4.14.0', '4.20.10', '4.20.0-0.ci-2025-01-01', 'unparsable'])(
    'is the one of the newest 4.21 release for %s, whose own serves only inside a cluster',
    (version) => {
      expect(choose(version)).toEqual({ kind: 'newer-release', minor: '4.21' });
    },
  );

  it('must be configured for a later payload without one', () => {
    expect(() => chooseRegistryImage({ release: releaseOf('4.22.0', 'etcd'), configure })).toThrow(
      expect.objectContaining({
        code: 'release.no-registry-image',
        exitCode: 3,
        message: 'release 4.22.0 has no component "docker-registry" to serve the media',
        hint: expect.stringContaining('set imageRegistry.uri to') as string,
      }),
    );
  });
});

describe('names of architectures', () => {
  it.each([
    ['x86_64', 'amd64'],
    ['aarch64', 'arm64'],
    ['ppc64le', 'ppc64le'],
  ] as const)('are %s for RPM and %s for Go', (rpm, go) => {
    expect(archNames.toGo(rpm)).toBe(go);
    expect(archNames.toRpm(go)).toBe(rpm);
    expect(platformOf(rpm)).toEqual({ os: 'linux', architecture: go });
  });

  it('are refused if no media are built for them', () => {
    expect(() => archNames.toRpm('s390x')).toThrow(/"s390x" is not one of amd64, arm64, ppc64le/);
  });
});
