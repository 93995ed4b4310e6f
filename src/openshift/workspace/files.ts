import { closeSync, readdirSync, readSync, realpathSync, statSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readInputFile, unlessAbsent } from '../../base/disk/files.ts';
import { openToReadSync } from '../../base/disk/open-file.ts';
import { ConfigError, isErrno } from '../../base/errors.ts';
import {
  type ArchivedFile,
  type ArchivedFiles,
  archiveTree,
  enclosedTree,
  indexArchives,
  type RegistryTree,
} from '../../registry/index.ts';

/** The files of an oc-mirror workspace: a directory, or the archives that mirrorToDisk wrote. */
export type WorkspaceFiles = {
  /** Real path of the directory. */
  readonly path: string;
  /** Real path of the directory that has `docker/registry/v2`, or the archives, in it. */
  readonly root: string;
  readonly tree: RegistryTree;
  /** Names in a directory, sorted; empty if there is no such directory. */
  readonly list: (path: string) => readonly string[];
  readonly read: (
    path: string,
    limit?: number,
  ) => { readonly bytes: Buffer; readonly name: string };
  /** Set for archives: the time of a file, seconds since 1970. */
  readonly modified?: (path: string) => number | undefined;
};

/** Largest file that is read of an archive; the files of a directory have the limit of all inputs. */
const LARGEST = 64 << 20;

const IDMS = 'working-dir/cluster-resources/idms-oc-mirror.yaml';

/**
 * Opens a directory that has `data` and `working-dir` in it, or one with archives of mirrorToDisk,
 * `mirror_NNNNNN.tar`, in it or in its folders. Archives are read in place.
 */
export function openWorkspaceFiles(directory: string): WorkspaceFiles {
  const path = locate(directory, directory);
  const runs = isDirectory(join(directory, 'data')) ? [] : listRuns(directory, path);
  return runs.length > 0 ? openArchives(path, runs) : openDirectory(directory, path);
}

function openDirectory(directory: string, path: string): WorkspaceFiles {
  checkShape(directory);
  const root = locate(join(directory, 'data'), path);
  return {
    path,
    root,
    tree: enclosedTree(root),
    list(name) {
      const folder = join(directory, name);
      if (!isDirectory(folder)) return [];
      locate(folder, path);
      return ifReadable(folder, (folder) => readdirSync(folder)).sort();
    },
    read(name, limit) {
      const file = join(directory, name);
      locate(file, path);
      const rules = { domain: 'workspace', ...(limit !== undefined && { limit }) };
      return { name: file, bytes: ifReadable(file, (file) => readInputFile(file, rules)) };
    },
  };
}

const ARCHIVE = /^mirror_\d{6}\.tar$/;

/** The archives of each run, which has a folder of its own. */
function listRuns(directory: string, path: string): readonly (readonly string[])[] {
  if (!isDirectory(directory)) return [];
  const names = ifReadable(directory, (folder) => readdirSync(folder)).sort();
  const folders = names.map((name) => join(directory, name)).filter(isDirectory);
  return [directory, ...folders]
    .map((folder) =>
      ifReadable(folder, (folder) => readdirSync(folder))
        .filter((name) => ARCHIVE.test(name))
        .sort()
        .map((name) => locate(join(folder, name), path)),
    )
    .filter((archives) => archives.length > 0);
}

