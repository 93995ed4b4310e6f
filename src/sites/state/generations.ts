import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { unlessAbsent, writeFileAtomic } from '../../base/disk/files.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { formatCommand } from '../../base/text/shell.ts';
import {
  parseState,
  type IdentityState,
  fitsSite,
  isSameSite,
  type StateSite,
  type RetainedIdentity,
  type SiteIdentity,
} from '../identity/identity.ts';

/* Owns the places of a site's files, and the choice among the generations of its identity. */

/** Places of the files that are made for one site. Absolute paths. */
export type SitePlaces = {
  readonly iso: string;
  readonly kubeconfig: string;
  readonly password: string;
  /** Read by `openshift-install agent wait-for`; only of clusters that agents install. */
  readonly installerState: string;
  /** Keys, ids and password: one file for each generation, from 1, never written again. */
  readonly generation: (number: number) => string;
  /** Numbers of generations in the order of their use, if it differs from their own order. */
  readonly order: string;
  /** Remains of an identity that no generation has; numbered from 1, never written again. */
  readonly remains: (number: number, file: 'iso' | 'kubeconfig' | 'password') => string;
  /** Inputs from which the files above were made: written last. */
  readonly record: string;
};

/** `dropIn`: the folder belongs to one site and uses the names of openshift-install. */
export type OutputFolder = {
  readonly out: string;
  readonly dropIn: boolean;
  /** True if that site is a cluster that agents install. */
  readonly isForAgents?: boolean;
};

/** One identity that a site has or had. */
export type Generation = {
  /** Number from 1, in the order in which they were made. */
  readonly number: number;
  /** Undefined if the file is not complete as it was written. */
  readonly state: IdentityState | undefined;
};

/** Numbers of the generations of each site, the one in use last. */
export type GenerationIndex = (name: string, places: SitePlaces) => readonly number[];

export type GenerationWish = {
  readonly name: string;
  readonly places: Pick<SitePlaces, 'iso'>;
  readonly site: StateSite;
  readonly retained?: RetainedIdentity | undefined;
  /** Number of the generation that the user asks for. */
  readonly use?: number | undefined;
  readonly rotation?: string | undefined;
};

export type WholeGeneration = Generation & { readonly state: IdentityState };

/** One replacement of all keys, which may take several runs of the program. */
export type Rotation = { readonly id: string; readonly isContinued: boolean };

const INSTALLER_STATE = '.openshift_install_state.json';

/** Directory of files for later builds; it is not a DNS label, so no site has this name. */
export const STATE_DIRECTORY = '_state';

export const stateDirectoryOf = (directory: string): string => join(directory, STATE_DIRECTORY);

/** Names of sites are DNS labels: none of these files can belong to another site. */
export const sitePlacesOf = (directory: string, name: string): SitePlaces => ({
  iso: join(directory, `${name}.iso`),
  kubeconfig: join(directory, name, 'auth', 'kubeconfig'),
  password: join(directory, name, 'auth', 'kubeadmin-password'),
  installerState: join(directory, name, INSTALLER_STATE),
  ...statePlacesOf(directory, name),
});

/** Name of the only site of a directory: the directory itself may have any name. */
export const DROP_IN_NAME = 'site';

export const placesFor = (folder: OutputFolder, name: string): SitePlaces =>
  folder.dropIn ? dropInPlaces(folder) : sitePlacesOf(folder.out, name);

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

export const formatOrder = (numbers: readonly number[]): string => `${JSON.stringify(numbers)}\n`;

/** Generations in the order of their use, the one in use last. */
export const readGenerations = (
  places: SitePlaces,
  numbers: readonly number[],
): readonly Generation[] => numbers.map((number) => ({ number, state: readState(places, number) }));

/**
 * Chooses the generation to use again, or undefined for a new one: one with the same names and given ids,
 * else one that fits them; of several, the last. `generations` are in the order of their use.
 */
export function chooseGeneration(
  generations: readonly Generation[],
  wish: GenerationWish,
): WholeGeneration | undefined {
  if (wish.use !== undefined) return findWanted(generations, wish.use, wish);
  const usable = generations.filter(
    (one): one is WholeGeneration =>
      one.state !== undefined &&
      fitsSite(one.state, wish.site) &&
      holds(one.state.identity, wish.retained),
  );
  if (wish.rotation !== undefined) {
    const last = usable.at(-1);
    return last?.state.rotation === wish.rotation ? last : undefined;
  }
  return usable.findLast(({ state }) => isSameSite(state.site, wish.site)) ?? usable.at(-1);
}

/** True if the identity has all of the whole one, which may lack a key or a password. */
export function holdsWhole(identity: SiteIdentity, whole: SiteIdentity): boolean {
  const names = Object.keys(whole.signers) as (keyof SiteIdentity['signers'])[];
  return (
    names.every((name) => {
      const { certificate, privateKey } = whole.signers[name];
      const found = identity.signers[name];
      return found.certificate === certificate && isUnsetOr(privateKey, found.privateKey);
    }) &&
    identity.adminClient.certificate === whole.adminClient.certificate &&
    (whole.password.text === '' || identity.password.text === whole.password.text)
  );
}

/** Begins a rotation, or continues one that was killed or left sites out: no key is replaced twice. */
export async function beginRotation(out: string): Promise<Rotation> {
  const found = (await readOwnFile(markerOf(out)))?.toString('utf8').trim();
  if (found !== undefined && /^[0-9a-f]{16}$/.test(found)) return { id: found, isContinued: true };
  const id = randomBytes(8).toString('hex');
  await writeFileAtomic(markerOf(out), `${id}\n`);
  return { id, isContinued: false };
}

