import fc from 'fast-check';

/**
 * Set up for each test file: properties have the same values at every run, unless the environment gives a
 * seed (SEALIFT_PROPERTY_SEED, or `random`) and asks for several times the runs (SEALIFT_PROPERTY_RUNS).
 */
const seed = readNumber('SEALIFT_PROPERTY_SEED', 1);
const times = readNumber('SEALIFT_PROPERTY_RUNS', 1);

/** How often a property runs that takes more, or less, than most. */
export const runs = (usual: number): number => usual * times;

fc.configureGlobal({ seed, numRuns: runs(100) });

function readNumber(name: string, usual: number): number {
  const text = process.env[name];
  if (text === undefined) return usual;
  if (!/^-?\d+$/.test(text)) throw new Error(`${name} is no whole number: "${text}"`);
  return Number(text);
}
