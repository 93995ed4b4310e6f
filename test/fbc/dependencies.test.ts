import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Api, Catalog, ChannelEntry, Requirement } from '../../src/fbc/catalog.ts';
import { resolveDependencies, type ResolvedCatalog } from '../../src/fbc/dependencies.ts';
import { checkCatalog } from '../../src/fbc/filter/check-catalog.ts';
import { filterCatalog } from '../../src/fbc/filter/filter-catalog.ts';
import { compileRequirement, parseRequirement } from '../../src/fbc/requirement.ts';
import type { DependencyMode } from '../../src/fbc/source.ts';
import { joinCatalogs, listEntries, makePackage } from '../support/catalog-builder.ts';
import { runs } from '../support/properties.ts';

type Source = {
  readonly catalog: Catalog;
  /** Packages whose heads are kept. */
  readonly packages: readonly string[];
  readonly mode?: DependencyMode;
  readonly name?: string;
};

const resolve = (...sources: readonly Source[]): readonly ResolvedCatalog[] =>
  resolveDependencies(
    sources.map(({ catalog, packages, mode = 'add', name = '' }) => {
      const selected = packages.map((one) => ({ name: one, channels: [] }));
      const filtered = filterCatalog(catalog, { packages: selected, full: false });
      return { name, mode, filtered };
    }),
  );

const namesOf = (resolved: ResolvedCatalog | undefined): readonly string[] =>
  resolved?.catalog.bundles.map(({ name }) => name) ?? [];

/** `op.v1.2.0` replaces `op.v1.1.0`, and so on. */
const chain = (owner: string, ...versions: readonly string[]): readonly ChannelEntry[] =>
  versions.map((version, at) => {
    const next = versions[at + 1];
    const replaces = next === undefined ? {} : { replaces: `${owner}.v${next}` };
    return { name: `${owner}.v${version}`, ...replaces };
  });

const needs = (packageName: string, versionRange: string): Requirement => ({
  kind: 'package',
  packageName,
  versionRange,
});
const api: Api = { group: 'example.com', version: 'v1', kind: 'Thing' };

const app = (...requirements: readonly Requirement[]): Catalog =>
  makePackage('app', {
    channels: { stable: chain('app', '1.0.0') },
    requirements: { 'app.v1.0.0': requirements },
  });

const base = makePackage('base', {
  channels: {
    slow: chain('base', '1.5.0', '1.4.0'),
    fast: chain('base', '2.1.0', '2.0.0', '1.5.0', '1.4.0', '1.3.0'),
  },
  provides: { 'base.v1.5.0': [api], 'base.v1.3.0': [api] },
});

