import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignIdentifiers, type NewName } from '../../../src/iso/directory/names.ts';

const newNames = fc.uniqueArray(
  fc.record({
    name: fc.oneof(
      fc.stringMatching(/^[a-zA-Z0-9._-]{1,60}$/),
      fc.string({ minLength: 1 }),
      fc.stringMatching(/^(same|SAME)[a-c.]{0,3}$/),
    ),
    kind: fc.constantFrom('file' as const, 'directory' as const),
  }),
  { selector: ({ name }) => name, maxLength: 60 },
);

const withoutVersion = (identifier: string): string =>
  identifier.replace(/;1$/, '').replace(/\.$/, '');

describe('ISO 9660 identifiers of new entries', () => {
  it('are the name in capitals, with all other characters replaced', () => {
    const names: NewName[] = [
      { name: 'bootstrap-appliance.img', kind: 'file' },
      { name: '_manifests', kind: 'directory' },
      { name: 'link', kind: 'file' },
      { name: 'v2.1', kind: 'directory' },
      { name: 'a'.repeat(64), kind: 'file' },
    ];
    expect([...assignIdentifiers([], names).values()].sort()).toEqual([
      `${'A'.repeat(30)}.;1`,
      'BOOTSTRAP_APPLIANCE.IMG;1',
      'LINK.;1',
      'V2_1',
      '_MANIFESTS',
    ]);
  });

  it('have at most 30 d-characters, and no two are the same', () => {
    fc.assert(
      fc.property(newNames, (names) => {
        const identifiers = [...assignIdentifiers(['SAME.;1', 'SAMEA'], names).values()];
        for (const identifier of identifiers) {
          expect(identifier).toMatch(/^[A-Z0-9_]+$|^[A-Z0-9_]+\.[A-Z0-9_]*;1$/);
          expect(identifier.replace(/\.|;1$/g, '').length).toBeLessThanOrEqual(30);
        }
        const all = [...identifiers, 'SAME.;1', 'SAMEA'].map(withoutVersion);
        expect(new Set(all).size).toBe(names.length + 2);
      }),
    );
  });

  it('do not depend on the order of the names', () => {
    fc.assert(
      fc.property(newNames, (names) => {
        const forward = assignIdentifiers([], names);
        const backward = assignIdentifiers([], [...names].reverse());
        expect([...forward].sort()).toEqual([...backward].sort());
      }),
    );
  });

  it('are found quickly for ten thousand names that begin alike', () => {
    const names = Array.from({ length: 10_000 }, (_, index) => ({
      name: `${'x'.repeat(40)}${index}`,
      kind: 'directory' as const,
    }));
    expect(new Set(assignIdentifiers([], names).values()).size).toBe(10_000);
  });
});
