import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  type CpioMember,
  decodeCpio,
  decodeFileContent,
  type File,
  type IgnitionConfig,
  type SpecialMember,
  type Unit,
} from '../../ignition/index.ts';
import { INFRA_ENV, parseLiveManifest, LIVE_MANIFESTS } from './live-manifest.ts';
import { RENDEZVOUS_TEMPLATE } from './rendezvous.ts';

/** Names the release; the loader compares it with the file of the image, byte by byte. */
export const CLUSTER_IMAGE_SET = `${LIVE_MANIFESTS}cluster-image-set.yaml`;

/** The way in which a medium's live system uses configuration images. */
export type LiveSystem = {
  /** Absent if the release's installer rendered no Ignition config for the medium. */
  readonly loader?: {
    /** `CONFIG_IMAGE_FILES`: required files, and directories, of which the loader takes all files. */
    readonly required: readonly string[];
    readonly directories: readonly string[];
  };
  /** True if a person configures the cluster at the web interface: the loader does not start. */
  readonly isInteractive: boolean;
  /** Paths that its Ignition configs write. */
  readonly paths: ReadonlySet<string>;
  /** Files that a configuration image has too, or is made from, as the medium has them. */
  readonly texts: ReadonlyMap<string, LiveText>;
  /** Members of the InfraEnv; empty without one, absent if it is unreadable. */
  readonly infraEnv?: Readonly<Record<string, unknown>>;
  readonly clusterImageSet?: Uint8Array;
};

/** A file as UTF-8, and its mode. */
export type LiveText = { readonly text: string; readonly mode: number };

const LOADER = 'load-config-iso@.service';
const INTERACTIVE = '/etc/assisted/no-config-image';

/** @param configs lowest precedence first (`load-config-iso@.service.template` of the installer) */
export function describeLiveSystem(configs: readonly IgnitionConfig[]): LiveSystem {
  const files = new Map<string, File>();
  for (const { storage } of configs) {
    for (const file of storage?.files ?? []) files.set(file.path, file);
  }
  const units = configs.flatMap(({ systemd }) => systemd?.units ?? []);
  const names = findConfigImageFiles(units.filter(({ name }) => name === LOADER));
  const clusterImageSet = decodeFileContent(files.get(CLUSTER_IMAGE_SET) ?? {});
  const texts = readTexts(files, names);
  return {
    ...(names && {
      loader: {
        required: names.filter(isRequired),
        directories: names.filter((name) => !isRequired(name)),
      },
    }),
    isInteractive: files.has(INTERACTIVE),
    paths: new Set(files.keys()),
    texts,
    ...withoutUndefined({
      infraEnv: attemptInfraEnv(texts.get(INFRA_ENV)?.text ?? ''),
      clusterImageSet,
    }),
  };
}

function attemptInfraEnv(text: string): LiveSystem['infraEnv'] {
  try {
    return parseLiveManifest(INFRA_ENV, text);
  } catch {
    return undefined;
  }
}

/** Files of the loader's list, and the template of one of them. */
function readTexts(
  files: ReadonlyMap<string, File>,
  names: readonly string[] = [],
): LiveSystem['texts'] {
  const wanted = [...names.filter(isRequired), RENDEZVOUS_TEMPLATE];
  return new Map(
    wanted.flatMap((path) => {
      const file = files.get(path);
      const text = file && decodeFileContent(file)?.toString('utf8');
      return text === undefined ? [] : [[path, { text, mode: file?.mode ?? 0o600 }] as const];
    }),
  );
}

export const findReleaseImage = (clusterImageSet: Uint8Array): string | undefined =>
  findScalar(clusterImageSet, 'releaseImage');

/** openshift-install names a ClusterImageSet `openshift-VERSION`. */
export const findReleaseVersion = (clusterImageSet: Uint8Array): string | undefined =>
  /^openshift-(\d.*)$/.exec(findScalar(clusterImageSet, 'name') ?? '')?.[1];

/** Bytes; more than a ClusterImageSet ever has. */
const SCALAR_WINDOW = 64 << 10;

