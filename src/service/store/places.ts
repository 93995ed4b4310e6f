import { statSync } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { digestFromHex } from '../../base/digest.ts';
import { readInputFile, unlessAbsent } from '../../base/disk/files.ts';
import { ConfigError, isErrno, SealiftError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import type { PartCache } from '../../base/store/part-cache.ts';
import { openIsoBase } from '../../media/serve/base.ts';
import { openFromPartStore } from '../../media/serve/parts.ts';
import type { VirtualBase } from '../../media/serve/virtual.ts';
import { isElsewhere, type SourceHost } from '../../outputs/read/open.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { ARCHITECTURES, toArchitecture } from '../openapi.ts';

/* Owns the places of the store: folders, lists of OS images, and addresses. */

/** An ISO that does not name its release: a live ISO of CoreOS. */
export type OsImage = {
  readonly version: string;
  readonly architecture: string;
  /** A path, or an address. */
  readonly place: string;
};

/** An ISO offered by a place of the store; another key means another ISO. */
export type Candidate = {
  readonly key: string;
  /** Its path or address. */
  readonly place: string;
  readonly open: () => Promise<VirtualBase>;
  /** True while the ISO is still at its place. */
  readonly isCurrent: () => boolean;
  /** Release of the ISO, if the ISO does not name it. */
  readonly named?: OsImage;
};

type Options = {
  readonly host: SourceHost;
  readonly cache: PartCache;
  /** Called for paths that cannot be read: the rest of the folder is served. */
  readonly skip: (path: string, error: unknown) => void;
};

const OS_IMAGES = 'os-images.json';

type File = { readonly path: string; readonly named?: OsImage };

/** Lists a folder's ISOs, its parts stored by `addToPartStore`, and its list of OS images; or an address. */
export async function listCandidates(place: string, options: Options): Promise<Candidate[]> {
  const openIso = (place: string) => (): Promise<VirtualBase> => openIsoBase(place, options);
  const isCurrent = (): boolean => true;
  if (isElsewhere(place)) return [{ key: place, place, open: openIso(place), isCurrent }];
  const folder = resolve(options.host.cwd, place);
  await access(folder);
  const listed = attempt(options, join(folder, OS_IMAGES), () => readOsImages(folder));
  const images = (listed ?? []).map((named) => ({ path: named.place, named }));
  const named = new Set(images.map(({ path }) => path));
  const files = (await listNames(folder))
    .filter((name) => name.endsWith('.iso'))
    .map((name): File => ({ path: join(folder, name) }))
    .filter(({ path }) => !named.has(path));
  const isos = [...files, ...images].flatMap((file): Candidate[] => {
    const { path, named } = file;
    const key = isElsewhere(path) ? path : attempt(options, path, () => keyOf(path));
    if (key === undefined) return [];
    const candidate = {
      key,
      place: path,
      open: openIso(path),
      isCurrent: isElsewhere(path) ? isCurrent : () => isKeyOf(path, key),
    };
    if (!named) return [candidate];
    const { version, architecture } = named;
    return [{ ...candidate, key: `${key} ${version} ${architecture}`, named }];
  });
  const layouts = (await listNames(join(folder, 'layouts'))).flatMap((name) => {
    const [, hex] = /^([0-9a-f]{64})\.json$/.exec(name) ?? [];
    if (hex === undefined) return [];
    const open = (): Promise<VirtualBase> => openFromPartStore(folder, digestFromHex(hex));
    const place = join(folder, 'layouts', name);
    return [{ key: join(folder, hex), place, open, isCurrent }];
  });
  return [...isos, ...layouts];
}

/** Explains an error of a place; throws it again if it is a fault of the program. */
export function explainPlace(error: unknown): string {
  if (error instanceof SealiftError) return error.message;
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') {
    return error.message;
  }
  throw error;
}

/**
 * Reads the folder's list of ISOs that do not name their release, in the form of assisted-image-service's OS_IMAGES. Paths are
 * relative to the folder.
 */
function readOsImages(folder: string): readonly OsImage[] {
  const path = join(folder, OS_IMAGES);
  const bytes = unlessAbsent(() => readInputFile(path, { domain: 'input' }));
  if (!bytes) return [];
  const read = readJsonText(bytes, TYPED_JSON);
  if (read.why !== undefined) throw malformed(path, `it ${read.why}`);
  const { value } = read;
  if (!Array.isArray(value)) throw malformed(path, 'it is not a list');
  return value.map((entry: unknown, index) => {
    const { openshift_version: version, cpu_architecture, url } = isObject(entry) ? entry : {};
    const architecture = toArchitecture(cpu_architecture);
    if (typeof version !== 'string' || typeof url !== 'string' || architecture === undefined) {
      throw malformed(path, `entry ${index} lacks openshift_version, cpu_architecture or url`);
    }
    return { version, architecture, place: isElsewhere(url) ? url : resolve(folder, url) };
  });
}

const malformed = (path: string, problem: string): ConfigError =>
  new ConfigError('service.os-images', `${path} cannot be used: ${problem}`, {
    expected: `[{"openshift_version", "cpu_architecture": "${ARCHITECTURES.join('|')}", "url"}]`,
    found: problem,
    hint: 'correct the file; it is read again when it changes',
  });

async function listNames(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

/**
 * Key of a file: a replacement with the same name has another key; undefined if it does not exist. It is
 * read synchronously, for each range of a download: another thread would take several times as long.
 */
function keyOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${path} ${found.ino} ${found.size} ${found.mtimeMs}`;
}

/** True if the path has this key; a loop of links has no key. */
function isKeyOf(path: string, key: string): boolean {
  try {
    return keyOf(path) === key;
  } catch {
    return false;
  }
}

function attempt<Value>({ skip }: Options, path: string, look: () => Value): Value | undefined {
  try {
    return look();
  } catch (error) {
    skip(path, error);
    return undefined;
  }
}
