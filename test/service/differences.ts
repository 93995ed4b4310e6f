import type { Differences } from '../judges/find-judge.ts';

/** Requests of the recording that sealift answers otherwise than the real service, each with its reason. */
export const DIFFERENCES: Differences = {};
