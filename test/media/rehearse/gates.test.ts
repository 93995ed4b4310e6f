import { describe, expect, it } from 'vitest';
import type { IsoImage } from '../../../src/iso/index.ts';
import { rehearseGates } from '../../../src/media/rehearse/gates.ts';
import type { PlayedMedium } from '../../../src/media/rehearse/played-medium.ts';
import type { PlayedRelease } from '../../../src/media/rehearse/release.ts';
import { makePackage } from '../../support/catalog-builder.ts';

const play = (
  product: string,
  version: string,
  files: Readonly<Record<string, string>> = {},
): PlayedMedium => ({
  iso: {} as IsoImage,
  index: {
    format: 3,
    product,
    release: { version, reference: 'quay.io/ocp/release@sha256:aa', architecture: 'x86_64' },
    images: [],
    extents: [],
  },
  configs: [],
  files: new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])),
});

const release = (version: string, adminGates: Readonly<Record<string, string>> = {}) =>
  ({ metadata: { version, previous: [], metadata: {} }, adminGates }) as unknown as PlayedRelease;

const NO_POLICY = { '/usr/local/bin/set-env-files.sh': "readonly disable_image_policy='yes'\n" };

const known = (...releases: PlayedRelease[]) => ({ releases, catalogs: [] });

const namesOf = (...args: Parameters<typeof rehearseGates>): readonly string[] =>
  rehearseGates(...args).map(({ name }) => name);

describe('the next update of a cluster that a live ISO installs', () => {
  it('meets the gates of the payload on the medium, and those that operators add', () => {
    const gates = { 'ack-4.20-apis-in-4.21': 'APIs\n  go.', 'ack-4.19-old': 'gone' };
    const steps = rehearseGates(play('live-iso', '4.20.9'), known(release('4.20.9', gates)));
    expect(steps.map(({ name }) => name)).toEqual([
      'ack-4.20-apis-in-4.21 is acknowledged before the update from 4.20.9 to 4.21',
      'ack-4.20-sigstore-in-4.21 is acknowledged before the update from 4.20.9 to 4.21',
    ]);
    expect(steps[0]).toMatchObject({
      part: 'upgrade',
      outcome: 'unknown',
      reason: expect.stringMatching(/^APIs go\. Command: oc .* patch cm admin-acks /) as string,
    });
  });

  it('begins where no gate is known', () => {
    expect(rehearseGates(play('live-iso', '4.17.2'), known(release('4.17.2')))).toEqual([
      {
        part: 'upgrade',
        name: 'a cluster begins the update from 4.17.2 to 4.18',
        outcome: 'will',
        reason: 'no gate is known',
      },
    ]);
  });

  it('meets the override of a medium that switches the image policy off, from 4.21 on', () => {
    const name = (version: string): readonly string[] =>
      namesOf(play('live-iso', version, NO_POLICY), known(release(version)));
    const overrides = 'ClusterVersion has no override before the update from 4.22.0 to 4.23';
    expect(name('4.22.0')).toContain(overrides);
    expect(name('4.17.2').join()).not.toContain('override');
    expect(namesOf(play('live-iso', '4.22.0'), known(release('4.22.0'))).join()).not.toContain(
      'override',
    );
  });

  it('may be that to 5.0 from 4.22 on, which asks for crun', () => {
    const runc = (version: string): readonly string[] =>
      namesOf(play('live-iso', version), known(release(version))).filter((name) =>
        name.includes('runc'),
      );
    expect(runc('4.22.3')).toEqual(['no pool uses runc before the update from 4.22.3 to 5.0']);
    expect([runc('4.21.3'), runc('5.0.1')]).toEqual([[], []]);
  });

  it('meets operators on the medium that do not go further', () => {
    const catalog = makePackage('op', { channels: { stable: [{ name: 'op.v1.0.0' }] } });
    const bundles = catalog.bundles.map((bundle) => ({ ...bundle, maxOpenShiftVersion: '4.17' }));
    const carried = { name: 'index', catalog: { ...catalog, bundles }, lifecycles: new Map() };
    const [step] = rehearseGates(play('live-iso', '4.17.2'), {
      releases: [release('4.17.2')],
      catalogs: [carried],
    });
    expect(step?.name).toContain('no operator is installed that stops the cluster');
    expect(step?.reason).toContain('op.v1.0.0 (up to 4.17)');
  });

  it('is not played without the payload of the medium, or on other media', () => {
    expect(namesOf(play('live-iso', '4.20.9'), known())).toEqual([]);
    expect(namesOf(play('installation-iso', '4.20.9'), known(release('4.20.9')))).toEqual([]);
  });
});

