import { buildProgram } from '../scripts/bundle.ts';

/** Runs once before all tests: many start the program as a process of its own. */
export const setup = buildProgram;