/** The first value of a key anywhere in a small YAML document, as the loader's `sed` finds it. */
export function findScalar(document: Uint8Array, key: string): string | undefined {
  const text = Buffer.from(document.subarray(0, SCALAR_WINDOW)).toString('utf8');
  const line = text.split('\n').find((line) => line.trimStart().startsWith(`${key}:`));
  const value = line?.slice(line.indexOf(':') + 1).trim();
  return value?.replace(/^(["'])(.*)\1$/, '$2');
}

/** The last assignment counts, in a drop-in too. */
function findConfigImageFiles(units: readonly Unit[]): readonly string[] | undefined {
  const text = units
    .flatMap(({ contents = '', dropins = [] }) => [
      contents,
      ...dropins.map(({ contents = '' }) => contents),
    ])
    .join('\n');
  const value = [...text.matchAll(/^Environment=.*?\bCONFIG_IMAGE_FILES=([^\s"']*)/gm)].at(-1)?.[1];
  const names = value?.split(',').filter((name) => name !== '') ?? [];
  return names.length === 0 ? undefined : names;
}

/** The loader's own rule: a name with a dot is a file. */
const isRequired = (name: string): boolean => name.includes('.') || name === '/etc/issue';

/** The label by which udev finds a configuration image. */
export const CONFIG_IMAGE_LABEL = 'agent_configimage';

/** The one file of a configuration image. */
export const CONFIG_ARCHIVE_PATH = '/config.gz';

/** Bytes of `config.gz`; installers write 20 KB, and manifests of users come on top. */
export const MAX_ARCHIVE_SIZE = 16 << 20;

/** Bytes that it may unpack to. */
const MAX_UNPACKED_SIZE = 32 << 20;

export type ConfigArchive = {
  /** By name. A name that occurs twice has all of its contents, as `cpio --to-stdout` gives them. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Names that occur more than once, sorted. */
  readonly repeated: readonly string[];
  readonly special: readonly SpecialMember[];
};

/**
 * Reads gzip of a newc archive with absolute names.
 *
 * @throws IntegrityError `config-image.archive` for anything else, and for more than 32 MiB of it
 */
export async function decodeConfigArchive(bytes: Uint8Array): Promise<ConfigArchive> {
  const { members, special } = decodeMembers(await unpack(bytes));
  const files = new Map<string, Uint8Array>();
  const parts = new Map<string, Uint8Array[]>();
  for (const { name, data } of members) {
    const known = parts.get(name);
    if (known) known.push(data);
    else parts.set(name, [data]);
  }
  for (const [name, pieces] of parts) {
    const [first] = pieces;
    files.set(name, pieces.length === 1 && first ? first : Buffer.concat(pieces));
  }
  const repeated = [...parts].flatMap(([name, { length }]) => (length > 1 ? [name] : [])).sort();
  return { files, repeated, special };
}

async function unpack(bytes: Uint8Array): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: MAX_UNPACKED_SIZE });
  } catch (cause) {
    const isLarge = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw malformed(
      isLarge ? `unpacks to more than ${MAX_UNPACKED_SIZE} bytes` : 'is not a whole gzip file',
      cause,
    );
  }
}

function decodeMembers(bytes: Uint8Array): {
  readonly members: readonly CpioMember[];
  readonly special: readonly SpecialMember[];
} {
  try {
    return decodeCpio(bytes, 0, (offset) => {
      refuseChecksums(bytes, offset);
    });
  } catch (cause) {
    if (!(cause instanceof SealiftError)) throw cause;
    throw malformed('is not a newc archive', cause);
  }
}

/** The loader calls `cpio -c`, which reads members without checksums alone. */
function refuseChecksums(bytes: Uint8Array, offset: number): void {
  const magic = Buffer.from(bytes.subarray(offset, offset + 6)).toString('latin1');
  if (magic !== '070702') return;
  throw new IntegrityError('cpio.malformed', `member at byte ${offset} has a checksum`, {
    expected: '070701',
    found: magic,
  });
}

const malformed = (reason: string, cause: unknown): IntegrityError =>
  new IntegrityError('config-image.archive', `${CONFIG_ARCHIVE_PATH} ${reason}`, { cause });
