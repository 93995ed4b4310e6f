import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const UNITS = join(import.meta.dirname, '../../templates/units');

/** Seconds that 10 GiB take at 5 MB/s. */
const COPY_SECONDS = (10 * 1024 ** 3) / 5e6;

/** By systemd.service(5) and systemd.unit(5). */
const DEFAULT_START_SECONDS = 90;
const START_LIMIT = { seconds: 10, starts: 5 };

type Unit = { readonly name: string; readonly values: (key: string) => readonly string[] };

const names = readdirSync(UNITS).filter((name) => name.endsWith('.service'));

const units: readonly Unit[] = names.map((name) => {
  const lines = readFileSync(join(UNITS, name), 'utf8').split('\n');
  return {
    name,
    values: (key) =>
      lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1)),
  };
});

/** Seconds that a unit may take until it counts as started. */
function startSeconds({ values }: Unit): number {
  const [limit] = values('TimeoutStartSec');
  if (limit !== undefined) return limit === 'infinity' ? Infinity : Number(limit);
  if (values('Type').includes('oneshot')) return Infinity;
  const hasWork = values('ExecStartPre').some((command) => !command.startsWith('-'));
  return hasWork ? DEFAULT_START_SECONDS : Infinity;
}

describe('a host with a medium of 5 MB/s', () => {
  it('copies the registry with one of our units', () => {
    expect(names).toContain('copy-registry-data.service');
  });

  // It reads some sectors.
  it.each(units.filter(({ name }) => name !== 'mount-live-iso@.service'))(
    'gives $name as much time to start as a copy of 10 GiB takes',
    (unit) => {
      expect(startSeconds(unit)).toBeGreaterThan(COPY_SECONDS);
    },
  );

  it.each(units)('sets no time limit for $name', ({ values }) => {
    for (const key of ['RuntimeMaxSec', 'TimeoutSec', 'WatchdogSec', 'JobTimeoutSec']) {
      expect(values(key), key).toEqual([]);
    }
  });

  it.each(units.filter(({ values }) => values('Restart').length > 0))(
    'starts $name again after any number of failures',
    ({ values }) => {
      const isLimited = !values('StartLimitIntervalSec').includes('0');
      const seconds = Number(values('RestartSec')[0] ?? 0.1);
      expect(isLimited && seconds * START_LIMIT.starts <= START_LIMIT.seconds).toBe(false);
    },
  );
});
