import { type IpAddress, parseAddress } from '../base/ip-address.ts';
import { isObject } from '../base/lists.ts';
import { describeValue, suggestName, toPrintable } from '../base/text/words.ts';
import { isFloat, type WrittenOf } from './document.ts';

/*
 * This file owns the language in which the members of NMState are described: a kind reads one value,
 * or reports why it cannot.
 */

/** A fact about one value of a document. */
export type Finding = {
  /** Path of the value from the root of the document: `interfaces[0].mtu`; empty for the document. */
  readonly path: string;
  /** Name of the interface to which the value belongs. */
  readonly owner?: string | undefined;
  readonly problem: string;
  readonly hint?: string | undefined;
  /** True if the value may be secret, because its member is unknown. */
  readonly hidesValue?: boolean;
};

/** Findings while a document is read. */
export type NetworkFindings = {
  readonly problems: Finding[];
  /** Members that nmstate knows, and that are not translated here. */
  readonly untranslated: Finding[];
};

/** Place of a value in a document. */
export type Place = {
  readonly path: string;
  readonly owner?: string;
  readonly found: NetworkFindings;
  readonly writtenOf: WrittenOf;
};

/** Reads a value; null after a problem was reported, and for a value without a use. */
export type Kind<T> = (value: unknown, place: Place) => T | null;

type Kinds = Readonly<Record<string, Kind<unknown>>>;
type Value<K> = K extends Kind<infer T> ? NonNullable<T> : never;
export type Members<M extends Kinds, R extends keyof M = never> = {
  readonly [K in Exclude<keyof M, R>]?: Value<M[K]> | undefined;
} & { readonly [K in R]: Value<M[K]> };

type Rules<R> = {
  readonly required?: readonly R[];
  /** Other names of members. */
  readonly aliases?: Readonly<Record<string, string>>;
};

/** Reports a problem; there is no value. */
export function reportAt(
  { path, owner, found }: Place,
  problem: string,
  more: Pick<Finding, 'hint' | 'hidesValue'> = {},
): null {
  found.problems.push({ path, owner, problem, ...more });
  return null;
}

export const join = (path: string, name: string): string =>
  path === '' ? name : `${path}.${name}`;

/** Kinds of which nmstate refuses null and floats: its numbers and flags have readers of their own. */
const NUMBERS = new WeakSet<Kind<unknown>>();

function ofNumbers<T>(read: Kind<T>): Kind<T> {
  const kind: Kind<T> = (value, place) => {
    const written = place.writtenOf(place.path);
    if (!Number.isInteger(value) || written === undefined || !isFloat(written)) {
      return read(value, place);
    }
    return reportAt(place, `${written} is not written as a whole number`);
  };
  NUMBERS.add(kind);
  return kind;
}

/** Reads a mapping with these members; null counts as absent. Unknown members are problems. */
export const object =
  <M extends Kinds, R extends keyof M & string = never>(
    kinds: M,
    { required = [], aliases = {} }: Rules<R> = {},
  ): Kind<Members<M, R>> =>
  (value, place) => {
    if (!isObject(value)) return reportAt(place, expected(value, 'an object'));
    const read = readMembersOf(value, place, { kinds, aliases });
    for (const name of required) {
      if (!read.has(name)) reportAt(place, `missing field '${name}'`);
    }
    if (required.some((name) => read.get(name) === undefined)) return null;
    return Object.fromEntries(read) as Members<M, R>;
  };

type Known = {
  readonly kinds: Kinds;
  readonly aliases: Readonly<Record<string, string>>;
};

function readMembersOf(
  value: Readonly<Record<string, unknown>>,
  place: Place,
  { kinds, aliases }: Known,
): ReadonlyMap<string, unknown> {
  const read = new Map<string, unknown>();
  for (const [key, member] of Object.entries(value)) {
    const inside = { ...place, path: join(place.path, key) };
    const name = Object.hasOwn(aliases, key) ? String(aliases[key]) : key;
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (!kind) reportUnknown(key, inside, [...Object.keys(kinds), ...Object.keys(aliases)]);
    else if (read.has(name)) reportAt(inside, `duplicate field "${name}"`);
    else if (member !== null || NUMBERS.has(kind))
      read.set(name, kind(member, inside) ?? undefined);
  }
  return read;
}

/** Members of other tools, with what to write instead. */
const FOREIGN_WORDS: Readonly<Record<string, string>> = {
  ...spread('gateway gateway4 gateway6 via', 'write it as the next-hop-address of a route'),
  ...spread('dns nameserver nameservers', 'write it below dns-resolver.config.server'),
  ...spread('to dst', 'write it as the destination of a route'),
  ...spread('dev', 'write it as the next-hop-interface of a route'),
  ...spread('netmask', 'write prefix-length instead'),
  ...spread('addresses', 'write address instead'),
  ...spread('from', 'write ip-from instead'),
  ...spread('slaves', 'write port instead'),
  ...spread('bridge vlan link-aggregation vrf', 'set the type of the interface that has it'),
};

function spread(words: string, hint: string): Readonly<Record<string, string>> {
  return Object.fromEntries(words.split(' ').map((word) => [word, hint]));
}

function reportUnknown(name: string, place: Place, known: readonly string[]): void {
  const spelling = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, '');
  const same = known.find((word) => spelling(word) === spelling(name));
  const hint =
    (same !== undefined && `did you mean "${same}"?`) ||
    (Object.hasOwn(FOREIGN_WORDS, name) ? FOREIGN_WORDS[name] : suggestName(name, known));
  reportAt(place, `unknown field "${name}"`, { hint, hidesValue: true });
}

