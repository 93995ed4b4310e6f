import { isIP } from 'node:net';
import { ConfigError } from '../base/errors.ts';
import { isObject } from '../base/lists.ts';
import { suggestName, describeValue, toPrintable } from '../base/text/words.ts';
import type { Plain } from '../shape/shape.ts';

/*
 * This file owns values: keyfiles as text, readers of typed values, and readers of data without a
 * shape.
 */

/** A connection profile of NetworkManager: the name of its file, and its text. */
export type Keyfile = { readonly name: string; readonly content: string };

/** The network of one host, as in an NMStateConfig. */
export type HostNetwork = {
  /** nmstate, as YAML text. */
  readonly networkConfig: string;
  /** The file that holds only this configuration, for messages; absent if a resource names the interfaces. */
  readonly source?: string;
  /** Names in the configuration, each with the MAC address of its interface. */
  readonly interfaces: readonly { readonly name: string; readonly macAddress: string }[];
  /** Profiles that nmstate itself made of the configuration; if absent, they are made here. */
  readonly keyfiles?: readonly Keyfile[];
};

/** `key=value` pairs below `[name]`, in their order. */
export type Section = {
  readonly name: string;
  readonly entries: readonly (readonly [key: string, value: string])[];
};

/**
 * The text of a profile as the agent-based installer writes it: every profile connects automatically and
 * takes precedence over those that the system makes, and a blank line follows each section.
 */
export const formatKeyfile = (sections: readonly Section[]): string =>
  sections
    .map(({ name, entries }) => {
      const lines = name === 'connection' ? connectAlways(entries) : entries;
      return `[${name}]\n${lines.map(formatLine).join('')}\n`;
    })
    .join('');

/** Refuses control characters: a line break in a value would begin another setting. */
function formatLine([key, value]: readonly [string, string]): string {
  const line = `${key}=${value}`;
  if (!/\p{Cc}/u.test(line)) return `${line}\n`;
  throw malformed(`the value of ${JSON.stringify(key)} has control characters`);
}

/** Escapes a value of a keyfile (GLib, GKeyFile): a reader would drop a leading space. */
export const escapeText = (text: string): string =>
  text.replaceAll('\\', '\\\\').replace(/^ /, '\\s');

