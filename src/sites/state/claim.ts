import { lstatSync, statSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { hasFile, syncDirectory, unlessAbsent } from '../../base/disk/files.ts';
import { readRegularFile, writeNewFile, readOwnFile } from '../../base/disk/open-file.ts';
import { isErrno, SealiftError, ConfigError } from '../../base/errors.ts';
import { openConfigImage } from '../../media/config-image.ts';
import { readConfiguredCluster } from '../../openshift/agent/cluster.ts';
import { readConfigIso, readRetainedIso } from '../config-iso.ts';
import type { SiteIdentity, IdentityState, StateSite } from '../identity/identity.ts';
import { readRetained } from '../identity/retained/read.ts';
import type { SitePlaces } from './generations.ts';

/* Owns the decision which existing files may be replaced, and the recovery of an identity from them. */

type Kind = {
  readonly name: 'iso' | 'kubeconfig' | 'password' | 'installerState';
  readonly expected: string;
  readonly hasIdentity: (path: string) => Promise<boolean>;
  readonly isOf: (path: string, known: readonly SiteIdentity[]) => Promise<boolean>;
};

/** Ids that an earlier run wrote to its list of sites. */
export type ListedIds = { readonly clusterId: string; readonly infraId: string };

type SiteClaim = {
  readonly places: SitePlaces;
  readonly provided: {
    /** All identities that the state has or gets. */
    readonly known: readonly SiteIdentity[];
    /** True if a previous identity is in none of them. */
    readonly isLost: boolean;
  };
  /** Files and directories that are read; absolute paths. */
  readonly inputs: readonly string[];
  /** True if foreign files are replaced. */
  readonly force: boolean;
  /** True for a cluster that agents install. */
  readonly isForAgents: boolean;
};

/** The state of openshift-install, of which only tokens are ours: it restores no identity. */
const INSTALLER_STATE: Kind = {
  name: 'installerState',
  expected: 'the state of an earlier build of this site',
  hasIdentity: () => Promise.resolve(false),
  async isOf(path, known) {
    const text = await readSmall(path);
    return known.some(({ auth }) => auth !== undefined && text.includes(auth.publicKey));
  },
};

const KINDS: readonly Kind[] = [
  {
    name: 'iso',
    expected: 'an ISO of an earlier build of this site',
    hasIdentity: async (path) => (await readClusterId(path)) !== undefined,
    async isOf(path, known) {
      const found = await readClusterId(path);
      return known.some(({ clusterId }) => clusterId === found);
    },
  },
  {
    name: 'kubeconfig',
    expected: 'a kubeconfig of an earlier build of this site',
    hasIdentity: async (path) => (await readSmall(path)).includes('client-certificate-data'),
    async isOf(path, known) {
      const text = await readSmall(path);
      return known.some(({ adminClient: { certificate } }) =>
        text.includes(Buffer.from(certificate).toString('base64')),
      );
    },
  },
  {
    name: 'password',
    expected: 'a password of an earlier build of this site',
    hasIdentity: async (path) => /^(?:\w{5}-){3}\w{5}\s*$/.test(await readSmall(path)),
    async isOf(path, known) {
      const text = await readSmall(path);
      return known.some(({ password }) => password.text !== '' && password.text === text);
    },
  },
];

/**
 * Decides whether the files of a site may be written. The existing path may be absent, an empty regular file,
 * or a file whose identity is in the state; anything else only with `force`. An identity that is not in the
 * state is never overwritten: a file with one is first copied into the state.
 *
 * @returns names, in the state directory, of the copies
 */
export async function claimFiles(claim: SiteClaim): Promise<readonly string[]> {
  const { places, provided, inputs, force, isForAgents } = claim;
  if (isVacant(places)) return [];
  const remains: Kind[] = [];
  for (const kind of isForAgents ? [...KINDS, INSTALLER_STATE] : KINDS) {
    const path = places[kind.name];
    const isKnown = (): Promise<boolean> => kind.isOf(path, provided.known);
    const isReplaceable = async (): Promise<boolean> => provided.isLost || (await isKnown());
    const { expected } = kind;
    await claimOutput({ path, inputs }, { force, isReplaceable, expected });
    if (sizeOf(path) === 0 || (await isKnown())) continue;
    if (provided.isLost || (await kind.hasIdentity(path))) remains.push(kind);
  }
  return keepRemains(places, remains);
}

/** True if a file appears to be a part of the identity of some cluster. */
export async function hasIdentity(places: SitePlaces): Promise<boolean> {
  for (const kind of KINDS) {
    const path = places[kind.name];
    if (sizeOf(path) > 0 && (await kind.hasIdentity(path))) return true;
  }
  return false;
}

type MadeBefore = {
  readonly places: SitePlaces;
  readonly site: StateSite;
  readonly listed?: ListedIds | undefined;
};

/**
 * Takes the identity back from the ISO of a site and from its kubeconfig and password, if all
 * three exist and agree with each other and with the list's ids.
 */
export async function takeBack({ places, site, listed }: MadeBefore): Promise<IdentityState> {
  const { iso, kubeconfig, password } = places;
  const made = listMade(places);
  const missing = [iso, kubeconfig, password].filter((path) => !made.includes(path));
  if (missing.length > 0) throw lost(`${missing.join(', ')} does not exist`);
  // The maker of these files has the keys of the cluster.
  for (const path of made) await readOwnFile(path);
  const { whole, clusterName, baseDomain } = await readRetained({
    iso,
    kubeconfig,
    readIso: readRetainedIso,
  });
  if (!whole || clusterName === undefined || baseDomain === undefined) {
    throw lost(`${iso} and ${dirname(kubeconfig)} do not have the whole identity`);
  }
  refuseOther(whole, listed);
  const { clusterId, infraId } = site;
  return {
    identity: whole,
    site: {
      clusterName,
      baseDomain,
      ...(clusterId === whole.clusterId && { clusterId }),
      ...(infraId === whole.infraId && { infraId }),
    },
  };
}

/** Most sites are new; then their folder does not exist, and the folder of all was checked before. */
const isVacant = ({ iso, kubeconfig }: SitePlaces): boolean =>
  [iso, dirname(dirname(kubeconfig))].every(
    (path) => unlessAbsent(() => lstatSync(path)) === undefined,
  );

const sizeOf = (path: string): number => {
  const found = unlessAbsent(() => lstatSync(path));
  return found?.isFile() === true ? found.size : 0;
};

/** Id of the cluster that a configuration ISO or image belongs to; undefined for any other image. */
async function readClusterId(path: string): Promise<string | undefined> {
  return (await readReconfiguredId(path)) ?? (await readInfraEnvId(path));
}

async function readInfraEnvId(path: string): Promise<string | undefined> {
  try {
    const { archive } = await openConfigImage(path);
    return archive && readConfiguredCluster(archive).infraEnvId;
  } catch (error) {
    if (error instanceof SealiftError) return undefined;
    throw error;
  }
}

async function readReconfiguredId(path: string): Promise<string | undefined> {
  try {
    const { manifest } = await readConfigIso(path);
    const { cluster_id: id } = manifest as { readonly cluster_id?: unknown };
    return typeof id === 'string' ? id : undefined;
  } catch (error) {
    if (error instanceof SealiftError) return undefined;
    throw error;
  }
}

/** Bytes; a kubeconfig has about 20 KiB. */
const MAX_SMALL = 1 << 20;

async function readSmall(path: string): Promise<string> {
  if (sizeOf(path) > MAX_SMALL) return '';
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES', 'EPERM')) return '';
    throw error;
  }
}