describe('a requirement of a selected bundle', () => {
  const what = 'package "app" bundle "app.v1.0.0" requires';

  test.each<readonly [string, Requirement]>([
    ['a package', needs('base', '<2.0.0')],
    ['an API', { kind: 'api', api }],
    ['all of a constraint', { kind: 'all', of: [needs('base', '>=1.0.0'), { kind: 'api', api }] }],
    ['any of a constraint', { kind: 'any', of: [needs('gone', '>=1.0.0'), { kind: 'api', api }] }],
  ])('is met by adding %s from the first channel that has it', (_what, requirement) => {
    const [resolved] = resolve({
      catalog: joinCatalogs(app(requirement), base),
      packages: ['app'],
    });
    expect(namesOf(resolved)).toEqual(['app.v1.0.0', 'base.v1.5.0']);
    expect(resolved?.catalog.packages.map(({ defaultChannel }) => defaultChannel)).toEqual([
      ...['stable', 'slow'],
    ]);
    expect(resolved?.warnings).toEqual([]);
    expect(resolved?.additions).toMatchObject([
      { bundle: 'base.v1.5.0', channel: 'slow', requiredBy: { bundle: 'app.v1.0.0' } },
    ]);
  });

  test('is a warning in the mode that only warns, regardless of its kind', () => {
    const thing: Requirement = { kind: 'api', api };
    const all: Requirement = { kind: 'all', of: [needs('base', '>=1.0.0'), thing] };
    const requirements = [needs('base', '>=2.0.0'), thing, all];
    const catalog = joinCatalogs(app(...requirements), base);
    const [resolved] = resolve({ catalog, packages: ['app'], mode: 'warn' });
    expect(namesOf(resolved)).toEqual(['app.v1.0.0']);
    expect(resolved?.additions).toEqual([]);
    expect(resolved?.warnings).toEqual([
      `${what} API Thing of example.com/v1, which nothing selected provides; package "base" has it in channel "fast", "slow"`,
      `${what} all of (package "base" in range ">=1.0.0"; API Thing of example.com/v1), which nothing selected provides; package "base" has it in channel "fast", "slow"`,
      `${what} package "base" in range ">=2.0.0", which nothing selected provides; package "base" has it in channel "fast"`,
    ]);
  });

  test('adds no bundle if it is met, cannot be met or cannot be checked', () => {
    const kept = resolve({
      catalog: joinCatalogs(app(needs('base', '>=1.0.0')), base),
      packages: ['app', 'base'],
    });
    expect(kept[0]?.additions).toEqual([]);
    const cel = parseRequirement({
      cel: { rule: 'properties.exists(p, true)' },
      failureMessage: 'no',
    });
    const catalog = joinCatalogs(app(needs('base', '>=9.0.0'), needs('base', 'soon'), cel), base);
    const [resolved] = resolve({ catalog, packages: ['app'] });
    expect(resolved?.additions).toEqual([]);
    expect(resolved?.warnings).toEqual([
      `${what} CEL rule "properties.exists(p, true)" (no), which cannot be checked: CEL is not evaluated here`,
      `${what} package "base" in range ">=9.0.0", which nothing selected provides; the catalog does not have it`,
      `${what} package "base" in range "soon", which cannot be checked: "soon" is not a version range`,
    ]);
  });

  test('is met from its own catalog, else from the others in order, even from one that only warns', () => {
    const own = joinCatalogs(app(needs('base', '>=1.0.0'), needs('far', '>=1.0.0')), base);
    const far = makePackage('far', {
      channels: { stable: chain('far', '1.0.0') },
      requirements: { 'far.v1.0.0': [needs('third', '>=1.0.0')] },
    });
    const third = makePackage('third', { channels: { stable: chain('third', '1.0.0') } });
    const [first, second] = resolve(
      { catalog: own, packages: ['app'], name: 'one' },
      { catalog: joinCatalogs(base, far, third), packages: ['base'], mode: 'warn', name: 'two' },
    );
    expect(namesOf(first)).toEqual(['app.v1.0.0']);
    expect(namesOf(second)).toEqual(['base.v1.5.0', 'base.v2.1.0', 'far.v1.0.0', 'third.v1.0.0']);
    expect(second?.additions.map(({ requiredBy }) => requiredBy)).toEqual([
      { catalog: 'one', package: 'app', bundle: 'app.v1.0.0' },
      { catalog: 'two', package: 'far', bundle: 'far.v1.0.0' },
    ]);
  });

  test('is met from its own catalog also if an earlier one has the package', () => {
    const far = makePackage('far', { channels: { stable: chain('far', '1.0.0') } });
    const own = joinCatalogs(app(needs('base', '>=1.0.0')), base);
    const [first, second] = resolve(
      { catalog: joinCatalogs(far, base), packages: ['far'], name: 'one' },
      { catalog: own, packages: ['app'], name: 'two' },
    );
    expect(namesOf(first)).toEqual(['far.v1.0.0']);
    expect(second?.additions.map(({ bundle }) => bundle)).toEqual(['base.v1.5.0']);
  });

  test('adds the upgrade path to a bundle in the middle of a selected channel', () => {
    const catalog = joinCatalogs(app(needs('base', '<1.5.0')), base);
    const [resolved] = resolve({ catalog, packages: ['app', 'base'] });
    expect(listEntries(resolved?.catalog ?? catalog)['slow']).toEqual([
      'base.v1.5.0',
      'base.v1.4.0',
    ]);
    const fast = makePackage('base', {
      channels: { fast: chain('base', '3.0.0', '2.0.0', '1.0.0') },
    });
    const [longer] = resolve({
      catalog: joinCatalogs(app(needs('base', '<1.5.0')), fast),
      packages: ['app', 'base'],
    });
    expect(longer?.additions.map(({ bundle, reason }) => `${bundle}: ${reason}`)).toEqual([
      'base.v1.0.0: package "base" in range "<1.5.0"',
      'base.v2.0.0: upgrade path to "base.v1.0.0", which is package "base" in range "<1.5.0"',
    ]);
  });

  test('does not add a bundle that its package skips by name', () => {
    const filtered = filterCatalog(joinCatalogs(app(needs('base', '<2.0.0')), base), {
      full: false,
      packages: [
        { name: 'app', channels: [] },
        {
          name: 'base',
          channels: [{ name: 'fast' }],
          defaultChannel: 'fast',
          skipBundles: ['base.v1.5.0'],
        },
      ],
    });
    const [resolved] = resolveDependencies([{ name: '', filtered, mode: 'add' }]);
    expect(resolved?.additions.map(({ bundle }) => bundle)).toContain('base.v1.4.0');
    expect(namesOf(resolved)).not.toContain('base.v1.5.0');
  });
});

