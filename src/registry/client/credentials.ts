import { readInputFile, unlessAbsent } from '../../base/disk/files.ts';
import { ConfigError } from '../../base/errors.ts';
import { rememberEntry } from '../../base/text/redact.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { describeValue } from '../../base/text/words.ts';
import type { Reference } from '../reference.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { createHelperDesk, type Credential, type HelperDesk } from './credential-helper.ts';
import { decodeAuth } from './pull-secret.ts';

export type CredentialStore = {
  /** The credential for a repository, from the most specific entry. */
  find: (reference: Reference, signal: AbortSignal) => Promise<Credential | undefined>;
};

/** containers-auth.json(5); messages have `name`, and no text of the file. */
type AuthFile = {
  readonly name: string;
  readonly auths: ReadonlyMap<string, Entry>;
  readonly helpers: ReadonlyMap<string, string>;
  readonly defaultHelper: string | undefined;
};

/** Undefined and `empty` ask anonymously. An unusable entry is an error only if it is needed. */
type Entry =
  | Credential
  | { readonly kind: 'unusable'; readonly reason: string }
  | { readonly kind: 'empty'; readonly reason: string }
  | undefined;

/** An entry of a pull secret that cannot be used; does not hold its value. */
export type UnusableEntry = { readonly key: string; readonly reason: string };

/**
 * The entries of a pull secret. Messages refer to it by `name`.
 *
 * @throws ConfigError `credentials.malformed`, which never repeats any of the text; for a single
 * entry only when its registry is looked up
 */
export function credentialsFromPullSecret(json: string, name: string): CredentialStore {
  const file = parseAuthFile(json, name);
  return {
    find: (reference) =>
      new Promise((resolve) => {
        resolve(findEntry(file, keysOf(reference)));
      }),
  };
}

/**
 * The credential files of this user, in containers-auth.json(5)'s order: REGISTRY_AUTH_FILE alone
 * if set, else auth.json below XDG_RUNTIME_DIR, below ~/.config/containers,
 * ~/.docker/config.json and ~/.dockercfg. Files are read at the first look-up. Helpers
 * (credHelpers, credsStore) are run as `docker-credential-NAME get`.
 */
export function credentialsFromFiles(env: NodeJS.ProcessEnv): CredentialStore {
  let files: readonly AuthFile[] | undefined;
  const ask = createHelperDesk(env);
  return {
    async find(reference, signal) {
      files ??= readAuthFiles(env);
      const keys = keysOf(reference);
      for (const file of files) {
        const found = (await askHelpers(file, keys, { ask, signal })) ?? findEntry(file, keys);
        if (found) return found;
      }
      return undefined;
    },
  };
}

