import fc from 'fast-check';

/**
 * Setup of each test file: properties draw the same values in every run, unless the environment gives a seed
 * (PROPERTY_SEED, a number or `random`) or multiplies the runs (PROPERTY_RUNS).
 */
const seed = readNumber('PROPERTY_SEED', 1);
const times = readNumber('PROPERTY_RUNS', 1);

/** Runs of a property whose usual number is not the default. */
export const runs = (usual: number): number => usual * times;

fc.configureGlobal({ seed, numRuns: runs(100) });

function readNumber(name: string, usual: number): number {
  const text = process.env[name];
  if (text === undefined) return usual;
  if (!/^-?\d+$/.test(text)) throw new Error(`${name} is not a whole number: "${text}"`);
  return Number(text);
}
