import type { Differences } from '../find-judge.ts';

/** Where sealift differs from nmstatectl on purpose, by the document. */
export const DIFFERENCES: Differences = {};
