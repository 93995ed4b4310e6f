import { describe, expect, it } from 'vitest';
import { ToolError } from '../../../src/base/errors.ts';
import type { UnitJudge } from '../../../src/ignition/index.ts';
import { rehearseUnits } from '../../../src/media/rehearse/units.ts';

const { signal } = new AbortController();
const ASKED = { part: 'ignition', name: 'systemd starts the units' } as const;
const config = {
  ignition: { version: '3.2.0' },
  systemd: {
    units: [
      { name: 'a.service', contents: '[Service]\nExecStart=/bin/true\n' },
      { name: 'b.service', contents: '[Service]\nExecStart=/usr/local/bin/gone.sh\n' },
    ],
  },
};
const good = { ...config, systemd: { units: config.systemd.units.slice(0, 1) } };

const answering = (judge: UnitJudge['judge']): UnitJudge => ({ name: 'systemd-analyze 1', judge });
const content = answering(() => Promise.resolve([]));

describe('units on paper', () => {
  it('start if systemd loads them', async () => {
    expect(await rehearseUnits(good, ASKED, { unitJudge: content, signal })).toEqual([
      { ...ASKED, outcome: 'will', reason: 'systemd-analyze 1 loads them' },
    ]);
  });

  it('are not known to start if systemd is not here, or does not answer', async () => {
    expect(await rehearseUnits(good, ASKED, { signal })).toEqual([
      {
        ...ASKED,
        outcome: 'unknown',
        reason:
          'the files of the units are there, but systemd-analyze, which loads them, is not here',
      },
    ]);
    const late = answering(() => Promise.reject(new ToolError('tool.timeout', 'it is late')));
    expect(await rehearseUnits(good, ASKED, { unitJudge: late, signal })).toEqual([
      {
        ...ASKED,
        outcome: 'unknown',
        reason: 'the files of the units are there, but it is late',
      },
    ]);
  });

  it('do not start if a script is gone, with or without systemd, nor if systemd refuses them', async () => {
    const gone = { reason: 'no config writes /usr/local/bin/gone.sh', place: 'b.service' };
    const missing = [{ ...ASKED, outcome: 'will-not', ...gone }];
    expect(await rehearseUnits(config, ASKED, { signal })).toEqual(missing);
    const problems = ['a.service', 'b.service'].map((unit) => ({ unit, problem: 'refused' }));
    const refusing = answering(() => Promise.resolve(problems));
    expect(await rehearseUnits(config, ASKED, { unitJudge: refusing, signal })).toEqual([
      ...missing,
      { ...ASKED, outcome: 'will-not', reason: 'refused', place: 'a.service' },
    ]);
  });
});