/** Entries that fail if their registry asks for a password; empty if the text is not JSON. */
export function listUnusableEntries(json: string): readonly UnusableEntry[] {
  try {
    const { auths } = parseAuthFile(json, 'pull secret');
    return [...auths].flatMap(([key, entry]) =>
      entry?.kind === 'unusable' || entry?.kind === 'empty' ? [{ key, reason: entry.reason }] : [],
    );
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

/** Keys of entries, most specific first. Files name docker.io by the address of its index. */
function keysOf({ registry, repository }: Pick<Reference, 'registry' | 'repository'>): string[] {
  const parts = repository.split('/');
  const paths = parts.map((_, index) =>
    [registry, ...parts.slice(0, parts.length - index)].join('/'),
  );
  const aliases = registry === 'docker.io' ? ['index.docker.io', 'registry-1.docker.io'] : [];
  return [...paths, registry, ...aliases];
}

function findEntry({ name, auths }: AuthFile, keys: readonly string[]): Credential | undefined {
  const key = keys.find((candidate) => auths.has(candidate));
  const entry = key === undefined ? undefined : auths.get(key);
  if (entry?.kind === 'unusable') throw malformed(`${name} entry ${key ?? ''}`, entry.reason);
  return entry?.kind === 'empty' ? undefined : entry;
}

async function askHelpers(
  file: AuthFile,
  keys: readonly string[],
  { ask, signal }: { readonly ask: HelperDesk; readonly signal: AbortSignal },
): Promise<Credential | undefined> {
  for (const key of keys) {
    const helper = file.helpers.get(key);
    if (helper !== undefined) return ask(helper, key, signal);
  }
  const host = keys.find((key) => !key.includes('/'));
  if (file.defaultHelper === undefined || host === undefined) return undefined;
  return ask(file.defaultHelper, host === 'docker.io' ? DOCKER_INDEX : host, signal);
}

const DOCKER_INDEX = 'https://index.docker.io/v1/';

const LARGEST_AUTH_FILE = 1 << 20;

const readAuthFile = (path: string): Buffer | undefined =>
  unlessAbsent(() => readInputFile(path, { domain: 'credentials', limit: LARGEST_AUTH_FILE }));

function readAuthFiles(env: NodeJS.ProcessEnv): readonly AuthFile[] {
  const explicit = env['REGISTRY_AUTH_FILE'];
  if (explicit) {
    const bytes = readAuthFile(explicit);
    if (bytes) return [parseAuthFile(decodeUserText(bytes, explicit), explicit)];
    throw new ConfigError('credentials.missing', `there is no file ${explicit}`, {
      hint: 'correct or unset REGISTRY_AUTH_FILE',
    });
  }
  const files: AuthFile[] = [];
  for (const name of listAuthFiles(env)) {
    const bytes = readAuthFile(name);
    if (bytes) files.push(parseAuthFile(decodeUserText(bytes, name), name));
  }
  return files;
}

/**
 * Lists the files that may have credentials of this environment; earlier files win, and not every
 * file exists.
 */
export function listAuthFiles(env: NodeJS.ProcessEnv): readonly string[] {
  if (env['REGISTRY_AUTH_FILE']) return [env['REGISTRY_AUTH_FILE']];
  const places = [
    [env['XDG_RUNTIME_DIR'], 'containers/auth.json'],
    [env['HOME'], '.config/containers/auth.json'],
    [env['HOME'], '.docker/config.json'],
    [env['HOME'], '.dockercfg'],
  ];
  return places.flatMap(([directory, path]) => (directory ? [`${directory}/${path ?? ''}`] : []));
}

function parseAuthFile(json: string, name: string): AuthFile {
  const document = parseObject(json, name);
  // .dockercfg is the same without the outer object.
  const auths = document['auths'] ?? (name.endsWith('.dockercfg') ? document : {});
  const helpers = document['credHelpers'] ?? {};
  if (!isObject(auths)) throw malformed(name, '"auths" is not an object');
  if (!isObject(helpers)) throw malformed(name, '"credHelpers" is not an object');
  const store = document['credsStore'];
  return {
    name,
    // Exact keys come after legacy forms of the same host, so they win.
    auths: new Map(
      Object.entries(auths)
        .map(([key, entry]) => [key, parseEntry(entry, `${name} entry ${key}`)] as const)
        .sort(([a], [b]) => Number(isLegacy(b)) - Number(isLegacy(a)))
        .map(([key, credential]) => [normaliseKey(key), credential]),
    ),
    helpers: new Map(Object.entries(helpers).map(([key, helper]) => [key, describeValue(helper)])),
    defaultHelper: typeof store === 'string' && store !== '' ? store : undefined,
  };
}

function parseObject(json: string, name: string): Record<string, unknown> {
  const read = readJsonText(json, TYPED_JSON);
  if (read.why !== undefined) throw malformed(name, `it ${read.why}`);
  if (isObject(read.value)) return read.value;
  throw malformed(name, 'it is not a JSON object');
}

const isLegacy = (key: string): boolean => key !== normaliseKey(key);

/** Keys of old Docker clients are URLs: `https://index.docker.io/v1/`. */
const normaliseKey = (key: string): string =>
  key
    .replace(/^https?:\/\//, '')
    .replace(/(?<!\/)\/+$/, '')
    .replace(/\/v[12]$/, '');

/** An empty entry means: ask anonymously. */
function parseEntry(entry: unknown, from: string): Entry {
  if (!isObject(entry)) return { kind: 'unusable', reason: 'it is not an object' };
  rememberEntry(entry);
  const { auth, identitytoken: token, username, password } = entry;
  if (typeof token === 'string' && token !== '') return { kind: 'identity', token, from };
  if (typeof auth === 'string' && auth !== '') return parseAuth(auth, from);
  if (typeof username === 'string' && typeof password === 'string' && username !== '') {
    return { kind: 'basic', username, password, from };
  }
  return typeof entry['credsStore'] === 'string' ? undefined : EMPTY;
}

const EMPTY: Entry = { kind: 'empty', reason: 'it has neither "auth" nor "credsStore"' };

function parseAuth(auth: string, from: string): Entry {
  const decoded = decodeAuth(auth);
  return typeof decoded === 'string'
    ? {
        kind: 'unusable',
        reason: '"auth" is not the base64 form of a user, a colon and a password',
      }
    : { kind: 'basic', ...decoded, from };
}

const malformed = (name: string, reason: string): ConfigError =>
  new ConfigError('credentials.malformed', `${name} cannot be used: ${reason}`, {
    hint: 'download the pull secret again, or log in again with "podman login"',
  });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
