import { describe, expect, it } from 'vitest';
import {
  createShelfLookup,
  describeAbsence,
  findAbsent,
} from '../../../src/openshift/mirror/closure.ts';
import { parseReference } from '../../../src/registry/index.ts';

const at = (index: number): string => index.toString(16).padStart(64, '0');
const named = (name: string, part: string) => ({
  image: parseReference(name),
  neededBy: { part },
});

describe('the images that a medium names and does not have', () => {
  it('are found among many, whoever names them', () => {
    const wanted = Array.from({ length: 60_000 }, (_, index) =>
      named(`quay.io/a/b@sha256:${at(index % 2)}`, `p${index}`),
    );
    const shelf = new Set([`a/b@sha256:${at(0)}`]);
    const absent = findAbsent(wanted, { look: () => ['a/b'], shelf });
    expect(absent).toMatchObject([{ image: `quay.io/a/b@sha256:${at(1)}`, asked: ['a/b'] }]);
    expect(absent[0]?.neededBy).toHaveLength(30_000);
    expect(absent.map(describeAbsence)[0]?.length).toBeLessThan(1000);
  });

  it('are not those that any of many repositories has', () => {
    const shelf = new Set(
      Array.from({ length: 30_000 }, (_, index) => `r${index}@sha256:${at(index)}`),
    );
    shelf.add('r7:latest').add('r8:5000');
    const look = createShelfLookup(shelf);
    const wanted = Array.from({ length: 30_000 }, (_, index) =>
      named(`quay.io/a@sha256:${at(index)}`, 'p'),
    );
    expect(findAbsent(wanted, { look, shelf })).toEqual([]);
    expect(look(parseReference('quay.io:5000/a:latest'))).toEqual(['r7']);
    expect(look(parseReference('quay.io/a:5000'))).toEqual(['r8']);
    expect(look(parseReference('quay.io/a:5001'))).toEqual([]);
  });
});
