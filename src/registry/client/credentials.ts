import { readInputFile, unlessAbsent } from '../../base/disk/files.ts';
import { variableOf } from '../../base/environment.ts';
import { ConfigError, ToolError, type SealiftError } from '../../base/errors.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { describeValue } from '../../base/text/words.ts';
import type { Reference } from '../reference.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { createHelperDesk, hasLineBreak, type Credential } from './credential-helper.ts';
import { decodeAuth } from './pull-secret.ts';

export type CredentialStore = {
  /**
   * The credential for a repository, from the most specific entry.
   *
   * @param refused the credential that it gave before, and that the registry refused
   */
  find: (
    reference: Reference,
    signal: AbortSignal,
    refused?: Credential,
  ) => Promise<Credential | undefined>;
};

/** True for the failure of a helper: the registry may give what is wanted to everybody. */
export const isHelperFailure = (error: unknown): error is SealiftError =>
  error instanceof ToolError ||
  (error instanceof ConfigError && error.code === 'credentials.helper');

/** containers-auth.json(5); messages have `name`, and no text of the file. */
type AuthFile = {
  readonly name: string;
  readonly auths: ReadonlyMap<string, Entry>;
  /** By registry: the name of its helper, and the registry as the helper knows it. */
  readonly helpers: ReadonlyMap<string, readonly [helper: string, host: string]>;
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
export function credentialsFromPullSecret(
  json: string,
  { name, redaction }: { readonly name: string; readonly redaction: Redaction },
): CredentialStore {
  const file = parseAuthFile(json, name, redaction.addEntry);
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
export function credentialsFromFiles(
  env: NodeJS.ProcessEnv,
  redaction: Redaction,
): CredentialStore {
  let files: readonly AuthFile[] | undefined;
  const ask = createHelperDesk(env, redaction);
  return {
    async find(reference, signal, refused) {
      files ??= readAuthFiles(env, redaction);
      const keys = keysOf(reference);
      let failure: SealiftError | undefined;
      for (const file of files) {
        try {
          const asking = (helper: string, host: string) => ask({ helper, host, refused, signal });
          const found = await askHelpers(file, keys, asking);
          if (found) return found;
        } catch (error) {
          signal.throwIfAborted();
          if (!isHelperFailure(error)) throw error;
          failure ??= error;
        }
        const entry = findEntry(file, keys);
        if (entry) return entry;
      }
      if (failure) throw failure;
      return undefined;
    },
  };
}

/** Entries that fail if their registry asks for a password; empty if the text is not JSON. */
export function listUnusableEntries(json: string): readonly UnusableEntry[] {
  try {
    const { auths } = parseAuthFile(json, 'pull secret', () => undefined);
    return [...auths].flatMap(([key, entry]) =>
      listFlaws(entry).map((reason) => ({ key, reason })),
    );
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

const listFlaws = (entry: Entry): readonly string[] => {
  if (entry?.kind === 'unusable' || entry?.kind === 'empty') return [entry.reason];
  return hasLineBreak(entry) ? ['its password ends in a line break'] : [];
};

/** Keys of entries, most specific first. */
function keysOf({ registry, repository }: Pick<Reference, 'registry' | 'repository'>): string[] {
  const parts = repository.split('/');
  const paths = parts.map((_, index) =>
    [registry, ...parts.slice(0, parts.length - index)].join('/'),
  );
  return [...paths, registry, ...(isDockerHub(registry) ? DOCKER_HUB : [])];
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
  ask: (helper: string, host: string) => Promise<Credential | undefined>,
): Promise<Credential | undefined> {
  for (const key of keys) {
    const helper = file.helpers.get(key);
    if (helper !== undefined) return ask(...helper);
  }
  const host = keys.find((key) => !key.includes('/'));
  if (file.defaultHelper === undefined || host === undefined) return undefined;
  return ask(file.defaultHelper, isDockerHub(host) ? DOCKER_INDEX : host);
}

const DOCKER_INDEX = 'https://index.docker.io/v1/';

/** Docker's own registry by all its names. */
const DOCKER_HUB: readonly string[] = ['docker.io', 'index.docker.io', 'registry-1.docker.io'];

const isDockerHub = (host: string): boolean => DOCKER_HUB.includes(host);

const LARGEST_AUTH_FILE = 1 << 20;

const readAuthFile = (path: string): Buffer | undefined =>
  unlessAbsent(() => readInputFile(path, { domain: 'credentials', limit: LARGEST_AUTH_FILE }));

function readAuthFiles(env: NodeJS.ProcessEnv, redaction: Redaction): readonly AuthFile[] {
  const parse = (bytes: Buffer, name: string): AuthFile =>
    parseAuthFile(decodeUserText(bytes, name), name, redaction.addEntry);
  const explicit = variableOf(env, 'REGISTRY_AUTH_FILE');
  if (explicit !== undefined) {
    const bytes = readAuthFile(explicit);
    if (bytes) return [parse(bytes, explicit)];
    throw new ConfigError('credentials.missing', `there is no file ${explicit}`, {
      hint: 'correct or unset REGISTRY_AUTH_FILE',
    });
  }
  const files: AuthFile[] = [];
  for (const name of listAuthFiles(env)) {
    const bytes = readAuthFile(name);
    if (bytes) files.push(parse(bytes, name));
  }
  return files;
}

/** Lists the files that may have credentials of this environment; earlier files win, and some are missing. */
export function listAuthFiles(env: NodeJS.ProcessEnv): readonly string[] {
  const explicit = variableOf(env, 'REGISTRY_AUTH_FILE');
  if (explicit !== undefined) return [explicit];
  const places = [
    [env['XDG_RUNTIME_DIR'], 'containers/auth.json'],
    [env['HOME'], '.config/containers/auth.json'],
    [env['HOME'], '.docker/config.json'],
    [env['HOME'], '.dockercfg'],
  ];
  return places.flatMap(([directory, path]) => (directory ? [`${directory}/${path ?? ''}`] : []));
}

/** @param mask called with each entry before it is judged */
function parseAuthFile(json: string, name: string, mask: Redaction['addEntry']): AuthFile {
  const document = parseObject(json, name);
  // .dockercfg is the same without the outer object.
  const isOld = name.endsWith('.dockercfg');
  const auths = document['auths'] ?? (isOld ? document : {});
  const helpers = document['credHelpers'] ?? {};
  if (!isObject(auths)) throw malformed(name, '"auths" is not an object');
  if (!isObject(helpers)) throw malformed(name, '"credHelpers" is not an object');
  const store = document['credsStore'];
  const registryOf = (key: string): string => normaliseKey(key, isOld);
  return {
    name,
    // Exact keys come after other forms of the same host, so they win.
    auths: new Map(
      Object.entries(auths)
        .map(([key, entry]) => [key, parseEntry(entry, `${name} entry ${key}`, mask)] as const)
        .sort(([a], [b]) => Number(b !== registryOf(b)) - Number(a !== registryOf(a)))
        .map(([key, credential]) => [registryOf(key), credential]),
    ),
    helpers: new Map(
      Object.entries(helpers).map(([key, helper]) => [
        registryOf(key),
        [describeValue(helper), key],
      ]),
    ),
    defaultHelper: typeof store === 'string' && store !== '' ? store : undefined,
  };
}

function parseObject(json: string, name: string): Record<string, unknown> {
  const read = readJsonText(json, TYPED_JSON);
  if (read.why !== undefined) throw malformed(name, `it ${read.why}`);
  if (isObject(read.value)) return read.value;
  throw malformed(name, 'it is not a JSON object');
}

/**
 * The registry or repository that a key means, as for podman and docker: an address
 * (`https://index.docker.io/v1/`), and each key of .dockercfg, means its host with its port.
 */
function normaliseKey(key: string, isOld: boolean): string {
  const bare = key.replace(/^https?:\/\//, '');
  if (isOld || bare !== key) return bare.replace(/\/.*$/s, '');
  return bare.replace(/(?<!\/)\/+$/, '').replace(/\/v[12]$/, '');
}

/** An empty entry means: ask anonymously. */
function parseEntry(entry: unknown, from: string, mask: Redaction['addEntry']): Entry {
  if (!isObject(entry)) return { kind: 'unusable', reason: 'it is not an object' };
  mask(entry);
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
