import { randomInt } from 'node:crypto';

/** Runs once before all tests: one seed for all workers, which have the environment of this process. */
export function setup(): void {
  if (process.env['PROPERTY_SEED'] === 'random') draw('PROPERTY_SEED');
  if (process.env['KILL_SEED'] === undefined) draw('KILL_SEED');
}

function draw(name: string): void {
  process.env[name] = String(randomInt(2 ** 31));
  console.log(`this run has ${name}=${process.env[name]}`);
}
