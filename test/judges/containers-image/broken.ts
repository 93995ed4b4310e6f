import type { KeyObject } from 'node:crypto';
import type { Change } from './alter.ts';
import { BROKEN_BOOTS } from './broken-boots.ts';
import { BROKEN_IGNITION } from './broken-ignition.ts';
import { BROKEN_INSTALLATIONS } from './broken-installations.ts';
import { BROKEN_PULLS } from './broken-pulls.ts';
import { BROKEN_REGISTRIES } from './broken-registries.ts';
import type { GoodMedium } from './media.ts';

/** A way to break a good medium. */
export type Broken = {
  /** Name in the table; a sentence about the medium. */
  readonly name: string;
  /** Name of the good medium. */
  readonly base: string;
  /** The part of a rehearsal that must say that something will not happen. */
  readonly part: string;
  /** Images that hosts do not get; absent if the change has no effect on pulls. */
  readonly refused?: (medium: GoodMedium) => readonly string[];
  readonly change: (medium: GoodMedium, tools: { readonly key: KeyObject }) => Change;
};

export const BROKEN: readonly Broken[] = [
  ...BROKEN_PULLS,
  ...BROKEN_REGISTRIES,
  ...BROKEN_BOOTS,
  ...BROKEN_IGNITION,
  ...BROKEN_INSTALLATIONS,
];
