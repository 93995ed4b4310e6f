import { parse as parseToml } from 'smol-toml';
import { ConfigError } from '../../base/errors.ts';
import { maskLogin } from '../../base/text/redact.ts';
import { joinProblem } from '../../base/text/words.ts';
import {
  explainRegistryName,
  formatReference,
  isRegistryHost,
  parseReference,
  type Reference,
} from '../reference.ts';
import type { MirrorCandidate } from './repository.ts';

/** Kinds of references for which a mirror may be asked. */
type PullFromMirror = 'all' | 'digest-only' | 'tag-only';

type Mirror = {
  readonly location: string;
  readonly insecure: boolean;
  readonly pullFromMirror: PullFromMirror;
};

/** A `[[registry]]` of containers-registries.conf(5), version 2. */
export type RegistryEntry = {
  /** `host[:port][/path]`, or `*.domain` for every host below a domain. */
  readonly prefix: string;
  /** Replaces the prefix; absent below a wildcard that rewrites nothing. */
  readonly location: string | undefined;
  readonly insecure: boolean;
  /** The location itself is never asked; its mirrors are. */
  readonly blocked: boolean;
  readonly mirrors: readonly Mirror[];
};

export type RegistriesConf = { readonly registries: readonly RegistryEntry[] };

/**
 * Parses a registries.conf. Keys about short names are accepted and have no effect, as short names are never
 * accepted. Version 1 (`[registries.block]`, `[registries.insecure]`) is converted as containers/image
 * converts it, or refused if `v2Only`. The first of several entries with the same prefix counts.
 *
 * @throws ConfigError `registries-conf.malformed`, which names the file by `name`
 */
export function parseRegistriesConf(
  text: string,
  name: string,
  { v2Only = false }: { readonly v2Only?: boolean } = {},
): RegistriesConf {
  const refuse: Refuse = (reason, written) => {
    const line = written === undefined ? undefined : findLine(text, written);
    const place = line === undefined ? name : `${name}:${line}`;
    throw new ConfigError('registries-conf.malformed', `${place}: ${reason}`);
  };
  const document = readToml(text, name);
  const isV1 = 'registries' in document;
  if (isV1 && v2Only) refuse('it has version 1 of the format, and drop-ins need version 2');
  if (isV1 && V2_KEYS.some((key) => key in document)) {
    refuse('it mixes version 1 ([registries.*]) and version 2 ([[registry]]) of the format');
  }
  const entries = isV1
    ? convertV1(document, refuse)
    : tablesOf(document, 'registry', refuse).map((entry) => parseEntry(entry, refuse));
  refuseConflicts(entries, refuse);
  return mergeRegistries([], entries.toReversed());
}

const V2_KEYS = ['registry', 'unqualified-search-registries', 'credential-helpers', 'aliases'];

/** The later list replaces entries of the earlier one that have the same prefix; sorted by prefix. */
export function mergeRegistries(
  earlier: readonly RegistryEntry[],
  later: readonly RegistryEntry[],
): RegistriesConf {
  const byPrefix = new Map([...earlier, ...later].map((entry) => [entry.prefix, entry]));
  const prefixes = [...byPrefix.keys()].sort();
  return { registries: prefixes.flatMap((prefix) => byPrefix.get(prefix) ?? []) };
}

/**
 * Lists the places to ask for a reference, in order: the mirrors of the longest prefix that matches, then its
 * location; the reference itself if no prefix matches. Empty when all of it is blocked.
 */
export function resolveCandidates(conf: RegistriesConf, reference: Reference): MirrorCandidate[] {
  const match = findEntry(conf, reference);
  if (!match) return [{ reference, insecure: false }];
  const { entry, rest } = match;
  const rewrite = (location: string): Reference => parseReference(location + rest);
  const mirrors = entry.mirrors
    .filter(({ pullFromMirror }) => isMirrorFor(pullFromMirror, reference))
    .map(({ location, insecure }) => ({ reference: rewrite(location), insecure }))
    .filter((mirror) => findEntry(conf, mirror.reference)?.entry.blocked !== true);
  if (entry.blocked) return mirrors;
  const origin = entry.location === undefined ? reference : rewrite(entry.location);
  return [...mirrors, { reference: origin, insecure: entry.insecure }];
}

