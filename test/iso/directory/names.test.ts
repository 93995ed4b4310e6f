import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutUndefined } from '../../../src/base/lists.ts';
import {
  assignIdentifiers,
  entrySourceOf,
  type NewName,
} from '../../../src/iso/directory/names.ts';
import { encodeRockRidge } from '../../../src/iso/directory/rock-ridge.ts';
import type { BaseDirectory } from '../../../src/iso/read/base-tree.ts';

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

describe('files that are added to a tree', () => {
  const ATTRIBUTES = { mode: 0o100644, links: 1, uid: 0, gid: 0 };
  const node = (
    serial: number | undefined,
    children: BaseDirectory['children'] = [],
  ): BaseDirectory => ({
    kind: 'directory',
    name: '',
    identifier: '',
    flags: 0,
    recordedAt: undefined,
    entries: encodeRockRidge({ ...ATTRIBUTES, ...withoutUndefined({ serial }) }),
    children,
  });

  it('get serial numbers above the highest of the tree, if its files have any (RRIP 1.12 4.1.1)', () => {
    const source = entrySourceOf(node(1, [node(3, [node(12)]), node(7)]), 0);
    expect([source.takeSerial(), source.takeSerial()]).toEqual([13, 14]);
    expect(entrySourceOf(node(undefined, [node(undefined)]), 0).takeSerial()).toBeUndefined();
  });
});
