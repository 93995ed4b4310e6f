import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestFromHex } from '../../../src/base/digest.ts';
import { mergeMirrorPlan, type PlannedImage } from '../../../src/openshift/mirror/plan.ts';

const hexOf = (letter: string): string => letter.repeat(64);

type Named = {
  readonly letter: string;
  readonly tag?: string;
  readonly registry?: string;
  /** Named with a digest, or by its tag alone. */
  readonly isByDigest?: boolean;
};

/** `registry/team/app:1@sha256:aaa...` of a bundle, unless the arguments say otherwise. */
function imageOf({ letter, ...named }: Named): PlannedImage {
  const { tag = '1', registry = 'quay.io', isByDigest = true } = named;
  const digest = digestFromHex(hexOf(letter));
  const base = { registry, repository: 'team/app' };
  return {
    name: `image ${letter}`,
    set: 'operator',
    origin: { ...base, tag, ...(isByDigest && { digest }) },
    source: { ...base, digest },
    destination: { repository: 'team/app', tags: [tag] },
    neededBy: [{ part: 'op', bundle: 'op.v1', catalog: 'index:v1' }],
    manifests: [{ mediaType: 'application/json', digest, size: 1 }],
    blobs: [],
  };
}

const additional = (named: Named): PlannedImage => {
  const image = imageOf(named);
  return { ...image, set: 'additional', neededBy: [{ part: 'additional images' }] };
};

const tagsOf = (...images: readonly PlannedImage[]): readonly (readonly string[])[] =>
  mergeMirrorPlan({ images, blocked: [] }).images.map(({ destination }) => destination.tags);

describe('images of bundles that share a tag', () => {
  it('leave it to the first, and the second gets a tag made of its digest', () => {
    const tags = tagsOf(imageOf({ letter: 'a' }), imageOf({ letter: 'b' }));
    expect(tags).toEqual([['1'], [`sha256-${hexOf('b')}`]]);
  });

  it('leave it to an image that nodes pull by tag, at any position', () => {
    const byTag = additional({ letter: 'b', isByDigest: false });
    expect(tagsOf(imageOf({ letter: 'a' }), byTag)).toEqual([[`sha256-${hexOf('a')}`], ['1']]);
  });

  it('leave it to an image that the configuration names itself', () => {
    const own = additional({ letter: 'b' });
    expect(tagsOf(imageOf({ letter: 'a' }), own)).toEqual([[`sha256-${hexOf('a')}`], ['1']]);
  });

  it('share it if they are the same image', () => {
    expect(tagsOf(imageOf({ letter: 'a' }), imageOf({ letter: 'a' }))).toEqual([['1'], ['1']]);
  });

  it('are refused with their names if both are pulled by that tag', () => {
    const [one, two] = ['a', 'b'].map((letter) =>
      imageOf({ letter, registry: `${letter}.example`, isByDigest: false }),
    );
    expect(() => tagsOf(...[one, two].filter((image) => image !== undefined))).toThrow(
      'images "image a" and "image b" would both be team/app:1 in the registry',
    );
  });

  it('have one digest for every tag, and every digest under a tag', () => {
    const images = fc.array(
      fc.record({ letter: fc.constantFrom('a', 'b', 'c', 'd'), tag: fc.constantFrom('1', '2') }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(images, (named) => {
        const { images: settled } = mergeMirrorPlan({ images: named.map(imageOf), blocked: [] });
        const digests = new Map<string, string | undefined>();
        for (const { destination, source } of settled) {
          expect(destination.tags).toHaveLength(1);
          for (const tag of destination.tags) {
            expect(digests.get(tag) ?? source.digest).toBe(source.digest);
            digests.set(tag, source.digest);
          }
        }
      }),
    );
  });
});
