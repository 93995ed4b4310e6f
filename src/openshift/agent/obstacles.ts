import type { FilePlace, FileProblem } from '../../base/errors.ts';
import {
  CONFIG_ARCHIVE_PATH,
  CONFIG_IMAGE_LABEL,
  type ConfigArchive,
  CLUSTER_IMAGE_SET,
  findReleaseImage,
  findScalar,
  type LiveSystem,
} from './live-system.ts';

/** The reason why a live system does not take a configuration image. */
export type Obstacle = Omit<FileProblem, 'severity' | keyof FilePlace> & {
  /** Stable within a major version. */
  readonly code:
    | 'medium.interactive'
    | 'medium.no-loader'
    | 'image.label'
    | 'image.no-archive'
    | 'image.archive'
    | 'image.release'
    | 'image.namespace'
    | 'image.cluster-image-set'
    | 'image.missing-member'
    | 'image.special-member';
};

export function findMediumObstacles(system: LiveSystem): readonly Obstacle[] {
  if (system.isInteractive) {
    return [
      {
        code: 'medium.interactive',
        problem: 'the medium is interactive and ignores configuration images',
        hint: 'build the medium with "enableInteractiveFlow: false"',
      },
    ];
  }
  if (system.loader && system.clusterImageSet) return [];
  return [
    {
      code: 'medium.no-loader',
      problem: 'the Ignition config of the medium has no loader for configuration images',
      hint: 'build the medium with "build.ignition: installer"',
    },
  ];
}

/** udev starts the loader for this label only (`80-agent-config-image.rules`). */
export const findLabelObstacle = (label: string): readonly Obstacle[] =>
  label === CONFIG_IMAGE_LABEL
    ? []
    : [
        {
          code: 'image.label',
          problem: 'the ISO does not have the label of a configuration image',
          expected: CONFIG_IMAGE_LABEL,
          found: label,
          hint: 'give the agentconfig.noarch.iso of "openshift-install agent create config-image"',
        },
      ];

/** Conditions at which `load-config-iso.sh` of the live system stops, in its order. */
export const findArchiveObstacles = (
  system: LiveSystem,
  archive: ConfigArchive,
): readonly Obstacle[] => [
  ...findReleaseObstacle(system, archive),
  ...findMissing(system, archive),
  ...findSpecial(system, archive),
  ...findStray(system, archive),
];

/** The loader takes no file unless both files are equal to the byte. */
function findReleaseObstacle(system: LiveSystem, archive: ConfigArchive): readonly Obstacle[] {
  const { clusterImageSet: expected } = system;
  const found = archive.files.get(CLUSTER_IMAGE_SET);
  if (expected === undefined || (found && Buffer.compare(expected, found) === 0)) return [];
  if (found === undefined) return [describeMissing(CLUSTER_IMAGE_SET, archive)];
  const images = { expected: findReleaseImage(expected), found: findReleaseImage(found) };
  if (images.expected !== images.found) {
    return [
      {
        code: 'image.release',
        problem: 'the image was made by the installer of another release, or of another mirror',
        expected: images.expected ?? 'no release image',
        found: shorten(images.found ?? 'no release image'),
        hint: 'make it with the installer of the medium, which "sealift extract installer" writes',
      },
    ];
  }
  return [describeNamespace(expected, found) ?? describeDifference(expected, found)];
}

/** The live file has no namespace; the installer gives the image's file that of `metadata.namespace`. */
function describeNamespace(expected: Uint8Array, found: Uint8Array): Obstacle | undefined {
  const namespace = findScalar(found, 'namespace');
  if (namespace === undefined || findScalar(expected, 'namespace') !== undefined) return undefined;
  return {
    code: 'image.namespace',
    problem: `${CLUSTER_IMAGE_SET} has a namespace, but the file of the medium has none`,
    expected: 'no namespace',
    found: shorten(namespace),
    hint: 'remove metadata.namespace from install-config.yaml and make the image again',
  };
}

