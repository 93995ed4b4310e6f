import { describe, expect, it } from 'vitest';
import type { Lifecycle } from '../../../src/fbc/index.ts';
import { rehearseOperators } from '../../../src/media/rehearse/operators.ts';
import { makePackage } from '../../support/catalog-builder.ts';

const QUESTION = { date: '2026-11-27', minor: '4.21' };

const carry = (name: string, lifecycle?: Lifecycle, place = 'redhat') => ({
  name: place,
  catalog: makePackage(name, { channels: { stable: [{ name: `${name}.v2.0.1` }] } }),
  lifecycles: new Map(lifecycle ? [[name, lifecycle]] : []),
});

const during = (startDate: string, endDate: string, versions?: readonly string[]): Lifecycle => ({
  versions: [
    {
      name: '2.0',
      phases: [{ name: 'Full support', startDate, endDate }],
      ...(versions && { platformCompatibility: [{ name: 'openshift', versions }] }),
    },
  ],
});

describe('the part of operators', () => {
  it.each([
    [during('2026-01-01', '2026-12-31'), 'will', 'Full support until 2026-12-31'],
    [during('2025-01-01', '2025-12-31'), 'unknown', 'its support ended on 2025-12-31'],
    [during('2027-01-01', '2027-12-31'), 'unknown', 'its support begins on 2027-01-01'],
    [
      during('2026-01-01', '2026-12-31', ['4.19', '4.20']),
      'will-not',
      'its maker names OpenShift 4.19, 4.20, and no channel leads further',
    ],
    [
      { problem: '2 documents contradict each other' },
      'unknown',
      'its catalog does not tell: 2 documents contradict each other',
    ],
  ] as const)('has a step for each operator with metadata: %j', (lifecycle, outcome, reason) => {
    const [step, ...more] = rehearseOperators([carry('alpha', lifecycle)], QUESTION);
    expect(more).toEqual([]);
    expect(step).toMatchObject({ part: 'operators', outcome, reason, place: 'redhat' });
    expect(step?.name).toMatch(
      /^operator alpha( 2\.0\.1)? is supported with OpenShift 4\.21 on 2026-11-27$/,
    );
  });

  it('has one step for all operators without metadata', () => {
    expect(
      rehearseOperators([carry('alpha'), carry('beta', undefined, 'other')], QUESTION),
    ).toEqual([
      {
        part: 'operators',
        name: 'the support with OpenShift 4.21 on 2026-11-27 of 2 operators without lifecycle metadata is known',
        outcome: 'unknown',
        reason: 'the catalogs do not have it for alpha, beta',
      },
    ]);
  });

  it('is empty on a medium without catalogs', () => {
    expect(rehearseOperators([], QUESTION)).toEqual([]);
  });
});