/** A reference with neither tag nor digest asks for blobs, whose names are digests. */
const isMirrorFor = (rule: PullFromMirror, { tag, digest }: Reference): boolean =>
  rule === 'all' || (rule === 'tag-only') === (tag !== undefined && digest === undefined);

type Match = { readonly entry: RegistryEntry; readonly rest: string };

const indexes = new WeakMap<RegistriesConf, ReadonlyMap<string, RegistryEntry>>();

/** Entries by prefix. Every image is looked for in every entry, and there may be thousands of both. */
function indexOf(conf: RegistriesConf): ReadonlyMap<string, RegistryEntry> {
  const known =
    indexes.get(conf) ?? new Map(conf.registries.map((entry) => [entry.prefix, entry] as const));
  indexes.set(conf, known);
  return known;
}

/** The longest match; among equals, a name wins over a wildcard, and a longer wildcard over a shorter. */
function findEntry(conf: RegistriesConf, reference: Reference): Match | undefined {
  const text = formatReference(reference);
  const byPrefix = indexOf(conf);
  const host = /^[^/:@]*/.exec(text)?.[0] ?? '';
  for (let end = text.length; end > 0; end--) {
    if (!isEndOfName(text, end)) continue;
    const names = [text.slice(0, end), ...(end === host.length ? listWildcards(host) : [])];
    const name = names.find((one) => byPrefix.has(one));
    const entry = name === undefined ? undefined : byPrefix.get(name);
    if (entry) return { entry, rest: text.slice(end) };
  }
  return undefined;
}

/** False within a name, a part of which is not a match. */
const isEndOfName = (text: string, end: number): boolean =>
  end === text.length || '/:@'.includes(text.charAt(end));

/** `*.b.c` and `*.c` of `a.b.c`. */
const listWildcards = (host: string): readonly string[] =>
  [...host.matchAll(/\./g)].map(({ index }) => `*${host.slice(index)}`);

/** @param written the text that is wrong, for its line */
type Refuse = (reason: string, written?: string) => never;

/** The line of the first string with this text: the parser of TOML tells no lines. */
function findLine(text: string, written: string): number | undefined {
  const at = Math.max(text.indexOf(`"${written}"`), text.indexOf(`'${written}'`));
  return at < 0 ? undefined : text.slice(0, at).split('\n').length;
}
type Table = Readonly<Record<string, unknown>>;

function readToml(text: string, name: string): Table {
  try {
    return parseToml(text);
  } catch (cause) {
    throw new ConfigError('registries-conf.malformed', `${name}: it is not TOML`, { cause });
  }
}

/** Converts version 1 as containers/image does: hosts to block and to trust; search lists have no effect. */
function convertV1(document: Table, refuse: Refuse): RegistryEntry[] {
  const lists = tableOf(document['registries'], 'registries', refuse);
  const read = (name: string): readonly string[] => {
    const { registries = [] } = tableOf(lists[name] ?? {}, `registries.${name}`, refuse);
    const isList = Array.isArray(registries) && registries.every((one) => typeof one === 'string');
    return isList ? registries : refuse(`registries.${name}.registries is not a list of strings`);
  };
  const [blocked, insecure] = [new Set(read('block')), new Set(read('insecure'))];
  return [...new Set([...blocked, ...insecure])].map((name) =>
    parseEntry(
      { location: name, blocked: blocked.has(name), insecure: insecure.has(name) },
      refuse,
    ),
  );
}

