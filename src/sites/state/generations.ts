import { readdirSync, readFileSync } from 'node:fs';
import { unlessAbsent } from '../../base/disk/files.ts';
import { parseState, type IdentityState } from '../identity/identity-state.ts';
import { stateDirectoryOf, type SitePlaces } from './site-places.ts';

/** One identity that a site has or had. */
export type Generation = {
  /** From 1, in the order in which they were made. */
  readonly number: number;
  /** Undefined where the file is not the whole of what was written. */
  readonly state: IdentityState | undefined;
};

/** Numbers of the generations of each site, the one in use last. */
export type GenerationIndex = (name: string, places: SitePlaces) => readonly number[];

const GENERATION = /^([a-z0-9-]+)\.([1-9]\d{0,8})\.json$/;
const ORDER = /^([a-z0-9-]+)\.order\.json$/;

/** Reads the state directory once: there may be ten thousand sites. */
export function indexGenerations(out: string): GenerationIndex {
  const numbers = new Map<string, number[]>();
  const ordered = new Set<string>();
  for (const file of unlessAbsent(() => readdirSync(stateDirectoryOf(out))) ?? []) {
    const [, name = '', number] = GENERATION.exec(file) ?? ORDER.exec(file) ?? [];
    if (number === undefined) ordered.add(name);
    else numbers.set(name, [...(numbers.get(name) ?? []), Number(number)]);
  }
  return (name, places) => {
    const found = (numbers.get(name) ?? []).sort((a, b) => a - b);
    return ordered.has(name) ? sortByUse(found, readOrder(places)) : found;
  };
}

/** Those that an order does not name were made after it was written. */
function sortByUse(numbers: readonly number[], order: readonly number[]): readonly number[] {
  const named = order.filter((number) => numbers.includes(number));
  return [...named, ...numbers.filter((number) => !named.includes(number))];
}

function readOrder({ order: path }: SitePlaces): readonly number[] {
  const text = unlessAbsent(() => readFileSync(path, 'utf8')) ?? '';
  return [...text.matchAll(/\d+/g)].map(([number]) => Number(number));
}

export const formatOrder = (numbers: readonly number[]): string => `${JSON.stringify(numbers)}\n`;

/** In the order of their use, the one in use last. */
export const readGenerations = (
  places: SitePlaces,
  numbers: readonly number[],
): readonly Generation[] => numbers.map((number) => ({ number, state: readState(places, number) }));

function readState(places: SitePlaces, number: number): IdentityState | undefined {
  const text = unlessAbsent(() => readFileSync(places.generation(number), 'utf8'));
  return text === undefined ? undefined : parseState(text);
}
