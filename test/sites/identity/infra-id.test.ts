import fc from 'fast-check';
import { expect, it } from 'vitest';
import { makeInfraId } from '../../../src/sites/identity/make.ts';
import { seedRandom } from '../../support/site-identity.ts';

const nameOf = (clusterName: string): string =>
  makeInfraId(clusterName, seedRandom(clusterName)).slice(0, -6);

it('an infra id has a dash for each run of other characters than letters, digits and dashes', () => {
  expect(nameOf('edge.site_7')).toBe('edge-site-7');
  expect(nameOf('a..--b')).toBe('a-b');
  expect(nameOf('a🚀ü')).toBe('a');
  expect(nameOf('Alpha-1')).toBe('Alpha-1');
});

it('a name in an infra id is cut to 21 characters, and then does not end with a dash', () => {
  expect(nameOf('abcdefghijklmnopqrstuvwxyz')).toBe('abcdefghijklmnopqrstu');
  expect(nameOf('abcdefghijklmnopqrst--uvw')).toBe('abcdefghijklmnopqrst');
  expect(nameOf('-'.repeat(40))).toBe('');
});

it('an infra id ends with five characters without vowels, and has at most 27 characters', () => {
  const random = seedRandom('ids');
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (name) => {
      const id = makeInfraId(name, random);
      expect(id).toMatch(/^([A-Za-z0-9-]{0,20}[A-Za-z0-9])?-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      expect(id.length).toBeLessThanOrEqual(27);
      expect(id).not.toContain('--');
    }),
  );
});
