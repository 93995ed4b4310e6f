import { isIP } from 'node:net';
import { ConfigError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { suggestName } from '../../base/text/words.ts';
import { describeValue, toPrintable } from '../../base/text/words.ts';
import { malformed } from './keyfile-text.ts';

/** Where a value stands. */
export type Place = {
  /** As in `interface "eth0"`; absent outside of interfaces. */
  readonly owner?: string;
  readonly path: string;
  /** What is not translated here, in the order of the text: nmstate itself may know it. */
  readonly foreign: ConfigError[];
};

/** Reads a value of one kind. @throws ConfigError `nmstate.malformed` */
export type Kind<T> = (value: unknown, place: Place) => T;

type Kinds = Readonly<Record<string, Kind<unknown>>>;
type Read<M extends Kinds, R extends keyof M> = {
  readonly [K in Exclude<keyof M, R>]?: ReturnType<M[K]>;
} & { readonly [K in R]: ReturnType<M[K]> };

/** A mapping with these members; those that are null are absent, all others are foreign. */
export const object =
  <M extends Kinds, R extends keyof M & string = never>(
    kinds: M,
    required: readonly R[] = [],
  ): Kind<Read<M, R>> =>
  (value, place) => {
    if (!isObject(value)) throw refuseValue(place, value, 'a mapping');
    const given = Object.entries(value).filter(([, member]) => (member ?? null) !== null);
    const missing = required.find((name) => given.every(([key]) => key !== name));
    if (missing !== undefined) throw refuse(place, `missing field '${missing}'`);
    const members = given.flatMap(([key, member]) => {
      const inside = { ...place, path: place.path === '' ? key : `${place.path}.${key}` };
      if (Object.hasOwn(kinds, key)) return [[key, kinds[key]?.(member, inside)]];
      addForeign(inside, 'is not translated here', suggestName(key, Object.keys(kinds)));
      return [];
    });
    return Object.fromEntries(members) as Read<M, R>;
  };

export const list =
  <T>(kind: Kind<T>): Kind<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) throw refuseValue(place, value, 'a list');
    return value.map((item, at) => kind(item, { ...place, path: `${place.path}[${at}]` }));
  };

export const text =
  (pattern: RegExp, expected: string): Kind<string> =>
  (value, place) => {
    if (typeof value === 'string' && pattern.test(value)) return value;
    throw refuseValue(place, value, expected);
  };

/** A word, or its number from 0, as the kernel counts the values of an option. */
export const choice =
  <T extends string>(words: readonly T[]): Kind<T> =>
  (value, place) => {
    const word = words.find((each, at) => value === each || value === at || value === String(at));
    if (word !== undefined) return word;
    throw refuseValue(place, value, listWords(words));
  };

/** One of these words; of the others nmstate knows the meaning. */
export const word =
  <T extends string>(words: readonly T[], foreign: readonly string[] = []): Kind<T | undefined> =>
  (value, place) => {
    const found = words.find((each) => each === value);
    if (found !== undefined) return found;
    if (!foreign.includes(value as string)) {
      throw refuseValue(place, value, listWords([...words, ...foreign]));
    }
    addForeign(place, `is ${quote(value)}, which is not translated here`);
    return undefined;
  };

const listWords = (words: readonly string[]): string =>
  words.length === 1 ? String(words[0]) : `one of ${words.join(', ')}`;

/** In every spelling that nmstate takes. */
export const flag: Kind<boolean> = (value, place) => {
  const written = describeValue(value).toLowerCase();
  if (/^(?:1|true|yes|on|y)$/.test(written)) return true;
  if (/^(?:0|false|no|off|n)$/.test(written)) return false;
  throw refuseValue(place, value, 'true or false');
};

/** Only as true and false, where nmstate takes nothing else. */
export const strictFlag: Kind<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw refuseValue(place, value, 'true or false');
};

/** A whole number, also as text; in hexadecimal digits where it has no sign. */
export const integer =
  (least: number, most: number, explain?: (found: string) => string): Kind<number> =>
  (value, place) => {
    const form = least < 0 ? /^[-+]?\d+$/ : /^(?:\+?\d+|0x[\da-fA-F]+)$/;
    const number = typeof value === 'string' && form.test(value) ? Number(value) : value;
    if (Number.isInteger(number) && Number(number) >= least && Number(number) <= most) {
      return Number(number);
    }
    if (explain) throw refuse(place, explain(describeValue(value)));
    throw refuseValue(place, value, `a whole number from ${least} to ${most}`);
  };

/** An IP address without a zone. */
export const ip: Kind<string> = (value, place) => {
  if (typeof value === 'string' && isIP(value) !== 0 && !value.includes('%')) return value;
  throw refuse(place, `invalid IP address syntax: ${quote(value)}`);
};

/** Not checked: nmstate does not use it for profiles either. */
export const unused: Kind<undefined> = () => undefined;

/** What nmstate itself has to translate. */
export const foreign: Kind<undefined> = (_, place) => {
  addForeign(place, 'is not translated here');
};

export const refuse = ({ owner, path }: Omit<Place, 'foreign'>, problem: string): ConfigError =>
  malformed([owner, path, problem].filter((part) => (part ?? '') !== '').join(': '));

export const refuseValue = (place: Omit<Place, 'foreign'>, value: unknown, expected: string) =>
  refuse(place, `${quote(value)} is not ${expected}`);

function addForeign({ owner, path, foreign }: Place, problem: string, near = ''): void {
  const what = owner === undefined ? path : `${owner}: ${path}`;
  foreign.push(unsupported(`${what} ${problem}`, near));
}

export const unsupported = (problem: string, near = ''): ConfigError =>
  new ConfigError('nmstate.unsupported', problem, {
    hint: [near, 'install nmstate, whose nmstatectl writes the profiles of every network']
      .filter((part) => part !== '')
      .join(' Or '),
  });

const MOST_QUOTED = 60;

function quote(value: unknown): string {
  if (typeof value !== 'string') return toPrintable(describeValue(value));
  const shown = value.length > MOST_QUOTED ? `${value.slice(0, MOST_QUOTED)}...` : value;
  return toPrintable(JSON.stringify(shown));
}
