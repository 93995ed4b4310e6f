import { describe, expect, test } from 'vitest';
import type { Lifecycle, LifecycleVersion } from '../../../src/fbc/index.ts';
import { listSupport } from '../../../src/openshift/catalog/support.ts';
import { makePackage } from '../../support/catalog-builder.ts';

const PHASES = [
  { name: 'Full support', startDate: '2025-01-01', endDate: '2025-06-30' },
  { name: 'Maintenance support', startDate: '2025-07-01', endDate: '2026-06-30' },
];

const madeFor = (...versions: string[]): Pick<LifecycleVersion, 'platformCompatibility'> => ({
  platformCompatibility: [
    { name: 'other', versions: ['1.0'] },
    { name: 'openshift', versions },
  ],
});

const CATALOG = makePackage('op', {
  channels: {
    old: [{ name: 'op.v1.4.2' }],
    stable: [{ name: 'op.v2.0.1', replaces: 'op.v2.0.0' }, { name: 'op.v2.0.0' }],
    same: [{ name: 'op.v2.0.1' }],
  },
  defaultChannel: 'stable',
});

const ask = (
  lifecycle: Lifecycle | undefined,
  { date = '2025-06-30', minor = '4.21', catalog = CATALOG } = {},
) =>
  listSupport(
    { catalog, lifecycles: new Map(lifecycle ? [['op', lifecycle]] : []) },
    { date, minor },
  );

const TWO = {
  versions: [
    { name: '2.0', phases: PHASES },
    { name: '1.4', phases: PHASES.slice(0, 1) },
  ],
};

describe('the support of an operator', () => {
  test('is that of the heads of its channels, once for a minor version, the default channel first', () => {
    expect(ask(TWO)).toEqual([
      {
        package: 'op',
        version: '2.0.1',
        state: 'supported',
        phase: 'Full support',
        until: '2025-06-30',
      },
      {
        package: 'op',
        version: '1.4.2',
        state: 'supported',
        phase: 'Full support',
        until: '2025-06-30',
      },
    ]);
  });

  test.each([
    ['2024-12-31', { state: 'begins', day: '2025-01-01' }],
    ['2025-01-01', { state: 'supported', phase: 'Full support', until: '2025-06-30' }],
    ['2025-07-01', { state: 'supported', phase: 'Maintenance support', until: '2026-06-30' }],
    ['2026-06-30', { state: 'supported', phase: 'Maintenance support', until: '2026-06-30' }],
    ['2026-07-01', { state: 'ended', day: '2026-06-30' }],
  ])('on %s has both days of a phase in it', (date, expected) => {
    expect(ask(TWO, { date })[0]).toMatchObject(expected);
  });

  test('between two phases is not known', () => {
    const gap = [PHASES[0], { name: 'x', startDate: '2025-08-01', endDate: '2025-09-01' }];
    const lifecycle = { versions: [{ name: '2.0', phases: gap as typeof PHASES }] };
    expect(ask(lifecycle, { date: '2025-07-15' })[0]).toMatchObject({ state: 'unknown' });
  });

  test('prefers the entry of the version itself to that of its minor version', () => {
    const versions = [
      { name: '2.0', phases: PHASES.slice(0, 1) },
      { name: '2.0.1', phases: PHASES.slice(1) },
    ];
    expect(ask({ versions })[0]).toMatchObject({ state: 'begins', day: '2025-07-01' });
  });

  test('of a version without an entry is not known', () => {
    const [, old] = ask({ versions: [{ name: '2.0', phases: PHASES }] });
    expect(old).toMatchObject({
      version: '1.4.2',
      state: 'unknown',
      problem: 'its lifecycle has no such version',
    });
  });

  test('of an operator without metadata, or with metadata that cannot be used, is not known', () => {
    expect(ask(undefined)).toEqual([{ package: 'op', state: 'unknown' }]);
    expect(ask({ problem: 'twice' })).toEqual([
      { package: 'op', state: 'unknown', problem: 'twice' },
    ]);
  });
});

describe('an operator that was made for other releases of OpenShift', () => {
  const limited = { name: '2.0', phases: PHASES, ...madeFor('4.19', '4.20') };

  test('is excluded, and another channel may lead to a version that is not', () => {
    const [first, second] = ask({ versions: [limited, { name: '1.4', phases: PHASES }] });
    expect(first).toMatchObject({ state: 'excluded', madeFor: ['4.19', '4.20'], hasOther: true });
    expect(second).toMatchObject({ state: 'supported' });
  });

  test('has no other version if all channels lead to excluded ones', () => {
    const versions = [limited, { name: '1.4', phases: PHASES, ...madeFor('4.12') }];
    expect(ask({ versions })).toMatchObject([
      { state: 'excluded', hasOther: false },
      { state: 'excluded', hasOther: false },
    ]);
  });

  test('is not excluded on the releases it names, without a list for OpenShift, or on an unknown release', () => {
    const versions = [{ ...limited, platformCompatibility: [{ name: 'other', versions: ['1'] }] }];
    expect(ask({ versions: [limited] }, { minor: '4.20' })[0]).toMatchObject({
      state: 'supported',
    });
    expect(ask({ versions })[0]).toMatchObject({ state: 'supported' });
    const lifecycles = new Map([['op', { versions: [limited] }]]);
    const [first] = listSupport({ catalog: CATALOG, lifecycles }, { date: '2025-06-30' });
    expect(first).toMatchObject({ state: 'supported' });
  });
});
