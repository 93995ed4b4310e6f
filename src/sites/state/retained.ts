import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hasFile } from '../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { readRetainedIso } from '../config-iso.ts';
import type { RetainedIdentity } from '../identity/identity.ts';
import { INSTALL_STATE_FILE } from '../identity/retained/documents.ts';
import { readRetained, type RetainedPlace } from '../identity/retained/read.ts';

/* Owns the look-up of retained identities by site. */

export type FindRetained = (name: string) => Promise<RetainedIdentity | undefined>;

type OpenedRetained = {
  readonly find: FindRetained;
  /** Folders with a retained identity that belong to no site. */
  readonly strangers: readonly string[];
};

/** Path that the user names: a file is an ISO; a directory belongs to one site or has a folder for each. */
export type GivenRetained = {
  readonly retainFrom?: string;
  readonly kubeconfig?: string;
  /** Sites that must not have a retained identity, because they get new ones. */
  readonly newIdentities?: ReadonlySet<string>;
};

type Place = Pick<RetainedPlace, 'directory' | 'iso'>;

const NOTHING: OpenedRetained = { find: () => Promise.resolve(undefined), strangers: [] };

/**
 * Opens the retained identities. An ISO, or a directory that openshift-install left or could have left,
 * belongs to the only site; any other directory has a folder, or an ISO, for each site that has a retained
 * identity.
 *
 * @throws ConfigError `retained.ambiguous`, `retained.empty`; the function `config-iso.new-identity`
 */
export async function openRetained(
  { retainFrom, kubeconfig, newIdentities }: GivenRetained,
  names: readonly string[],
): Promise<OpenedRetained> {
  if (retainFrom === undefined) return NOTHING;
  const { find, strangers } = await openFrom(retainFrom, kubeconfig, names);
  return {
    strangers,
    async find(name) {
      const retained = await find(name);
      if (retained && newIdentities?.has(name)) throw notNew(name);
      return retained;
    },
  };
}

async function openFrom(
  from: string,
  kubeconfig: string | undefined,
  names: readonly string[],
): Promise<OpenedRetained> {
  const only = await placeOf(from);
  if (only || kubeconfig !== undefined) {
    if (names.length > 1) throw ambiguous(only ? from : (kubeconfig ?? from), names.length);
    const place = only ?? { directory: from };
    return {
      find: () => read({ ...place, ...withoutUndefined({ kubeconfig }) }),
      strangers: [],
    };
  }
  const places = new Map<string, Place>();
  for (const name of names) {
    const place = await placeOfSite(from, name);
    if (place) places.set(name, place);
  }
  if (places.size === 0) throw nothing(from);
  const find: FindRetained = async (name) => {
    const place = places.get(name);
    return place && read(place);
  };
  return { find, strangers: await listStrangers(from, new Set(places.keys())) };
}

const notNew = (name: string): ConfigError =>
  new ConfigError('config-iso.new-identity', `${name} has an identity in --retain-from`, {
    hint: `leave out --new-identity ${name}, or remove the identity from --retain-from`,
  });

const ambiguous = (shownAs: string, count: number): ConfigError =>
  new ConfigError('retained.ambiguous', `${shownAs} belongs to one site, but there are several`, {
    found: `${count} sites`,
    hint: 'give a folder that has a folder for each site',
  });

/** Any of these means that a directory belongs to one site. */
const SIGNS = ['tls', 'cluster-configuration', INSTALL_STATE_FILE, 'imagebasedconfig.iso'];

const nothing = (from: string): ConfigError =>
  new ConfigError('retained.empty', `${from} has no identity of any site`, {
    expected: `${SIGNS.join(', ')} in it, or in folders named like the sites`,
    hint: 'check the path of --retain-from',
  });

/** The place of one site's retained identity, or undefined if the path is not for one site. */
async function placeOf(path: string): Promise<Place | undefined> {
  if (await isRegularFile(path)) return { iso: path };
  const found = await Promise.all(SIGNS.map((sign) => hasFile(join(path, sign))));
  if (!found.includes(true)) return undefined;
  const iso = join(path, 'imagebasedconfig.iso');
  return { directory: path, ...((await isRegularFile(iso)) && { iso }) };
}

/** A folder in any form, or an ISO with `auth/` in the folder next to it, as builds leave them. */
async function placeOfSite(from: string, name: string): Promise<Place | undefined> {
  const directory = join(from, name);
  const place = await placeOf(directory);
  if (place) return place.directory === undefined ? undefined : place;
  const iso = join(from, `${name}.iso`);
  return (await isRegularFile(iso)) ? { directory, iso } : undefined;
}

async function isRegularFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

/** Lists folders of no site: a misspelt name would let its site have new keys. */
async function listStrangers(dir: string, known: ReadonlySet<string>): Promise<string[]> {
  const strangers: string[] = [];
  for (const name of (await readdir(dir)).sort()) {
    const place = known.has(name) ? undefined : await placeOf(join(dir, name));
    if (place?.directory !== undefined) strangers.push(name);
  }
  return strangers;
}

const read = (place: Omit<RetainedPlace, 'readIso'>): Promise<RetainedIdentity> =>
  readRetained({ ...place, readIso: readRetainedIso });