/** Ends a rotation: call it when every site has its new keys, or when no site wants them any more. */
export const endRotation = (out: string): Promise<void> => rm(markerOf(out), { force: true });

/** The names of openshift-install, for one site in its own directory. */
const dropInPlaces = ({ out: directory, isForAgents = false }: OutputFolder): SitePlaces => ({
  iso: join(directory, isForAgents ? 'agentconfig.noarch.iso' : 'imagebasedconfig.iso'),
  kubeconfig: join(directory, 'auth', 'kubeconfig'),
  password: join(directory, 'auth', 'kubeadmin-password'),
  installerState: join(directory, INSTALLER_STATE),
  ...statePlacesOf(directory, DROP_IN_NAME),
});

function statePlacesOf(
  directory: string,
  name: string,
): Pick<SitePlaces, 'generation' | 'order' | 'remains' | 'record'> {
  const inState = (file: string): string => join(stateDirectoryOf(directory), file);
  return {
    generation: (number) => inState(`${name}.${number}.json`),
    remains: (number, file) => inState(`${name}.lost-${number}.${file}`),
    order: inState(`${name}.order.json`),
    record: inState(`${name}.made.json`),
  };
}

/** Generations that an order does not name were made after it was written. */
function sortByUse(numbers: readonly number[], order: readonly number[]): readonly number[] {
  const named = order.filter((number) => numbers.includes(number));
  return [...named, ...numbers.filter((number) => !named.includes(number))];
}

function readOrder({ order: path }: SitePlaces): readonly number[] {
  const text = unlessAbsent(() => readFileSync(path, 'utf8')) ?? '';
  return [...text.matchAll(/\d+/g)].map(([number]) => Number(number));
}

function readState(places: SitePlaces, number: number): IdentityState | undefined {
  const text = unlessAbsent(() => readFileSync(places.generation(number), 'utf8'));
  return text === undefined ? undefined : parseState(text);
}

/** The command that lists the generations of a site. */
export const commandOf = ({ iso }: Pick<SitePlaces, 'iso'>, name: string): string => {
  const folder = { path: dirname(iso) };
  return basename(iso) === `${name}.iso`
    ? formatCommand('config-iso', 'generations', name, '--out', folder)
    : formatCommand('config-iso', 'generations', folder, '--drop-in');
};

function findWanted(
  generations: readonly Generation[],
  number: number,
  { name, places, site, retained }: GenerationWish,
): WholeGeneration {
  const found = generations.find((one) => one.number === number);
  const hint = `list them: ${commandOf(places, name)}`;
  if (!found) {
    throw new ConfigError('config-iso.generation', `${name} has no generation ${number}`, {
      expected: generations.map((one) => one.number).join(', ') || 'none: it has no generation',
      found: String(number),
      hint,
    });
  }
  const { state } = found;
  if (!state) {
    const message = `generation ${number} of ${name} is damaged`;
    throw new ConfigError('config-iso.generation', message, { hint });
  }
  if (!fitsSite(state, site)) {
    const message = `generation ${number} of ${name} belongs to another cluster than the inputs`;
    throw new ConfigError('config-iso.generation', message, {
      expected: describe(site),
      found: describe({ ...state.site, ...idsOf(state.identity) }),
      hint: 'give the inputs of that generation, or choose another',
    });
  }
  if (holds(state.identity, retained)) return { number, state };
  const message = `generation ${number} of ${name} differs from the identity in --retain-from`;
  throw new ConfigError('config-iso.generation', message, {
    hint: 'leave out one of the two options',
  });
}

const idsOf = ({ clusterId, infraId }: SiteIdentity): Pick<StateSite, 'clusterId' | 'infraId'> => ({
  clusterId,
  infraId,
});

const describe = ({ clusterName, baseDomain, clusterId, infraId }: StateSite): string =>
  [
    `${clusterName}.${baseDomain}`,
    ...(clusterId === undefined ? [] : [`cluster id ${clusterId}`]),
    ...(infraId === undefined ? [] : [`infra id ${infraId}`]),
  ].join(', ');

/** True if the identity already has everything that an earlier producer left. */
function holds(identity: SiteIdentity, retained: RetainedIdentity | undefined): boolean {
  if (!retained) return true;
  const { signers, signerKeys, clusterId, infraId, password, ingressCommonName } = retained;
  return (
    (retained.whole === undefined || holdsWhole(identity, retained.whole)) &&
    Object.entries(signers).every(
      ([name, { certificate }]) =>
        identity.signers[name as keyof typeof signers].certificate === certificate,
    ) &&
    Object.entries(signerKeys).every(
      ([name, key]) => identity.signers[name as keyof typeof signers].privateKey === key,
    ) &&
    isUnsetOr(clusterId, identity.clusterId) &&
    isUnsetOr(infraId, identity.infraId) &&
    isUnsetOr(password?.bcrypt, identity.password.bcrypt) &&
    isUnsetOr(ingressCommonName, identity.signers.ingress.commonName)
  );
}

const isUnsetOr = (wanted: string | undefined, found: string | undefined): boolean =>
  wanted === undefined || wanted === found;

/** Names of sites have no dot, so no site's state has this name. */
const markerOf = (out: string): string => join(stateDirectoryOf(out), 'rotation.marker');
