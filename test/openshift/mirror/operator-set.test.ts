import { describe, expect, it } from 'vitest';
import { digestFromHex } from '../../../src/base/digest.ts';
import { SealiftError } from '../../../src/base/errors.ts';
import type { SelectedCatalog } from '../../../src/openshift/catalog/selected.ts';
import { mergeSets, planAdditionalSet } from '../../../src/openshift/mirror/sets.ts';
import { compileBlocked } from '../../../src/openshift/mirror/sets.ts';
import { planOperatorSet } from '../../../src/openshift/mirror/operator-set.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const hintOf = (error: unknown): string =>
  error instanceof SealiftError ? (error.hint ?? '') : '';

const hex = (letter: string): string => letter.repeat(64);

function catalogOf(
  bundles: Readonly<Record<string, readonly string[]>>,
  rest: Partial<SelectedCatalog> = {},
): SelectedCatalog {
  return {
    name: 'quay.io/org/index:v4.21',
    reference: parseReference('quay.io/org/index:v4.21'),
    digest: digestFromHex(hex('e')),
    packages: [],
    bundles: Object.entries(bundles).map(([name, images]) => ({
      package: name.split('.')[0] ?? '',
      name,
      image: images[0] ?? '',
      relatedImages: images.map((image) => ({ name: 'operand', image })),
    })),
    lastVersions: {},
    additions: [],
    warnings: [],
    ...rest,
  };
}

const planned = (...catalogs: readonly SelectedCatalog[]) =>
  planOperatorSet(catalogs, compileBlocked([])).set;

describe('the images of operators', () => {
  it('are named after the bundle if they are its own image, and list the bundles that need them', () => {
    const [bundle, operand] = planned(
      catalogOf({ 'a.v1': [`quay.io/a/bundle@sha256:${hex('1')}`, 'quay.io/a/run:1'] }),
    ).images;
    expect(bundle).toMatchObject({
      name: 'a.v1',
      destination: { repository: 'a/bundle', tags: [`sha256-${hex('1')}`] },
      neededBy: [{ part: 'a', bundle: 'a.v1', catalog: 'quay.io/org/index:v4.21' }],
    });
    expect(operand).toMatchObject({ destination: { repository: 'a/run', tags: ['1'] } });
  });

  it('include their catalog, by the digest of the carried image and under its tag', () => {
    const rebuilt = { made: [] };
    const at = (rest: Partial<SelectedCatalog>) => planned(catalogOf({}, rest)).images[0];
    expect(at({ rebuilt })).toMatchObject({
      kind: 'catalog',
      isMadeHere: true,
      source: { digest: digestFromHex(hex('e')) },
      destination: { repository: 'org/index', tags: ['v4.21'] },
    });
    expect(at({ targetCatalog: 'own/index', targetTag: 'mine' })?.destination).toEqual({
      repository: 'own/index',
      tags: ['mine'],
    });
    const pinned = parseReference(`quay.io/org/index@sha256:${hex('a')}`);
    expect(at({ reference: pinned })?.destination.tags).toEqual([`sha256-${hex('e')}`]);
  });

  it('that cannot be carried are reported all at once, with catalog, package and bundle', () => {
    const catalog = catalogOf({ 'a.v1': ['oci:///x/y'], 'b.v2': ['quay.io/b/c', 'not a name'] });
    const message =
      /package "a": bundle "a\.v1": invalid image: oci:.*\n.*b\.v2.*tag and digest are empty\n.*not a name/;
    expect(() => planned(catalog)).toThrow(
      expect.objectContaining({
        code: 'catalog.image-reference',
        message: expect.stringMatching(message) as string,
      }),
    );
  });

  it('that cannot be carried may be blocked by the pattern of the hint, which blocks no other', () => {
    const names = ['oci:///x/y', 'quay.io/b/c+(d)'];
    const catalog = catalogOf({ 'a.v1': ['quay.io/b/c:1', ...names] });
    const patterns: string[] = [];
    const blockOne = (): readonly string[] => {
      try {
        const { set, blocked } = planOperatorSet([catalog], compileBlocked(patterns));
        expect(set.images).toHaveLength(2); // of the bundle and of the catalog
        return blocked.map(({ image }) => image);
      } catch (error) {
        const [, pattern = ''] = /^add '(.+)' to blockedImages/.exec(hintOf(error)) ?? [];
        expect(patterns).not.toContain(pattern);
        patterns.push(pattern);
        return blockOne();
      }
    };
    expect(blockOne()).toEqual(names);
    expect(compileBlocked(patterns)(['quay.io/b/c:1', 'oci:///x/y2'])).toBeUndefined();
  });

  it('are merged if several bundles need them: the first set has the image, with all needs', () => {
    const name = `quay.io/shared/proxy@sha256:${hex('5')}`;
    const sets = mergeSets([
      planned(catalogOf({ 'a.v1': [name], 'b.v1': [name] })),
      planAdditionalSet([{ name }]),
    ]);
    expect(sets.map(({ images }) => images.length)).toEqual([2, 0]);
    expect(sets[0]?.images[0]?.neededBy.map(({ part }) => part)).toEqual([
      'a',
      'b',
      'additional images',
    ]);
  });
});
