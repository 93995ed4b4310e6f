import { createHash } from 'node:crypto';

/**
 * Tests that kill a program at each of its steps try some of them, which the seed of the run chooses. `test/seeds.ts`
 * draws and prints it; KILL_SEED repeats it. `npm run test:kills` tries all.
 */
export type Sample = {
  /** 1 for the first step. */
  readonly first: number;
  readonly stride: number;
};

/** @param title tells samples of one run apart @param stride one of so many steps is tried */
export function sampleKills(title: string, stride: number): Sample {
  const seed = process.env['KILL_SEED'] ?? '1';
  if (seed === 'all') return { first: 1, stride: 1 };
  if (!/^\d+$/.test(seed)) throw new Error(`KILL_SEED is neither "all" nor a number: "${seed}"`);
  const drawn = createHash('sha256').update(`${seed} ${title}`).digest().readUInt32BE();
  return { first: 1 + (drawn % stride), stride };
}