describe('an olm.constraint', () => {
  const [bundle] = base.bundles.filter(({ name }) => name === 'base.v1.5.0');
  const isMet = (value: unknown): boolean | undefined =>
    bundle && compileRequirement(parseRequirement(value))(bundle);
  const packageIn = (versionRange: string) => ({ package: { packageName: 'base', versionRange } });
  const [yes, no, unknown] = [packageIn('>1.0.0'), packageIn('>2.0.0'), { cel: { rule: 'x' } }];
  const compound = (kind: string, ...constraints: readonly unknown[]) => ({
    [kind]: { constraints },
  });

  test.each([
    ['all', [yes, { gvk: api }], true],
    ['all', [yes, no, unknown], false],
    ['all', [yes, unknown], undefined],
    ['any', [no, yes, unknown], true],
    ['any', [no, unknown], undefined],
    ['any', [no], false],
    ['not', [no], true],
    ['not', [no, yes], false],
    ['not', [no, unknown], undefined],
    ['none', [no], undefined],
  ])('%s of %j is met: %s', (kind, constraints, expected) => {
    expect(isMet(compound(kind, ...constraints))).toBe(expected);
  });

  test.each([[null], [{}], [{ all: {} }], [{ cel: { rule: 'true' } }], ['text']])(
    'of %j is not known to be met',
    (value) => {
      expect(isMet(value)).toBeUndefined();
    },
  );
});

const names = ['a', 'b', 'c', 'd'] as const;
const apis = ['X', 'Y'].map((kind) => ({ ...api, kind }));
const leaf: fc.Arbitrary<Requirement> = fc.oneof(
  fc
    .record({
      of: fc.constantFrom(...names),
      range: fc.constantFrom('>=1.0.0', '<2.0.0', '>=3.0.0', '=2.0.0'),
    })
    .map(({ of, range }) => needs(of, range)),
  fc.constantFrom(...apis).map((one): Requirement => ({ kind: 'api', api: one })),
);
const requirement: fc.Arbitrary<Requirement> = fc.oneof(
  { weight: 3, arbitrary: leaf },
  fc
    .record({ kind: fc.constantFrom('all', 'any', 'not'), of: fc.array(leaf, { maxLength: 3 }) })
    .map(({ kind, of }): Requirement => ({ kind, of })),
);

/** Versions fall along every channel; which entries skip the next but one is drawn. */
const packageOf = (owner: string): fc.Arbitrary<Catalog> =>
  fc
    .record({
      channels: fc.array(fc.subarray(['4.0.0', '3.0.0', '2.0.0', '1.0.0'], { minLength: 1 }), {
        minLength: 1,
        maxLength: 2,
      }),
      skips: fc.boolean(),
      needed: fc.array(fc.tuple(fc.constantFrom('1', '2', '3', '4'), requirement), {
        maxLength: 4,
      }),
      provided: fc.array(fc.tuple(fc.constantFrom('1', '2', '3', '4'), fc.constantFrom(...apis))),
    })
    .map(({ channels, skips, needed, provided }) => {
      const entries = (versions: readonly string[]): readonly ChannelEntry[] =>
        chain(owner, ...versions).map((entry, at) => {
          const next = versions[at + 2];
          return skips && next !== undefined ? { ...entry, skips: [`${owner}.v${next}`] } : entry;
        });
      const collect = <Value>(pairs: readonly (readonly [string, Value])[]) =>
        Object.fromEntries(
          ['1', '2', '3', '4'].map((major) => [
            `${owner}.v${major}.0.0`,
            pairs.filter(([of]) => of === major).map(([, value]) => value),
          ]),
        );
      return makePackage(owner, {
        channels: Object.fromEntries(channels.map((one, at) => [`channel-${at}`, entries(one)])),
        requirements: collect(needed),
        provides: collect(provided),
      });
    });

