import { randomInt } from 'node:crypto';
import { buildProgram } from '../scripts/bundle.ts';

const SEED = 'SEALIFT_PROPERTY_SEED';

/** Runs once before all tests: many start the program as a process of its own. */
export async function setup(): Promise<void> {
  drawSeed();
  await buildProgram();
}

/** One seed for all workers: they have the environment of this process. */
function drawSeed(): void {
  if (process.env[SEED] === 'random') process.env[SEED] = String(randomInt(2 ** 31));
  if (process.env[SEED] !== undefined)
    console.log(`properties run with ${SEED}=${process.env[SEED]}`);
}
