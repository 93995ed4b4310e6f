import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hasFile, readInputFile } from '../../base/disk/files.ts';
import { variableOf } from '../../base/environment.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { mergeRegistries, parseRegistriesConf, type RegistriesConf } from './mirrors.ts';

/** Places in which the containers tools look for registries.conf. */
export type RegistriesConfPlaces = {
  readonly env: NodeJS.ProcessEnv;
  /** A relative path in the environment starts here. */
  readonly cwd: string;
  /** `/etc/containers`; absent: the system's files are not read. */
  readonly containersDir?: string;
};

export type LoadedRegistriesConf = RegistriesConf & {
  /** Absolute paths of what was read, in the order of reading: a later file replaces entries. */
  readonly files: readonly string[];
};

/**
 * Reads `file` alone, or without it the files that containers/image 5 reads (pkg/sysregistriesv2, newConfigWrapper;
 * containers-registries.conf(5), containers-registries.conf.d(5)):
 *
 *     main file                                          drop-ins (*.conf, by name)
 *     $CONTAINERS_REGISTRIES_CONF, $REGISTRIES_CONFIG_PATH   the system's, then the user's
 *     else the user's registries.conf, if there is one       the user's
 *     else the system's registries.conf, if there is one     the system's, then the user's
 *
 * The user's are in `$XDG_CONFIG_HOME/containers` (container-libs of 2026), or in
 * `$HOME/.config/containers` if the former has no such file. A file that is named must exist.
 *
 * @throws ConfigError `registries-conf.missing`, `registries-conf.malformed`
 */
export async function loadRegistriesConf(
  file: string | undefined,
  places: RegistriesConfPlaces,
): Promise<LoadedRegistriesConf> {
  const { main, dropIns } = file === undefined ? await findFiles(places) : only(file);
  let loaded: LoadedRegistriesConf = { registries: [], files: [] };
  for (const path of [...(main === undefined ? [] : [main]), ...dropIns]) {
    const text = readText(path);
    const { registries } = parseRegistriesConf(text, path, { v2Only: path !== main });
    loaded = {
      ...mergeRegistries(loaded.registries, registries),
      files: [...loaded.files, path],
    };
  }
  return loaded;
}

type Found = { readonly main: string | undefined; readonly dropIns: readonly string[] };

const only = (main: string): Found => ({ main, dropIns: [] });

async function findFiles({ env, cwd, containersDir }: RegistriesConfPlaces): Promise<Found> {
  const userDir = await findUserDir(env);
  const usersDropIns = await listDropIns(userDir);
  const named = variableOf(env, 'CONTAINERS_REGISTRIES_CONF', 'REGISTRIES_CONFIG_PATH');
  const users = await findMain(userDir);
  if (!named && users !== undefined) return { main: users, dropIns: usersDropIns };
  return {
    main: named ? nameMain(cwd, named) : await findMain(containersDir),
    dropIns: [...(await listDropIns(containersDir)), ...usersDropIns],
  };
}

/** /dev/null in the environment means that there is no main file. */
const nameMain = (cwd: string, named: string): string | undefined =>
  named === '/dev/null' ? undefined : resolve(cwd, named);

const FILE = 'registries.conf';

async function findUserDir(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { XDG_CONFIG_HOME: config, HOME: home } = env;
  const xdg = config ? join(config, 'containers') : undefined;
  const hasAny = (await findMain(xdg)) !== undefined || (await listDropIns(xdg)).length > 0;
  if (hasAny) return xdg;
  return home ? join(home, '.config/containers') : undefined;
}

async function findMain(directory: string | undefined): Promise<string | undefined> {
  if (directory === undefined) return undefined;
  const path = join(directory, FILE);
  return (await hasFile(path).catch(refuseUnreadable(path))) ? path : undefined;
}

/** Subdirectories and files with other names are ignored. */
async function listDropIns(parent: string | undefined): Promise<readonly string[]> {
  if (parent === undefined) return [];
  const directory = join(parent, `${FILE}.d`);
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
    return names
      .filter((name) => name.endsWith('.conf'))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    return refuseUnreadable(directory)(error);
  }
}

function readText(path: string): string {
  try {
    return decodeUserText(readInputFile(path, { domain: 'registries-conf' }), path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ENOTDIR')) return refuseUnreadable(path)(error);
    throw new ConfigError('registries-conf.missing', `there is no file ${path}`);
  }
}

const refuseUnreadable =
  (path: string) =>
  (cause: unknown): never => {
    if (!isErrno(cause, 'EACCES', 'EPERM', 'EISDIR')) throw cause;
    throw new ConfigError('registries-conf.unreadable', `${path} cannot be read`, { cause });
  };