const worlds = fc
  .tuple(packageOf('a'), packageOf('b'), packageOf('c'), packageOf('d'))
  .map(([a, b, c, d]) => [joinCatalogs(a, b), joinCatalogs(c, d)] as const);

const resolveWorld = ([one, two]: readonly [Catalog, Catalog]): readonly ResolvedCatalog[] =>
  resolve(
    { catalog: one, packages: ['a'], name: 'one' },
    { catalog: two, packages: ['c'], name: 'two' },
  );

/** With all documents, and the properties of bundles, in another order. */
const shuffle = (catalog: Catalog): Catalog => ({
  ...catalog,
  packages: catalog.packages.toReversed(),
  channels: catalog.channels.toReversed(),
  bundles: catalog.bundles
    .toReversed()
    .map((bundle) => ({ ...bundle, requirements: bundle.requirements.toReversed() })),
});

const describeResolved = (resolved: readonly ResolvedCatalog[]) =>
  resolved.map(({ catalog, additions, warnings }) => ({
    bundles: catalog.bundles.map(({ name }) => name),
    defaults: catalog.packages.map(({ name, defaultChannel }) => [name, defaultChannel]),
    channels: catalog.channels
      .map(({ name, package: owner, entries }) => JSON.stringify([owner, name, entries]))
      .sort(),
    additions,
    warnings,
  }));

describe('the resolution of requirements', () => {
  test('leaves no requirement unmet that a bundle of the catalogs meets, and every catalog valid', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const resolved = resolveWorld(world);
        const kept = resolved.flatMap(({ catalog }) => catalog.bundles);
        const all = world.flatMap(({ bundles }) => bundles);
        for (const test of kept.flatMap((one) => one.requirements).map(compileRequirement)) {
          if (all.some((bundle) => test(bundle) === true))
            expect(kept.some((bundle) => test(bundle) === true)).toBe(true);
        }
        for (const { catalog } of resolved) expect(checkCatalog(catalog)).toEqual([]);
      }),
      { numRuns: runs(500) },
    );
  });

  test('adds nothing the second time', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const first = resolveWorld(world);
        const second = resolveDependencies(
          first.map(({ catalog, warnings, isWhole }, at) => {
            const source = world[at] ?? world[0];
            return {
              name: '',
              mode: 'add' as const,
              filtered: { catalog, warnings, isWhole, source, available: source },
            };
          }),
        );
        expect(second.flatMap(({ additions }) => additions)).toEqual([]);
        expect(second.map(({ catalog }) => catalog)).toEqual(first.map(({ catalog }) => catalog));
      }),
      { numRuns: runs(300) },
    );
  });

  test('does not depend on the order of documents', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const [one, two] = world;
        expect(describeResolved(resolveWorld([shuffle(one), shuffle(two)]))).toEqual(
          describeResolved(resolveWorld([one, two])),
        );
      }),
      { numRuns: runs(300) },
    );
  });

  test('takes the highest version of the default channel that the range accepts', () => {
    const versions = fc.uniqueArray(fc.nat(9), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(versions, versions, fc.nat(9), (slow, fast, limit) => {
        const list = (minors: readonly number[]): readonly ChannelEntry[] =>
          chain('base', ...minors.toSorted((a, b) => b - a).map((minor) => `1.${minor}.0`));
        const channels = { fast: list(fast), slow: list(slow) };
        const source = makePackage('base', { channels, defaultChannel: 'slow' });
        const catalog = joinCatalogs(app(needs('base', `<=1.${limit}.0`)), source);
        const [resolved] = resolve({ catalog, packages: ['app'] });
        const best = [slow, fast]
          .map((minors) => Math.max(...minors.filter((minor) => minor <= limit)))
          .find((minor) => minor >= 0);
        expect(resolved?.additions.map(({ bundle }) => bundle)).toEqual(
          best === undefined ? [] : [`base.v1.${best}.0`],
        );
      }),
    );
  });

  test('ends if packages require each other', () => {
    const ring = (owner: string, next: string): Catalog =>
      makePackage(owner, {
        channels: { stable: chain(owner, '1.0.0') },
        requirements: { [`${owner}.v1.0.0`]: [needs(next, '>=1.0.0')] },
      });
    const catalog = joinCatalogs(ring('a', 'b'), ring('b', 'c'), ring('c', 'a'));
    const [resolved] = resolve({ catalog, packages: ['a'] });
    expect(namesOf(resolved)).toEqual(['a.v1.0.0', 'b.v1.0.0', 'c.v1.0.0']);
  });
});
