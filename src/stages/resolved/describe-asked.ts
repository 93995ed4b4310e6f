import { stat, readFile, readdir } from 'fs/promises';
import { join } from 'path/posix';
import { type Digest, digestOf } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readFileIfPresent } from '../../base/disk/files.ts';
import { readStamp } from '../../base/disk/file-digests.ts';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import { type StageValue, fingerprintOf } from '../../engine/index.ts';
import type { SignatureGate } from '../1-resolve/verify-release.ts';
import type { RegistryAccessOptions } from '../registry-access.ts';
import { secretsPathOf } from './record.ts';
import type { ResolvedRequest } from './resolved.ts';

/* Owns the digest of all that a run was asked for: options, files and folders. */

/** An ISO as it is asked for: everything that the requests of all products have. */
export type AskedIso = ResolvedRequest & {
  /** The part of the configuration by which registries are reached. */
  readonly access: RegistryAccessOptions['config'] & {
    /** The only source of images, if it is given. */
    readonly mirrorPath?: string;
  };
  /** The settings that put secrets on the ISO, which others must not read. */
  readonly confidential: readonly string[];
  readonly signatures: SignatureGate;
  /** SOURCE_DATE_EPOCH, seconds; default: the creation of the release, or of the base ISO. */
  readonly epoch?: number;
  /** UPDATE_URL_OVERRIDE. */
  readonly graphUrl?: string;
  /** Address of the CoreOS stream that names the live ISO. */
  readonly streamUrl?: string;
  /** Paths that the configuration names and that belong to another machine. */
  readonly elsewhere?: readonly string[];
  /** True if the output is only compared: it needs no room. */
  readonly isThere?: boolean;
};

type AskedUnder = {
  readonly program: Digest;
  /** Has the key for fingerprints of secrets. */
  readonly resolved: { readonly sealKey: Uint8Array };
  /** The files with mirrors that were read, in order. */
  readonly registriesConf: readonly string[];
};

/**
 * Computes a digest of the inputs that an ISO is requested with: the request, the files that it
 * names, and the program. Taken before anything is read, so that a file that changes during the
 * build makes the next one look again. Undefined if an input can be read only once.
 */
export async function describeAsked(
  request: AskedIso,
  { program, resolved: { sealKey }, registriesConf }: AskedUnder,
): Promise<Digest | undefined> {
  const { inputs, reuses, elsewhere = [], held } = request;
  const values = Object.fromEntries(
    Object.entries({ ...request, saved: held.saved }).filter(([name]) => !LEFT_OUT.has(name)),
  ) as Record<string, StageValue>;
  const unread = new Set([...(reuses?.seeds ?? []), ...elsewhere]);
  const paths = inputs.filter((path) => !unread.has(path));
  const files = await Promise.all(paths.map(describeFile));
  if (files.includes(undefined)) return undefined;
  const keepsPlaces = reuses?.keepsPlaces ?? false;
  const all = { values, paths, files: files as Json[], keepsPlaces, registriesConf };
  return fingerprintOf({ stage: 'find unchanged ISO', inputs: all, program, sealKey });
}

/** Adds the lock to the digest, as it is after a build, which writes it. */
export async function digestWithLock(
  asked: Digest,
  { held: { lock } }: Pick<AskedIso, 'held'>,
): Promise<Digest> {
  const paths = lock ? [lock.path, secretsPathOf(lock.path)] : [];
  const files = await Promise.all(paths.map(readFileIfPresent));
  return digestOf(
    formatCanonicalJson([asked, ...files.map((bytes) => (bytes ? digestOf(bytes) : null))]),
  );
}

/** Fields of the request that are described by their files, or do not matter. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'inputs',
  'force',
  'checksum',
  'held',
  'reuses',
  'access',
]);

/** Bytes up to which a file is compared by content: a checkout of a repository gives all files new times. */
const SMALL = 1 << 20;

async function describeFile(path: string): Promise<Json | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return await describeFolder(path);
    if (!found.isFile()) return undefined;
    return found.size <= SMALL ? digestOf(await readFile(path)) : await describeStamp(path);
  } catch (error) {
    // A file that cannot be read is refused later, or not needed.
    if (isUnreadable(error)) return 'absent';
    throw error;
  }
}

/**
 * Describes a folder. A mirror has tens of thousands of files, which are compared by their inodes.
 * Undefined if a link leads to another folder, which may change unseen.
 */
async function describeFolder(folder: string): Promise<Json | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory());
  const described = await Promise.all(
    paths.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      if (entry.isSymbolicLink() && (await leadsToFolder(path))) return undefined;
      return [path.slice(folder.length), await describeStamp(path)] as const;
    }),
  );
  const known = described.filter((each) => each !== undefined);
  return known.length === described.length ? Object.fromEntries(known) : undefined;
}

async function leadsToFolder(link: string): Promise<boolean> {
  try {
    return (await stat(link)).isDirectory();
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}

const describeStamp = async (path: string): Promise<Json> => (await readStamp(path)) ?? 'absent';