describe('the path of an upgrade ISO', () => {
  const medium = play('upgrade-iso', '4.22.1');
  const releases = [release('4.22.1'), release('4.21.3', { 'ack-4.21-x-in-4.22': 'x goes.' })];

  it('passes the releases on the medium in the order of their versions', () => {
    const left = { version: '4.20.9', adminGates: { 'ack-4.20-y-in-4.21': 'y goes.' } };
    expect(namesOf(medium, { left, ...known(...releases) })).toEqual([
      'ack-4.20-y-in-4.21 is acknowledged before the update from 4.20.9 to 4.21.3',
      'ack-4.20-sigstore-in-4.21 is acknowledged before the update from 4.20.9 to 4.21.3',
      'ack-4.21-x-in-4.22 is acknowledged before the update from 4.21.3 to 4.22.1',
      'ack-4.21-boot-image-opt-out-in-4.22 is acknowledged before the update from 4.21.3 to 4.22.1',
      'the update graph has no risk for the cluster',
    ]);
  });

  it('begins at every minor version before it if none is given', () => {
    const names = namesOf(medium, known(release('4.22.1')));
    expect(names).toContain(
      'everything that the cluster asks for is acknowledged before the update from 4.21 to 4.22.1',
    );
  });

  it.each([
    ['4.20.9', '4.22.1 is more than one minor version after 4.20.9'],
    ['4.22.1', '4.22.1 is not newer than 4.22.1'],
    ['4.23.0-rc.1', '4.22.1 is not newer than 4.23.0-rc.1'],
    ['5.0.1', '4.22.1 is not newer than 5.0.1'],
    ['3.11.0', 'only 5.0 follows another major version, and 4.22.1 does not'],
  ])('is refused to a cluster of %s', (version, reason) => {
    const left = { version, adminGates: {} };
    const steps = rehearseGates(medium, { left, ...known(release('4.22.1')) });
    expect(steps.filter(({ outcome }) => outcome === 'will-not')).toEqual([
      {
        part: 'upgrade',
        name: `a cluster begins the update from ${version} to 4.22.1`,
        outcome: 'will-not',
        reason,
      },
    ]);
    expect(steps.filter(({ outcome }) => outcome === 'will')).toEqual([]);
  });

  it('passes only the releases that are ahead of the cluster', () => {
    const left = { version: '4.21.7', adminGates: { 'ack-4.21-x-in-4.22': 'x goes.' } };
    const names = namesOf(medium, { left, ...known(...releases) });
    expect(names.filter((name) => name.includes('4.21.3'))).toEqual([]);
    expect(names).toContain(
      'ack-4.21-x-in-4.22 is acknowledged before the update from 4.21.7 to 4.22.1',
    );
  });

  it('leads from 4 to 5.0', () => {
    const left = { version: '4.23.2', adminGates: {} };
    const steps = rehearseGates(play('upgrade-iso', '5.0.1'), { left, ...known(release('5.0.1')) });
    expect(steps.filter(({ outcome }) => outcome === 'will-not')).toEqual([]);
  });

  it('has no gates within a minor version', () => {
    const left = { version: '4.22.0', problem: 'not given' };
    expect(namesOf(medium, { left, ...known(release('4.22.1')) })).toEqual([
      'a cluster begins the update from 4.22.0 to 4.22.1',
      'the update graph has no risk for the cluster',
    ]);
  });
});
