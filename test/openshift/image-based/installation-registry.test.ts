import { describe, expect, it } from 'vitest';
import { planLocalMirrors } from '../../../src/openshift/image-based/installation-registry.ts';
import type { PlannedImage } from '../../../src/openshift/mirror/mirror-plan.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const image = (
  name: string,
  repository: string,
  set: PlannedImage['set'] = 'additional',
): PlannedImage => ({
  ...{ name, set, origin: parseReference(name), source: parseReference(name) },
  ...{ destination: { repository, tags: [] }, neededBy: [], manifests: [], blobs: [] },
});

describe('the registry on an installation ISO', () => {
  it('stands for each repository once, sorted', () => {
    const images = [
      image('quay.io/edge/seed:2', 'edge/seed'),
      image('docker.io/library/registry:2', 'library/registry'),
      image('quay.io/edge/seed:1', 'edge/seed'),
    ];
    expect(planLocalMirrors(images, '')).toEqual([
      { source: 'docker.io/library/registry', mirror: 'localhost:22625/library/registry' },
      { source: 'quay.io/edge/seed', mirror: 'localhost:22625/edge/seed' },
    ]);
  });

  it('stands for release images at the registry that they are precached from, too', () => {
    const images = [
      image('quay.io/ocp/art-dev:1', 'openshift/release', 'release'),
      image('quay.io/edge/seed:1', 'edge/seed'),
    ];
    expect(planLocalMirrors(images, 'registry.lab').map(({ source }) => source)).toEqual([
      'quay.io/edge/seed',
      'quay.io/ocp/art-dev',
      'registry.lab/ocp/art-dev',
    ]);
  });
});
