import { describe, expect, it } from 'vitest';
import { digestFromHex } from '../../../src/base/digest.ts';
import type { PlannedImage } from '../../../src/openshift/mirror/plan.ts';
import { mergeMirrorPlan, type MirrorPlan } from '../../../src/openshift/mirror/plan.ts';
import { findOmissions, planCosts } from '../../../src/openshift/mirror/costs.ts';
import { explain } from '../../../src/stages/show.ts';

const digestOf = (letter: string) => digestFromHex(letter.repeat(64));
const blob = (letter: string, size: number) => ({
  mediaType: 'application/octet-stream',
  digest: digestOf(letter),
  size,
});

/** An image with a manifest of 10 bytes and these blobs. */
function imageOf(
  name: string,
  parts: readonly string[],
  blobs: PlannedImage['blobs'],
): PlannedImage {
  const manifest = blob(name[0] ?? 'a', 10);
  const origin = { registry: 'quay.io', repository: `team/${name}`, digest: manifest.digest };
  return {
    name,
    set: 'operator',
    origin,
    source: origin,
    blobs,
    destination: { repository: `team/${name}`, tags: ['1'] },
    neededBy: parts.map((part) => ({ part, bundle: `${part}.v1`, catalog: 'index:v1' })),
    manifests: [manifest],
  };
}

const planOf = (...images: PlannedImage[]): MirrorPlan => mergeMirrorPlan({ images, blocked: [] });

const plan = planOf(
  imageOf('alpha', ['release'], [blob('1', 1000), blob('2', 50)]),
  imageOf('bravo', ['small'], [blob('1', 1000), blob('3', 20)]),
  imageOf('charlie', ['large'], [blob('4', 300), blob('5', 40)]),
  imageOf('delta', ['large', 'other'], [blob('5', 40), blob('6', 7)]),
);

describe('the cost of a part', () => {
  it('is the size that it needs and the size that its omission saves, with shared blobs considered', () => {
    expect(planCosts(plan)).toEqual([
      { part: 'release', images: 1, size: 1060, marginalSize: 60 },
      { part: 'small', images: 1, size: 1030, marginalSize: 30 },
      { part: 'large', images: 2, size: 367, marginalSize: 310 },
      { part: 'other', images: 1, size: 57, marginalSize: 0 },
    ]);
  });
});

describe('the omission that is offered', () => {
  it('is the smallest single part that suffices, and never the release', () => {
    expect(findOmissions(plan, 25)).toEqual([
      { parts: ['small'], size: 30 },
      { parts: ['large'], size: 310 },
    ]);
    expect(findOmissions(plan, 31)).toEqual([{ parts: ['large'], size: 310 }]);
  });

  it('is several parts if one does not suffice: together they also save what they share', () => {
    expect(findOmissions(plan, 311)).toEqual([{ parts: ['large', 'other'], size: 367 }]);
  });

  it('is empty if everything together does not suffice', () => {
    expect(findOmissions(plan, 100_000)).toEqual([]);
  });
});

describe('the explanation why an image is carried', () => {
  it('finds a blob by the first digits of its digest, with every image that has it', () => {
    const { images, blobs } = explain('1111', plan);
    expect(images.map(({ name }) => name)).toEqual(['alpha', 'bravo']);
    expect(blobs).toMatchObject([{ size: 1000, users: ['alpha', 'bravo'] }]);
  });

  it('finds an image by a part of its name, with the size that it alone needs', () => {
    expect(explain('charlie', plan).images).toMatchObject([
      { name: 'charlie', size: 350, marginalSize: 310, neededBy: [{ part: 'large' }] },
    ]);
  });

  it('is an error if no image or blob matches', () => {
    expect(() => explain('sha256:9999', plan)).toThrow(
      expect.objectContaining({ code: 'why.nothing', exitCode: 2 }),
    );
  });
});
