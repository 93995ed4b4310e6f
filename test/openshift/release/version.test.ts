import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareVersions,
  isAtLeast,
  isMinorVersion,
  isWantedVersion,
  minorOf,
  stripBuild,
} from '../../../src/openshift/release/version.ts';

const version = fc
  .tuple(
    fc.nat(6),
    fc.nat(30),
    fc.nat(90),
    fc.constantFrom('', '-rc.2', '-rc.10', '-ec.1', '+multi'),
  )
  .map(([major, minor, patch, end]) => `${major}.${minor}.${patch}${end}`);
const anything = fc.oneof(version, fc.string());

describe('versions', () => {
  it('have a total order, even with texts that are not versions', () => {
    fc.assert(
      fc.property(anything, anything, anything, (a, b, c) => {
        expect(compareVersions(a, b)).toBe(-compareVersions(b, a) + 0);
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) {
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0);
        }
      }),
    );
  });

  it('are ordered by their numbers, candidates before the release', () => {
    const sorted = ['4.9.0', '4.10.0-ec.1', '4.10.0-rc.2', '4.10.0-rc.10', '4.10.0', '4.10.1'];
    expect([...sorted].reverse().sort(compareVersions)).toEqual(sorted);
  });

  it('have a minor version if they are valid', () => {
    expect(minorOf('4.20')).toBe('4.20');
    expect(minorOf('4.20.0-0.nightly-2026-01-01-000000')).toBe('4.20');
    for (const text of ['latest', '4', '4.x', '4.20-rc', '']) expect(minorOf(text)).toBeUndefined();
    expect(isMinorVersion('4.20')).toBe(true);
    expect(isMinorVersion('4.20.0')).toBe(false);
  });

  it('are the same with and without build metadata', () => {
    expect(stripBuild('4.20.1+multi-x')).toBe('4.20.1');
  });

  it.each([
    ['4.22.0', '4.22.0'],
    ['4.22', '4.22.0-ec.3'],
    ['4.22.0', '4.22.0-0.nightly-2026-05-01-000000'],
    ['4.22.0', '4.22.0-ec.3'],
    ['4.22.0', '4.22.0-rc.1+multi'],
    ['4.22.0-rc.1', '4.22.0-rc.1'],
  ])('in a configuration with a pullspec: %s accepts a payload of %s', (wanted, found) => {
    expect(isWantedVersion(wanted, found)).toBe(true);
  });

  it.each([
    ['4.22.1', '4.22.0-0.nightly-2026-05-01-000000'],
    ['4.22.0', '4.22.1'],
    ['4.22.0-rc.1', '4.22.0-rc.2'],
    ['4.22.0-rc.1', '4.22.0'],
    ['4.22.0-0', '4.22.0-0.nightly-2026-05-01-000000'],
  ])('in a configuration with a pullspec: %s refuses a payload of %s', (wanted, found) => {
    expect(isWantedVersion(wanted, found)).toBe(false);
  });

  it('have the features of a release even as its nightlies', () => {
    expect(isAtLeast('4.21.0-0.nightly-1', '4.21.0')).toBe(true);
    expect(isAtLeast('4.20.99', '4.21.0')).toBe(false);
    expect(isAtLeast('latest', '4.21.0')).toBe(false);
  });
});