/** The files of a later run take the place of those of an earlier one. */
function openArchives(path: string, runs: readonly (readonly string[])[]): WorkspaceFiles {
  const indexed = runs.map((archives) => {
    requireAll(archives);
    const files = ifReadable(path, () => indexArchives(archives));
    if (timeOf(files) !== '') return files;
    throw missing(dirname(archives[0] ?? path), 'isc_*', 'copy the last archive of the run');
  });
  const ordered = indexed.toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1));
  const files: ArchivedFiles = {
    find: (name) => ordered.map(({ find }) => find(name)).find((found) => found !== undefined),
    list(name) {
      const lists = ordered.flatMap(({ list }) => list(name) ?? []);
      return lists.length === 0 ? undefined : [...new Set(lists)];
    },
  };
  return {
    path,
    root: path,
    tree: archiveTree(files),
    list: (name) => [...(files.list(name) ?? [])].sort(),
    read(name, limit = LARGEST) {
      const file = files.find(name);
      if (!file) throw missing(path, name, 'give all archives of the run');
      if (file.size <= limit)
        return { name: `${name} of ${file.archive}`, bytes: readMember(file) };
      throw new ConfigError(
        'workspace.too-large',
        `${name} of ${file.archive} has ${file.size} bytes`,
        { expected: `at most ${limit}`, found: String(file.size) },
      );
    },
    modified: (name) => files.find(name)?.modified,
  };
}

/** The archives of a run are numbered from 1. */
function requireAll(archives: readonly string[]): void {
  for (const [index, archive] of archives.entries()) {
    const wanted = `mirror_${String(index + 1).padStart(6, '0')}.tar`;
    if (basename(archive) !== wanted)
      throw missing(dirname(archive), wanted, 'copy all archives of the run');
  }
}

/** Time is in the name of a run's configuration: `isc_2026-11-25T03:53:01Z`. */
const timeOf = ({ list }: ArchivedFiles): string =>
  (list('') ?? []).filter((name) => name.startsWith('isc_')).reduce((a, b) => (a > b ? a : b), '');

function readMember({ archive, offset, size }: ArchivedFile): Buffer {
  const file = openToReadSync(archive);
  try {
    const bytes = Buffer.alloc(size);
    for (let done = 0; done < size;) {
      const count = readSync(file, bytes, done, size - done, offset + done);
      if (count === 0) break;
      done += count;
    }
    return bytes;
  } finally {
    closeSync(file);
  }
}

/** Checks that a workspace has its required parts; missing parts are named. */
function checkShape(directory: string): void {
  if (isDirectory(join(directory, 'docker')) && !isDirectory(join(directory, 'data'))) {
    throw missing(
      directory,
      'data/docker',
      `name the directory above it: ${directory} is the data directory itself`,
    );
  }
  for (const part of ['data', 'data/docker', 'data/docker/registry/v2']) {
    if (isDirectory(join(directory, part))) continue;
    throw missing(
      directory,
      part,
      'copy the storage directory of the mirror registry to "data", or the archives of mirrorToDisk here',
    );
  }
  if (lookAt(join(directory, IDMS))?.isFile() === true) return;
  throw missing(directory, IDMS, "copy oc-mirror's working-dir next to the data directory");
}

const missing = (directory: string, part: string, hint: string): ConfigError =>
  new ConfigError('workspace.missing', `${directory} is not an oc-mirror workspace: no ${part}`, {
    expected: join(directory, part),
    found: 'nothing',
    hint,
  });

const isDirectory = (path: string): boolean => lookAt(path)?.isDirectory() === true;

const lookAt = (path: string): Stats | undefined =>
  ifReadable(path, (path) => unlessAbsent(() => statSync(path)));

/** The real path, which must not leave the workspace. */
function locate(path: string, workspace: string): string {
  const real = ifReadable(path, (path) => realpathSync(path));
  if (path === workspace || real === workspace || real.startsWith(`${workspace}/`)) return real;
  throw new ConfigError('workspace.outside', `${path} is a link to ${real}, outside ${workspace}`, {
    expected: `a path below ${workspace}`,
    found: real,
    hint: 'copy it into the workspace, or mount it there',
  });
}

const UNREADABLE = [
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EACCES',
  'EPERM',
  'ELOOP',
  'ENAMETOOLONG',
  'EIO',
];

function ifReadable<Value>(path: string, read: (path: string) => Value): Value {
  try {
    return read(path);
  } catch (cause) {
    if (!isErrno(cause, ...UNREADABLE)) throw cause;
    throw new ConfigError('workspace.unreadable', `${path} cannot be read`, {
      cause,
      hint: 'restore the files of oc-mirror, and make them readable for the user who runs the build',
    });
  }
}