export const list =
  <T>(kind: Kind<T>): Kind<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) return reportAt(place, expected(value, 'a list'));
    return value.flatMap((item: unknown, at) => {
      const read = kind(item, { ...place, path: `${place.path}[${at}]` });
      return read === null ? [] : [read];
    });
  };

export const text =
  (pattern: RegExp, what: string): Kind<string> =>
  (value, place) =>
    typeof value === 'string' && pattern.test(value)
      ? value
      : reportAt(place, explainText(value, what));

/** Reads a text that needs no quotes even if it is like a number: nmstate keeps only interfaces as JSON. */
export const unquoted =
  (kind: Kind<string>): Kind<string> =>
  (value, place) =>
    kind(
      typeof value === 'number' || typeof value === 'boolean'
        ? (place.writtenOf(place.path) ?? String(value))
        : value,
      place,
    );

const explainText = (value: unknown, what: string): string =>
  typeof value === 'object' || typeof value === 'string'
    ? expected(value, what)
    : `${expected(value, what)}: put it in quotes`;

/** Reads a word, or its number from 0, as the kernel counts the values of an option. */
export const choice = <T extends string>(
  words: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): Kind<T> =>
  ofNumbers((value, place) => {
    const written = typeof value === 'number' ? String(value) : value;
    return (
      words.find((each, at) => written === each || written === String(at)) ??
      find(aliases, written) ??
      reportAt(place, expected(value, listWords(words)))
    );
  });

const find = <T>(table: Readonly<Record<string, T>>, key: unknown): T | undefined =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined;

/** Reads one of these words; the untranslated ones need nmstate. */
export const word =
  <T extends string>(
    words: readonly T[],
    untranslated: readonly string[] = [],
    aliases: Readonly<Record<string, T>> = {},
  ): Kind<T> =>
  (value, place) => {
    const found = words.find((each) => each === value) ?? find(aliases, value);
    if (found !== undefined) return found;
    if (!untranslated.includes(value as string)) {
      return reportAt(place, expected(value, listWords([...words, ...untranslated])));
    }
    return needNmstate(place, `is ${quote(value)}, which needs nmstate`);
  };

const listWords = (words: readonly string[]): string =>
  words.length === 1 ? String(words[0]) : `one of ${words.join(', ')}`;

/** Reads a flag in every spelling that nmstate accepts. */
export const flag: Kind<boolean> = ofNumbers((value, place) => {
  const written = describeValue(value).toLowerCase();
  if (/^(?:1|true|yes|on|y)$/.test(written)) return true;
  if (/^(?:0|false|no|off|n)$/.test(written)) return false;
  return reportAt(place, expected(value, 'true or false'));
});

/** Reads a flag that nmstate accepts only as true or false. */
export const strictFlag: Kind<boolean> = (value, place) =>
  typeof value === 'boolean' ? value : reportAt(place, expected(value, 'true or false'));

/** Reads a whole number, also as a string; hexadecimal only if it cannot be negative. */
export const integer = (least: number, most: number): Kind<number> =>
  ofNumbers((value, place) => {
    const form = least < 0 ? /^[-+]?\d+$/ : /^(?:\+?\d+|0x[\da-fA-F]+)$/;
    const number = typeof value === 'string' && form.test(value) ? Number(value) : value;
    if (Number.isInteger(number) && Number(number) >= least && Number(number) <= most) {
      return Number(number);
    }
    return reportAt(place, expected(value, `a whole number from ${least} to ${most}`));
  });

/** Reads an IP address without a zone. */
export const ip: Kind<IpAddress> = (value, place) =>
  (typeof value === 'string' ? parseAddress(value) : undefined) ??
  reportAt(place, expected(value, 'an IP address'));

/** A value that has no effect on profiles; it is not checked. */
export const unused: Kind<never> = () => null;

/** A value that only nmstate can translate; it is not checked. */
export const foreign: Kind<never> = (_, place) => needNmstate(place, 'needs nmstate');

/** Members with these names that only nmstate can translate. */
export const foreignMembers = (names: string): Readonly<Record<string, Kind<never>>> =>
  Object.fromEntries(names.split(' ').map((each) => [each, foreign]));

/** The value if it can be translated, else what it needs. */
export const untranslated =
  <T>(kind: Kind<T>): Kind<T> =>
  (value, place) => {
    needNmstate(place, 'needs nmstate');
    return kind(value, place);
  };

/** Reports a member that only nmstate can translate; there is no value. */
export function needNmstate({ path, owner, found }: Place, problem: string): null {
  found.untranslated.push({ path, owner, problem });
  return null;
}

export const expected = (value: unknown, what: string): string => `${quote(value)} is not ${what}`;

const MOST_QUOTED = 60;

export function quote(value: unknown): string {
  if (typeof value !== 'string') return toPrintable(describeValue(value));
  const shown = value.length > MOST_QUOTED ? `${value.slice(0, MOST_QUOTED)}...` : value;
  return toPrintable(JSON.stringify(shown));
}

/**
 * A finding with the file, the line if it is known, the interface and the member to which it belongs:
 * `net.yaml:4: interface "eth0": mtu: ...`.
 */
export function formatFinding({ path, owner, problem }: Finding, place = ''): string {
  const member = owner === undefined ? path : path.replace(/^interfaces\[\d+\]\.?/, '');
  const who = owner === undefined ? '' : `interface "${toPrintable(owner)}"`;
  return [place, who, toPrintable(member), problem].filter((part) => part !== '').join(': ');
}
