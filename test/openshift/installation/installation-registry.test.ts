import { describe, expect, it } from 'vitest';
import { planLocalMirrors } from '../../../src/openshift/installation/mirrors.ts';
import type { PlannedImage } from '../../../src/openshift/mirror/plan.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const image = (
  name: string,
  repository: string,
  set: PlannedImage['set'] = 'additional',
): PlannedImage => ({
  name,
  set,
  origin: parseReference(name),
  source: parseReference(name),
  destination: { repository, tags: [] },
  neededBy: [],
  manifests: [],
  blobs: [],
});

describe('the registry on an installation ISO', () => {
  it('is the mirror of each repository once, sorted', () => {
    const images = [
      image('quay.io/edge/seed:2', 'edge/seed'),
      image('docker.io/library/registry:2', 'library/registry'),
      image('quay.io/edge/seed:1', 'edge/seed'),
    ];
    expect(planLocalMirrors(images, '')).toEqual([
      { source: 'docker.io/library/registry', mirrors: ['localhost:22625/library/registry'] },
      { source: 'quay.io/edge/seed', mirrors: ['localhost:22625/edge/seed'] },
    ]);
  });

  it('is the mirror of a repository with all places of its images, also for the release registry', () => {
    const images = [
      image('quay.io/ocp/art-dev:1', 'openshift/release', 'release'),
      image('quay.io/ocp/art-dev:2', 'ocp/art-dev'),
    ];
    const mirrors = ['localhost:22625/openshift/release', 'localhost:22625/ocp/art-dev'];
    expect(planLocalMirrors(images, 'registry.lab')).toEqual([
      { source: 'quay.io/ocp/art-dev', mirrors },
      { source: 'registry.lab/ocp/art-dev', mirrors },
    ]);
  });
});