/** Brings a profile that nmstate made into the form of `formatKeyfile`. */
export function normaliseKeyfile({ name, content }: Keyfile): Keyfile {
  const sections: { name: string; entries: [string, string][] }[] = [];
  for (const line of content.split(/\r?\n/)) {
    const [, header] = /^\[(.*)\]\s*$/.exec(line) ?? [];
    if (header !== undefined) sections.push({ name: header, entries: [] });
    const at = line.indexOf('=');
    if (header !== undefined || at < 1 || /^\s*[#;]/.test(line)) continue;
    sections.at(-1)?.entries.push([line.slice(0, at).trim(), line.slice(at + 1).trim()]);
  }
  return { name, content: formatKeyfile(sections) };
}

function connectAlways(entries: Section['entries']): Section['entries'] {
  const others = entries.filter(([key]) => key !== 'autoconnect-priority');
  const connecting = others.map(([key, value]) =>
    key === 'autoconnect' ? ([key, 'true'] as const) : ([key, value] as const),
  );
  const hasIt = connecting.some(([key]) => key === 'autoconnect');
  return [
    ...connecting,
    ...(hasIt ? [] : [['autoconnect', 'true'] as const]),
    ['autoconnect-priority', '1'] as const,
  ];
}

export const malformed = (problem: string, cause?: unknown): ConfigError =>
  new ConfigError('nmstate.malformed', `network configuration has no valid profiles: ${problem}`, {
    cause,
    hint: 'correct the network configuration',
  });

/** Place of a value in a configuration. */
export type Place = {
  /** Owner, such as `interface "eth0"`; absent outside interfaces. */
  readonly owner?: string;
  readonly path: string;
  /** Members that are not translated here, in the order of the text; nmstate may know them. */
  readonly foreign: ConfigError[];
};

/** Reads a value of one kind, or throws ConfigError `nmstate.malformed`. */
export type Kind<T> = (value: unknown, place: Place) => T;

type Kinds = Readonly<Record<string, Kind<unknown>>>;
type Read<M extends Kinds, R extends keyof M> = {
  readonly [K in Exclude<keyof M, R>]?: ReturnType<M[K]>;
} & { readonly [K in R]: ReturnType<M[K]> };

/** Reads a mapping with these members; null counts as absent, and other members are foreign. */
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
      addForeign(inside, 'needs nmstate', suggestName(key, Object.keys(kinds)));
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

/** Reads a word, or its number from 0, as the kernel counts the values of an option. */
export const choice =
  <T extends string>(words: readonly T[]): Kind<T> =>
  (value, place) => {
    const word = words.find((each, at) => value === each || value === at || value === String(at));
    if (word !== undefined) return word;
    throw refuseValue(place, value, listWords(words));
  };

/** Reads one of these words; `foreign` ones need nmstate. */
export const word =
  <T extends string>(words: readonly T[], foreign: readonly string[] = []): Kind<T | undefined> =>
  (value, place) => {
    const found = words.find((each) => each === value);
    if (found !== undefined) return found;
    if (!foreign.includes(value as string)) {
      throw refuseValue(place, value, listWords([...words, ...foreign]));
    }
    addForeign(place, `is ${quote(value)}, which needs nmstate`);
    return undefined;
  };

const listWords = (words: readonly string[]): string =>
  words.length === 1 ? String(words[0]) : `one of ${words.join(', ')}`;

/** Reads a flag in every spelling that nmstate accepts. */
export const flag: Kind<boolean> = (value, place) => {
  const written = describeValue(value).toLowerCase();
  if (/^(?:1|true|yes|on|y)$/.test(written)) return true;
  if (/^(?:0|false|no|off|n)$/.test(written)) return false;
  throw refuseValue(place, value, 'true or false');
};

/** Reads a flag that nmstate accepts only as true or false. */
export const strictFlag: Kind<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw refuseValue(place, value, 'true or false');
};

/** Reads a whole number, also as a string; hexadecimal only if it cannot be negative. */
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

/** Reads an IP address without a zone. */
export const ip: Kind<string> = (value, place) => {
  if (typeof value === 'string' && isIP(value) !== 0 && !value.includes('%')) return value;
  throw refuse(place, `invalid IP address syntax: ${quote(value)}`);
};

/** Skips a value without a check, as nmstate does not use it for profiles. */
export const unused: Kind<undefined> = () => undefined;

/** Marks a value that only nmstate can translate. */
export const foreign: Kind<undefined> = (_, place) => {
  addForeign(place, 'needs nmstate');
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

// Readers of data that no shape describes. A value of another type reads as absent.

export type FreeMap = Readonly<Record<string, Plain>>;

export const isMapping = (value: Plain | undefined): value is FreeMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reads a mapping; empty if the value is not one. */
export const mapOf = (value: Plain | undefined): FreeMap => (isMapping(value) ? value : {});

/** Reads a list; empty if the value is not one. */
export const listOf = (value: Plain | undefined): readonly Plain[] =>
  Array.isArray(value) ? (value as readonly Plain[]) : [];

/** Reads a string; also a number or a flag, as written in JSON. */
export const textOf = (value: Plain | undefined): string | undefined =>
  value === undefined || value === null || typeof value === 'object' ? undefined : String(value);

/** Reads a flag, also in the other spellings that nmstate accepts. */
export function flagOf(value: Plain | undefined): boolean | undefined {
  const text = textOf(value)?.toLowerCase() ?? '';
  if (/^(?:1|true|yes|on|y)$/.test(text)) return true;
  return /^(?:0|false|no|off|n)$/.test(text) ? false : undefined;
}

/**
 * Reads a whole number, or a string with one: nmstate accepts decimal and, with 0x, hexadecimal
 * digits.
 */
export function numberOf(value: Plain | undefined): number | undefined {
  const number =
    typeof value === 'string' && /^(?:[-+]?\d+|0x[\da-fA-F]+)$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
}