async function keepRemains(
  { remains: placeOf, ...places }: SitePlaces,
  kinds: readonly Kind[],
): Promise<readonly string[]> {
  if (kinds.length === 0) return [];
  let number = 1;
  while (await isTaken(placeOf, number)) number++;
  const kept = kinds.flatMap(({ name }) =>
    name === 'installerState' ? [] : [{ from: places[name], to: placeOf(number, name) }],
  );
  for (const { from, to } of kept) await copyWhole(from, to);
  for (const { to } of kept) await syncDirectory(dirname(to));
  return kept.map(({ to }) => basename(to));
}

async function isTaken(placeOf: SitePlaces['remains'], number: number): Promise<boolean> {
  const names = ['iso', 'kubeconfig', 'password'] as const;
  const found = await Promise.all(names.map((name) => hasFile(placeOf(number, name))));
  return found.includes(true);
}

/** A copy: a second name would keep the mode, owner and other names of the first. Replaces nothing. */
async function copyWhole(from: string, to: string): Promise<void> {
  const bytes = await readRegularFile(from);
  if (!bytes) throw new Error(`${from} was removed after it was read`);
  try {
    await writeNewFile(to, bytes);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) await rm(to, { force: true });
    throw error;
  }
}

/** Lists the existing files of the three that have an identity. */
const listMade = ({ iso, kubeconfig, password }: SitePlaces): readonly string[] =>
  [iso, kubeconfig, password].filter((path) => unlessAbsent(() => statSync(path))?.isFile());

function refuseOther({ clusterId, infraId }: SiteIdentity, listed: ListedIds | undefined): void {
  if (!listed || (listed.clusterId === clusterId && listed.infraId === infraId)) return;
  throw new ConfigError('config-iso.identity-lost', 'sites.json has different ids than the ISO', {
    expected: `${listed.clusterId} ${listed.infraId}`,
    found: `${clusterId} ${infraId}`,
  });
}

const lost = (message: string): ConfigError => new ConfigError('config-iso.identity-lost', message);
