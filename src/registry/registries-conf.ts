import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { ConfigError } from '../base/errors.ts';
import { isErrno } from '../base/errno.ts';
import { readFileIfPresent } from '../base/files.ts';
import type { Candidate } from './client/manifests.ts';
import { formatReference, parseReference, type Reference } from './reference.ts';

/** When a mirror may be asked: for which references. */
type PullFromMirror = 'all' | 'digest-only' | 'tag-only';

type Mirror = {
  readonly location: string;
  readonly insecure: boolean;
  readonly pullFromMirror: PullFromMirror;
};

/** A `[[registry]]` of containers-registries.conf(5), version 2. */
type RegistryEntry = {
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

export type LoadOptions = {
  /** The file to read, instead of the system's. */
  readonly file?: string;
  /** Read this system's and this user's files; without it and `file`, nothing is configured. */
  readonly system?: boolean;
  readonly env?: NodeJS.ProcessEnv;
};

/**
 * The text of a registries.conf. Keys about short names are accepted and have no effect, as short
 * names are never taken.
 *
 * @throws ConfigError `registries-conf.malformed`; `name` says in it which file
 */
export function parseRegistriesConf(text: string, name: string): RegistriesConf {
  const refuse: Refuse = (reason) => {
    throw new ConfigError('registries-conf.malformed', `${name}: ${reason}`);
  };
  const document = readToml(text, name);
  if ('registries' in document) refuse('it has version 1 of the format; only version 2 is read');
  const entries = tablesOf(document, 'registry', refuse);
  return { registries: entries.map((entry) => parseEntry(entry, refuse)) };
}

/**
 * `file`, or with `system` what containers-registries.conf(5) names: CONTAINERS_REGISTRIES_CONF, or
 * the user's file, or /etc/containers/registries.conf and its drop-ins in order of their names,
 * where a later entry replaces an earlier one of the same prefix.
 */
export async function loadRegistriesConf(options: LoadOptions = {}): Promise<RegistriesConf> {
  const env = options.env ?? process.env;
  if (options.file !== undefined) return readConf(options.file);
  if (options.system !== true) return { registries: [] };
  const explicit = env['CONTAINERS_REGISTRIES_CONF'];
  if (explicit) return readConf(explicit);
  const home = join(env['HOME'] ?? '/', '.config/containers/registries.conf');
  const found = (await readConfIfPresent(home)) ?? (await readConfIfPresent(SYSTEM_FILE));
  const dropIns = [];
  for (const path of await listDropIns(`${SYSTEM_FILE}.d`)) dropIns.push(await readConf(path));
  return merge([...(found ? [found] : []), ...dropIns]);
}

const SYSTEM_FILE = '/etc/containers/registries.conf';

/**
 * Where to ask for a reference, in order: the mirrors of the longest prefix that matches, then its
 * location; the reference itself where nothing matches. Empty when all of it is blocked.
 */
export function resolveCandidates(conf: RegistriesConf, reference: Reference): Candidate[] {
  const match = findEntry(conf, reference);
  if (!match) return [{ reference, insecure: false }];
  const { entry, rest } = match;
  const rewrite = (location: string): Reference => parseReference(location + rest);
  const mirrors = entry.mirrors
    .filter(({ pullFromMirror }) => isMirrorFor(pullFromMirror, reference))
    .map(({ location, insecure }) => ({ reference: rewrite(location), insecure }));
  if (entry.blocked) return mirrors;
  const origin = entry.location === undefined ? reference : rewrite(entry.location);
  return [...mirrors, { reference: origin, insecure: entry.insecure }];
}

/** A reference with neither tag nor digest asks for blobs, whose names are digests. */
const isMirrorFor = (rule: PullFromMirror, { tag, digest }: Reference): boolean =>
  rule === 'all' || (rule === 'tag-only') === (tag !== undefined && digest === undefined);

type Match = { readonly entry: RegistryEntry; readonly end: number; readonly rest: string };

/** The longest match; of equal ones a name before a wildcard, then the longer wildcard. */
function findEntry({ registries }: RegistriesConf, reference: Reference): Match | undefined {
  const text = formatReference(reference);
  const matches = registries.flatMap((entry): Match[] => {
    const end = endOfMatch(entry.prefix, text);
    return end === undefined ? [] : [{ entry, end, rest: text.slice(end) }];
  });
  const isWildcard = ({ entry }: Match): boolean => entry.prefix.startsWith('*');
  return matches.sort(
    (a, b) =>
      b.end - a.end ||
      Number(isWildcard(a)) - Number(isWildcard(b)) ||
      b.entry.prefix.length - a.entry.prefix.length,
  )[0];
}

/** Where a prefix ends in a reference; a part of a name is no match. */
function endOfMatch(prefix: string, text: string): number | undefined {
  let end = prefix.length;
  if (prefix.startsWith('*.')) {
    const host = /^[^/:@]*/.exec(text)?.[0] ?? '';
    if (!host.endsWith(prefix.slice(1))) return undefined;
    end = host.length;
  } else if (!text.startsWith(prefix)) return undefined;
  return end === text.length || '/:@'.includes(text.charAt(end)) ? end : undefined;
}

type Refuse = (reason: string) => never;
type Table = Readonly<Record<string, unknown>>;

function readToml(text: string, name: string): Table {
  try {
    return parseToml(text);
  } catch (cause) {
    throw new ConfigError('registries-conf.malformed', `${name}: it is not TOML`, { cause });
  }
}

function parseEntry(entry: Table, refuse: Refuse): RegistryEntry {
  const location = locationOf(entry, 'location', refuse);
  const prefix = locationOf(entry, 'prefix', refuse) ?? location;
  if (prefix === undefined) return refuse('a [[registry]] has neither prefix nor location');
  if (location === undefined && !prefix.startsWith('*.')) {
    refuse(`[[registry]] ${prefix} has no location`);
  }
  if (prefix.includes('*') && !/^\*\.[^*/:]+$/.test(prefix)) {
    refuse(`prefix "${prefix}" may only have "*." in front of a domain`);
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

function parseMirror(mirror: Table, byDigestOnly: boolean, refuse: Refuse): Mirror {
  const location = locationOf(mirror, 'location', refuse);
  if (location === undefined) return refuse('a [[registry.mirror]] has no location');
  const rule = mirror['pull-from-mirror'];
  if (rule !== undefined && byDigestOnly) {
    refuse(`mirror ${location} has pull-from-mirror, and its registry mirror-by-digest-only`);
  }
  return {
    location,
    insecure: flagOf(mirror, 'insecure', refuse),
    pullFromMirror: byDigestOnly ? 'digest-only' : parseRule(rule ?? 'all', location, refuse),
  };
}

function parseRule(rule: unknown, location: string, refuse: Refuse): PullFromMirror {
  if (rule === 'all' || rule === 'digest-only' || rule === 'tag-only') return rule;
  return refuse(`pull-from-mirror of ${location} is none of all, digest-only and tag-only`);
}

function locationOf(table: Table, key: string, refuse: Refuse): string | undefined {
  const value = table[key];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') return refuse(`${key} is no string`);
  if (/^https?:/.test(value)) return refuse(`${key} "${value}" must have no scheme`);
  return value.replace(/\/+$/, '');
}

function flagOf(table: Table, key: string, refuse: Refuse): boolean {
  const value = table[key] ?? false;
  return typeof value === 'boolean' ? value : refuse(`${key} is neither true nor false`);
}

function tablesOf(table: Table, key: string, refuse: Refuse): readonly Table[] {
  const value = table[key] ?? [];
  const isTable = (entry: unknown): entry is Table => typeof entry === 'object' && entry !== null;
  if (Array.isArray(value) && value.every(isTable)) return value;
  return refuse(`${key} is no list of tables`);
}

async function readConf(path: string): Promise<RegistriesConf> {
  const conf = await readConfIfPresent(path);
  if (conf) return conf;
  throw new ConfigError('registries-conf.missing', `there is no file ${path}`);
}

async function readConfIfPresent(path: string): Promise<RegistriesConf | undefined> {
  const bytes = await readFileIfPresent(path);
  return bytes && parseRegistriesConf(bytes.toString(), path);
}

async function listDropIns(directory: string): Promise<string[]> {
  try {
    const names = await readdir(directory);
    return names
      .filter((name) => name.endsWith('.conf'))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

function merge(confs: readonly RegistriesConf[]): RegistriesConf {
  const byPrefix = new Map<string, RegistryEntry>();
  for (const entry of confs.flatMap(({ registries }) => registries)) {
    byPrefix.set(entry.prefix, entry);
  }
  return { registries: [...byPrefix.values()] };
}