/** Entries that contradict each other about a location would depend on their order. */
function refuseConflicts(entries: readonly RegistryEntry[], refuse: Refuse): void {
  const known = new Map<string, RegistryEntry>();
  for (const entry of entries) {
    const location = entry.location ?? entry.prefix;
    const first = known.get(location) ?? entry;
    known.set(location, first);
    for (const key of ['insecure', 'blocked'] as const) {
      if (entry[key] === first[key]) continue;
      refuse(`${location} is defined twice, once with "${key} = true" and once without`);
    }
  }
}

function parseEntry(entry: Table, refuse: Refuse): RegistryEntry {
  const location = locationOf(entry, 'location', refuse);
  const prefix = locationOf(entry, 'prefix', refuse) ?? location;
  if (prefix === undefined) return refuse('a [[registry]] has neither prefix nor location');
  if (location === undefined && !prefix.startsWith('*.')) {
    refuse(`[[registry]] ${prefix} has no location`);
  }
  if (prefix.includes('*') && !isWildcard(prefix)) {
    refuse(`prefix "${prefix}" may only have "*." in front of a domain`, prefix);
  }
  if (entry['pull-from-mirror'] !== undefined) {
    refuse(
      `[[registry]] ${prefix} has pull-from-mirror, which is valid only in [[registry.mirror]]`,
    );
  }
  const byDigestOnly = flagOf(entry, 'mirror-by-digest-only', refuse);
  return {
    prefix,
    location,
    insecure: flagOf(entry, 'insecure', refuse),
    blocked: flagOf(entry, 'blocked', refuse),
    mirrors: tablesOf(entry, 'mirror', refuse).map((mirror) =>
      parseMirror(mirror, byDigestOnly, refuse),
    ),
  };
}

const isWildcard = (prefix: string): boolean =>
  prefix.startsWith('*.') && !prefix.includes(':') && isRegistryHost(prefix.slice(2));

function parseMirror(mirror: Table, byDigestOnly: boolean, refuse: Refuse): Mirror {
  const location = locationOf(mirror, 'location', refuse);
  if (location === undefined) return refuse('a [[registry.mirror]] has no location');
  const rule = mirror['pull-from-mirror'];
  if (rule !== undefined && byDigestOnly) {
    refuse(`mirror ${location} has pull-from-mirror, but its registry has mirror-by-digest-only`);
  }
  return {
    location,
    insecure: flagOf(mirror, 'insecure', refuse),
    pullFromMirror: byDigestOnly ? 'digest-only' : parseRule(rule ?? 'all', location, refuse),
  };
}

function parseRule(rule: unknown, location: string, refuse: Refuse): PullFromMirror {
  if (rule === 'all' || rule === 'digest-only' || rule === 'tag-only') return rule;
  return refuse(`pull-from-mirror of ${location} is not one of all, digest-only and tag-only`);
}

function locationOf(table: Table, key: string, refuse: Refuse): string | undefined {
  const value = table[key];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') return refuse(`${key} is not a string`);
  const name = value.replace(/(?<!\/)\/+$/, '');
  if (key === 'prefix' && name.includes('*')) return name;
  const why = explainRegistryName(name, { mayHaveTag: true });
  return why === undefined ? name : refuse(joinProblem(`${key} "${maskLogin(value)}"`, why), value);
}

function flagOf(table: Table, key: string, refuse: Refuse): boolean {
  const value = table[key] ?? false;
  return typeof value === 'boolean' ? value : refuse(`${key} is neither true nor false`);
}

function tableOf(value: unknown, key: string, refuse: Refuse): Table {
  const isTable = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isTable ? (value as Table) : refuse(`${key} is not a table`);
}

function tablesOf(table: Table, key: string, refuse: Refuse): readonly Table[] {
  const value = table[key] ?? [];
  const isTable = (entry: unknown): entry is Table => typeof entry === 'object' && entry !== null;
  if (Array.isArray(value) && value.every(isTable)) return value;
  return refuse(`${key} is not a list of tables`);
}
