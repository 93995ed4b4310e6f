import type { ConfigProblem } from '../document/problem.ts';

/** Something of an image set that the configuration made of it does not say. */
export type ImportNote = ConfigProblem & {
  /** Present where the media carry the same without it. */
  readonly isHarmless?: true;
};

/** A part of a configuration, and what of the image set it leaves out. */
export type Noted<T> = { readonly value: T; readonly notes: readonly ImportNote[] };

export const harmless = (note: ConfigProblem): ImportNote => ({ ...note, isHarmless: true });
