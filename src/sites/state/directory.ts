import { linkSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  makeDirectory,
  readFileIfPresent,
  syncDirectory,
  unlessAbsent,
  writeFileAtomic,
} from '../../base/disk/files.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { openOwnDirectory, readOwnFile } from '../../base/disk/open-file.ts';
import { isErrno } from '../../base/errors.ts';
import { maxOf } from '../../base/lists.ts';
import {
  indexGenerations,
  sitePlacesOf,
  stateDirectoryOf,
  type SitePlaces,
} from './generations.ts';

/* Owns the state directory, and the move of the directory of earlier versions. */

export const readmeOf = (state: string): string => join(state, 'README');

/** True if the readme is from any version of the program, or absent. */
export const isOurReadme = async (state: string): Promise<boolean> =>
  (await readOwnFile(readmeOf(state)))
    ?.toString('utf8')
    .startsWith('This folder is the state of "sealift config-iso build"') ?? true;

const STATE_FILE =
  /^(?:[a-z0-9-]+\.(?:(?:[1-9]\d*|order|made)\.json|lost-\d+\.)|rotation\.marker|build\.lock|README\.)/;

/** True if a build uses such a name for a file, while it writes the file or when it is complete. */
export const isStateFile = (name: string): boolean => STATE_FILE.test(name);

const README = `This folder is the state of "sealift config-iso build": it has the private keys, ids and passwords
of every cluster whose configuration ISO is in the parent folder.

Keep it. A site's keys are its cluster's identity: without them, a new ISO does not fit the deployed
cluster, and its kubeconfig gives no access.
Keep it private. Never publish it, never commit it, and copy it only where the ISOs may go as well.

  NAME.1.json, NAME.2.json   generations of a site's identity; a file is never changed or removed
  NAME.order.json            the order in which they were used, if it differs from their numbers
  NAME.made.json             digests of the inputs that the files of the site were made from
  NAME.lost-1.*              files of an identity that no generation has, saved before they were replaced

"sealift config-iso generations NAME --out FOLDER" lists the generations of a site.
`;

/** Only its owner may read a directory of keys. */
const MODE = 0o700;

export async function makeStateDirectory(out: string): Promise<string> {
  const state = stateDirectoryOf(out);
  await makeDirectory(state, MODE);
  await (await openOwnDirectory(state, MODE)).close();
  const path = readmeOf(state);
  const found = await readOwnFile(path);
  if (found?.toString('utf8') !== README) await writeFileAtomic(path, README);
  await syncDirectory(out);
  return state;
}

const OLD_FILE = /^([a-z0-9-]+?)(\.before|\.made)?\.json$/;

/**
 * Moves the state that an earlier version left. A state appears in its new place before it leaves
 * its old one: if the process is killed at any moment, the next call does the rest. Only the
 * holder of the new state's lock may call it; the old lock is taken as well.
 *
 * @throws DiskError `output.locked`, `file.foreign`, `file.not-regular`, `file.not-directory`
 */
export async function adoptOldState(out: string, lease: LeaseOptions): Promise<void> {
  const old = oldDirectoryOf(out);
  const names = listOldSites(old);
  if (names.length === 0 && !isLockAlone(old)) return;
  // A user who can write there chooses the keys of clusters.
  await (await openOwnDirectory(old)).close();
  const files = await readdir(old);
  for (const file of files.filter((name) => OLD_FILE.test(name)))
    await readOwnFile(join(old, file));
  await withLease(join(old, 'build.lock'), lease, async () => {
    const numbersOf = indexGenerations(out);
    for (const name of names) {
      const places = sitePlacesOf(out, name);
      await addGenerations(join(old, name), places, numbersOf(name, places));
    }
    await syncDirectory(stateDirectoryOf(out));
    for (const name of names) await removeOld(join(old, name), sitePlacesOf(out, name));
    await moveMarker(old, stateDirectoryOf(out));
    await syncDirectory(stateDirectoryOf(out));
  });
  if ((await readdir(old)).length === 0) await rmdir(old);
}

/** Lists the files with generations of an earlier version that were not moved yet. */
export function listOldStates(out: string, name: string): readonly string[] {
  const old = join(oldDirectoryOf(out), name);
  return [`${old}.before.json`, `${old}.json`].filter(
    (path) => unlessAbsent(() => readFileSync(path)) !== undefined,
  );
}

/** Directory of the state in earlier versions; live ISOs have their work in a folder of the same name. */
const oldDirectoryOf = (out: string): string => join(out, '.sealift');

/** Only the lock is left if a move was killed at its end. */
function isLockAlone(old: string): boolean {
  const files = unlessAbsent(() => readdirSync(old)) ?? [];
  return files.length > 0 && files.every((file) => file.startsWith('build.lock'));
}

const listOldSites = (old: string): readonly string[] => [
  ...new Set(
    (unlessAbsent(() => readdirSync(old)) ?? []).flatMap((file) => {
      const [, name] = OLD_FILE.exec(file) ?? [];
      return name === undefined ? [] : [name];
    }),
  ),
];

/** The file that was put aside comes first: it is the older one. */
async function addGenerations(
  old: string,
  places: SitePlaces,
  numbers: readonly number[],
): Promise<void> {
  const known = numbers.map((number) => readFileSync(places.generation(number), 'utf8'));
  let next = maxOf(numbers, 0) + 1;
  for (const path of [`${old}.before.json`, `${old}.json`]) {
    const text = unlessAbsent(() => readFileSync(path, 'utf8'));
    if (text === undefined || known.includes(text)) continue;
    await moveNew(path, places.generation(next++));
  }
}

/** If there are no links, or the old directory is on another disk, the file is copied aside. */
async function moveNew(from: string, to: string): Promise<void> {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!isErrno(error, 'EXDEV', 'EPERM', 'EOPNOTSUPP', 'ENOTSUP', 'ENOSYS', 'EMLINK')) throw error;
    await writeFileAtomic(to, readFileSync(from));
  }
}

async function removeOld(old: string, { record }: SitePlaces): Promise<void> {
  if (!(await readFileIfPresent(record))) await moveIfPresent(`${old}.made.json`, record);
  for (const end of ['.before.json', '.json', '.made.json'])
    await rm(`${old}${end}`, { force: true });
}

const moveMarker = (old: string, state: string): Promise<void> =>
  moveIfPresent(join(old, 'rotation.marker'), join(state, 'rotation.marker'));

async function moveIfPresent(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
