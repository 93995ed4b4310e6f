import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { groupBy } from '../../../src/base/lists.ts';
import type { Entry } from '../../support/quirky-front.ts';
import { requireTool } from '../../support/tools.ts';
import { ACCESS_ROWS } from '../../support/quirk-access.ts';
import { PLAIN_ROWS, type Row } from '../../support/quirk-rows.ts';
import {
  COMMANDS,
  createQuirkWorld,
  type QuirkCommand,
  type QuirkWorld,
  type Run,
} from '../../support/quirk-world.ts';

/*
 * Every habit of a registry with every command: each ends with the right result, or names what is wrong. With
 * QUIRKS=all (`npm run test:quirks`) all of the table is run and printed, with a number one of so many
 * cells; else a short choice.
 */

const hasTools = ['genisoimage', 'isohybrid', 'docker-registry'].map(requireTool).every(Boolean);

const SHORT = '47'; // prime, so that all commands come

/** All of the table, one of so many of its cells, or a short choice. */
const CHOICE = process.env['QUIRKS'] ?? SHORT;
const step = CHOICE === 'all' ? 1 : Number(CHOICE);

const CASES = [...PLAIN_ROWS, ...ACCESS_ROWS].flatMap((row) =>
  COMMANDS.filter((command) => command !== 'verify' || row.isEndless !== true).map((command) => ({
    row,
    command,
    title: `${command} | ${row.family} | ${row.name}`,
  })),
);

describe.skipIf(!hasTools)('the table of quirks and commands', () => {
  let world: QuirkWorld;
  const expected = new Map<QuirkCommand, string>();

  beforeAll(async () => {
    world = await createQuirkWorld();
    for (const command of COMMANDS) {
      const { exitCode, result, stderr } = await world.run(command, undefined);
      expect(exitCode, stderr).toBe(0);
      expected.set(command, result);
    }
  });
  afterAll(async () => {
    await world.close();
  });

  it('has 300 rows or more', () => {
    expect(CASES.length).toBeGreaterThanOrEqual(300);
    expect(new Set(CASES.map(({ title }) => title)).size).toBe(CASES.length);
  });

  it.each(CASES.filter((_, at) => at % step === 0))('$title', async (one) => {
    const { row, command, title } = one;
    const run = await world.run(command, row);
    const { exitCode, stderr, result, helped } = run;
    const code = /(?:\[|"code":")([a-z-]+\.[a-z-]+)/.exec(stderr)?.[1];
    const isHarmless = row.isHarmless && (command !== 'verify' || row.hasNoParts !== true);
    const end = exitCode === 0 ? 'right' : `${exitCode} ${code ?? ''}`;
    if (CHOICE !== SHORT) console.log(`${title} | ${end} | ${describeBlobs(run)}`);
    expect(helped).toBeLessThanOrEqual(2);
    if (isHarmless || exitCode === 0) {
      expect(exitCode, stderr).toBe(0);
      expect(result).toBe(expected.get(command));
      if (isHarmless && command !== 'verify') requireOnce(row, run);
    } else {
      expect([3, 4, 5, 6], stderr).toContain(exitCode);
      expect(code, stderr).toBeDefined();
    }
  });
});

/** Answers with bytes of blobs, by address. */
function listBlobs({ front }: Run): ReadonlyMap<string, readonly Entry[]> {
  const given = front.entries.filter(
    ({ kind, method, status, bytes }) =>
      kind === 'blobs' && method === 'GET' && (status === 200 || status === 206) && bytes > 0,
  );
  return groupBy(given, ({ path }) => path.replace(/^.*\/blobs\//, ''));
}

/** Each blob came once, or in parts that continue each other. */
function requireOnce({ isBroken = false }: Row, run: Run): void {
  for (const [digest, entries] of listBlobs(run)) {
    if (!isBroken) expect(entries, digest).toHaveLength(1);
    else expect(entries.filter(({ headers }) => headers.range === undefined)).toHaveLength(1);
  }
}

const describeBlobs = (run: Run): string => {
  const blobs = listBlobs(run);
  const answers = [...blobs.values()].flat().length;
  return `${blobs.size} blobs in ${answers} answers`;
};
