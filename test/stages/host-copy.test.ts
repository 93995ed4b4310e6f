import { expect, it } from 'vitest';
import { digestFromHex } from '../../src/base/digest.ts';
import type { PlannedImage } from '../../src/openshift/mirror/plan.ts';
import { mergeMirrorPlan } from '../../src/openshift/mirror/plan.ts';
import { planHostCopy } from '../../src/stages/report/live-iso.ts';

type Prepared = Parameters<typeof planHostCopy>[1];
type Config = Parameters<typeof planHostCopy>[0];

const configOf = (registryData: 'copy' | 'medium', skipLocalRegistry = false): Config =>
  ({ enableInteractiveFlow: false, skipLocalRegistry, build: { registryData } }) as Config;

const manifest = {
  mediaType: 'm',
  digest: digestFromHex('a'.repeat(64)),
  size: 1_000_000_000,
};

/** A plan whose only image is the registry's own, too: on a disk it takes its size twice. */
function planOf(size: number): Prepared {
  const origin = { registry: 'quay.io', repository: 'team/alpha', digest: manifest.digest };
  const image: PlannedImage = {
    name: 'alpha',
    set: 'release',
    origin,
    source: origin,
    manifests: [manifest],
    destination: { repository: 'team/alpha', tags: [] },
    neededBy: [{ part: 'release' }],
    blobs: [{ mediaType: 'b', digest: digestFromHex('b'.repeat(64)), size }],
  };
  const plan = mergeMirrorPlan({ images: [image], registryImage: image, blocked: [] });
  return { plan, release: { version: '4.21.3', definitions: [] } } as unknown as Prepared;
}

it('hosts whose copy leaves 40 GB of the smallest disk cause no warning', () => {
  expect(planHostCopy(configOf('copy'), planOf(29e9))).toEqual({
    hostCopy: { size: 60e9, diskNeeded: 100e9 },
    warnings: [],
  });
});

it('a registry that is too large for the smallest disk is reported with both sizes', () => {
  expect(planHostCopy(configOf('copy'), planOf(29_100_000_000))).toEqual({
    hostCopy: { size: 60_200_000_000, diskNeeded: 100_200_000_000 },
    warnings: [
      'installed hosts copy 60.2 GB to their disks and need 100.2 GB, but disks of 100.0 GB are ' +
        'accepted: on those, leave the medium attached',
    ],
  });
});

it('hosts that copy nothing need no room for a copy', () => {
  expect(planHostCopy(configOf('medium'), planOf(90e9))).toEqual({ warnings: [] });
  expect(planHostCopy(configOf('copy', true), planOf(90e9))).toEqual({ warnings: [] });
});