function describeDifference(expected: Uint8Array, found: Uint8Array): Obstacle {
  const length = Math.min(expected.length, found.length);
  let offset = 0;
  while (offset < length && expected[offset] === found[offset]) offset++;
  return {
    code: 'image.cluster-image-set',
    problem: `${CLUSTER_IMAGE_SET} differs from the file of the medium at byte ${offset}`,
    expected: excerptOf(expected, offset),
    found: excerptOf(found, offset),
    hint: 'make the image with the installer of the medium, which "sealift extract installer" writes',
  };
}

function excerptOf(bytes: Uint8Array, offset: number): string {
  const start = bytes.subarray(0, offset).lastIndexOf(0x0a) + 1;
  const line = Buffer.from(bytes.subarray(start, start + 200))
    .toString('utf8')
    .split('\n', 1)[0];
  return bytes.length === offset ? `the end, at ${offset} bytes` : (line ?? '');
}

/** A file that the live system already has may be absent: the loader looks at the path only. */
const findMissing = ({ loader, paths }: LiveSystem, archive: ConfigArchive): readonly Obstacle[] =>
  (loader?.required ?? [])
    .filter((path) => path !== CLUSTER_IMAGE_SET && !archive.files.has(path) && !paths.has(path))
    .map((path) => describeMissing(path, archive));

function describeMissing(path: string, { files }: ConfigArchive): Obstacle {
  const relative = [path.slice(1), `.${path}`].find((name) => files.has(name));
  return {
    code: 'image.missing-member',
    problem: `${CONFIG_ARCHIVE_PATH} has no ${path}`,
    expected: path,
    found: relative ?? 'no such member',
    hint:
      relative === undefined
        ? 'make the image again with openshift-install'
        : 'pack the members with absolute names',
  };
}

/** Maximum number; an archive can hold a hundred thousand. */
const MOST_SPECIAL = 20;

/** Linux: bytes of a name, and of a path. */
const MOST_OF_NAME = 255;
const MOST_OF_PATH = 4095;

const isStray = (name: string): boolean =>
  name.split('/').some((part) => part === '..' || Buffer.byteLength(part) > MOST_OF_NAME) ||
  Buffer.byteLength(name) > MOST_OF_PATH;

/** The loader matches the start of a name, whose `..` leads out of the directory. */
const findStray = ({ loader }: LiveSystem, { files }: ConfigArchive): readonly Obstacle[] =>
  [...files.keys()]
    .filter((name) => isStray(name) && loader?.directories.some((each) => name.startsWith(each)))
    .slice(0, MOST_SPECIAL)
    .map((name) => ({
      code: 'image.special-member',
      problem: `${CONFIG_ARCHIVE_PATH} has a member that has no place in its directory: ${shorten(name)}`,
      expected: 'a path without "..", of names of at most 255 bytes',
      hint: 'make the image again with openshift-install',
    }));

/** Installers write regular files only; the loader would make links and devices on the node. */
function findSpecial({ loader }: LiveSystem, { special }: ConfigArchive): readonly Obstacle[] {
  const { required = [], directories = [] } = loader ?? {};
  const isTaken = (name: string): boolean =>
    required.includes(name) || directories.some((directory) => name.startsWith(directory));
  const found = special.filter(
    ({ name, mode }) => isTaken(name) && (!isDirectory(mode) || required.includes(name)),
  );
  return found.slice(0, MOST_SPECIAL).map(({ name, mode }) => ({
    code: 'image.special-member',
    problem: `${CONFIG_ARCHIVE_PATH} has a member that is not a regular file: ${shorten(name)}`,
    expected: 'a regular file',
    found: KINDS[mode & TYPE_MASK] ?? `type ${(mode & TYPE_MASK).toString(8)}`,
    hint: 'make the image again with openshift-install',
  }));
}

/** inode(7) */
const TYPE_MASK = 0o170000;
const isDirectory = (mode: number): boolean => (mode & TYPE_MASK) === 0o040000;
const KINDS: Readonly<Record<number, string>> = {
  0o040000: 'a directory',
  0o120000: 'a symbolic link',
  0o060000: 'a block device',
  0o020000: 'a character device',
  0o010000: 'a named pipe',
  0o140000: 'a socket',
};

const LONGEST = 300;

/** The text of an image may have any length. */
export const shorten = (text: string): string =>
  text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : text;
