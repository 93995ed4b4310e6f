import { createHmac } from 'node:crypto';
import { link, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { digestOf, type Digest, hexOf } from '../base/digest.ts';
import { nameAside } from '../base/disk/aside.ts';
import { makeDirectory, syncDirectory, writeFileAtomic } from '../base/disk/files.ts';
import { readOwnFile, writeNewFile } from '../base/disk/open-file.ts';
import { isErrno } from '../base/errors.ts';
import { formatCanonicalJson, type Json, formatReadableJson } from '../base/text/json.ts';

/** Channel between a running stage and the engine: progress, warnings and cancellation. */
export type StageContext = {
  /** Aborted when the run is interrupted or another stage failed. */
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number, about?: ProgressDetails) => void;
  readonly warn: (message: string) => void;
};

export type ProgressDetails = {
  /** The current item. */
  readonly note?: string;
  readonly network?: NetworkCount;
};

/** Bytes that have come over the network, and all that will, as far as they are known. */
export type NetworkCount = { readonly bytes: number; readonly total: number };

/** A secret. Fingerprints contain only a keyed digest of it. */
export type Sealed = { reveal: () => string };

/** A value of an input, plain at every depth: functions could read anything. */
export type StageValue =
  | null
  | undefined
  | boolean
  | number
  | string
  | Uint8Array
  | Sealed
  | readonly StageValue[]
  | { readonly [key: string]: StageValue };

export type Reuse<Output> =
  | {
      /** While the inputs and this program are the same. */
      readonly kind: 'same-program';
      /** True if everything the result names still exists. */
      readonly isUsable: (result: Output) => Promise<boolean> | boolean;
    }
  /**
   * Random results: reused while the inputs are the same, even by another program. Results for other
   * inputs are stored too, so that going back to earlier inputs gives the earlier result.
   */
  | { readonly kind: 'drawn' };

/**
 * A step of a build. Stages are values at the top of a module and cannot see the request. Everything they read
 * is in `inputs`, which the fingerprint covers, or in `tools`, which are the same for every stage of a run.
 */
export type Stage<Inputs extends PlainInputs<Inputs>, Output, Tools> = Step<Inputs, Output, Tools>;

export type PlainInputs<Inputs> = { readonly [K in keyof Inputs]: StageValue };

/** A stage whose inputs were checked at its definition. */
export type Step<Inputs, Output, Tools> = {
  /** Verb and noun; the name of its file. */
  readonly name: string;
  readonly run: (inputs: Inputs, tools: Tools, context: StageContext) => Promise<Output>;
  /** Absent: the stage always runs. */
  readonly reuse?: Reuse<Output>;
};

export type FingerprintOptions = {
  readonly stage: string;
  readonly inputs: object;
  /** Digest of the program; absent for results that outlive it. */
  readonly program?: Digest;
  /** Key of the secrets' digests, so that a secret cannot be guessed from its fingerprint. Absent if no input is
   * sealed. */
  readonly sealKey?: Uint8Array;
};

/**
 * A digest of everything that a stage's result depends on. A file counts by its size and digest, not by
 * its path; a secret by a keyed digest; bytes by their digest.
 *
 * @throws TypeError if an input is not a plain value
 */
export function fingerprintOf({ stage, inputs, program, sealKey }: FingerprintOptions): Digest {
  const value = describe(inputs as StageValue, sealKey);
  return digestOf(formatCanonicalJson({ stage, inputs: value, program }));
}

function describe(value: StageValue, key: Uint8Array | undefined): Json | undefined {
  if (value === null || typeof value !== 'object') return describeScalar(value);
  if (value instanceof Uint8Array) return { bytes: digestOf(value) };
  if (isSealed(value)) {
    if (!key) throw new TypeError('a sealed value needs a key');
    return { sealed: createHmac('sha256', key).update(value.reveal()).digest('hex') };
  }
  if (Array.isArray(value)) {
    return (value as readonly StageValue[]).map((item) => describe(item, key) ?? null);
  }
  return describeObject(value as Readonly<Record<string, StageValue>>, key);
}

function describeScalar(value: StageValue): Json | undefined {
  if (typeof value === 'function') throw new TypeError('a stage takes values, not functions');
  return value as Json | undefined;
}

function describeObject(
  value: Readonly<Record<string, StageValue>>,
  key: Uint8Array | undefined,
): Json | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError('a stage takes plain values, not instances of classes');
  }
  const isFile = value['kind'] === 'file';
  const counted = Object.entries(value).filter(([name]) => !isFile || name !== 'path');
  return Object.fromEntries(counted.map(([name, member]) => [name, describe(member, key)]));
}

const isSealed = (value: object): value is Sealed =>
  'reveal' in value && typeof value.reveal === 'function';

export type StageEntry = { readonly stage: string; readonly fingerprint: Digest };

type Known = { readonly result: Json };

/**
 * Results of earlier runs.
 *
 * Each ordinary stage has one file with its last result. The file is removed before the stage starts and
 * written after it ends, so a build killed in between finds no entry and runs the stage again. No state
 * means "half done".
 *
 * Random results are stored permanently, one file (0600) for each fingerprint: they cannot be made again.
 */
export type StageStore = {
  /** The last result, if its fingerprint is this one. */
  read: (entry: StageEntry) => Promise<Known | undefined>;
  /** True if a result exists for any inputs. */
  has: (stage: string) => Promise<boolean>;
  remove: (stage: string) => Promise<void>;
  write: (entry: StageEntry, result: Json) => Promise<void>;
  readDrawn: (entry: StageEntry) => Promise<Known | undefined>;
  /** The first to write wins. @returns what is stored */
  writeDrawn: (entry: StageEntry, result: Json) => Promise<Json>;
};

/**
 * @param root path of the work directory. It differs from run to run, so paths below it are stored
 * relative to it
 */
export function createStageStore(directory: string, root: string): StageStore {
  const format = (value: Json): string =>
    formatReadableJson(value).replaceAll(`"${root}/`, `"${ROOT}/`);
  const readEntry = async (
    path: string,
    { fingerprint }: StageEntry,
  ): Promise<Known | undefined> => {
    const text = (await readOwnFile(path))?.toString('utf8').replaceAll(`"${ROOT}/`, `"${root}/`);
    const entry = text === undefined ? undefined : parseEntry(text);
    return entry?.fingerprint === fingerprint ? { result: entry.result } : undefined;
  };

  const nameOf = (stage: string): string => stage.replaceAll(' ', '-');
  const pathOf = (stage: string): string => join(directory, `${nameOf(stage)}.json`);
  const drawnPathOf = ({ stage, fingerprint }: StageEntry): string =>
    join(directory, 'drawn', `${nameOf(stage)}-${hexOf(fingerprint).slice(0, 32)}.json`);
  return {
    read: (entry) => readEntry(pathOf(entry.stage), entry),
    has: async (stage) => (await readOwnFile(pathOf(stage))) !== undefined,
    remove: (stage) => rm(pathOf(stage), { force: true }),
    write: ({ stage, fingerprint }, result) =>
      writeFileAtomic(pathOf(stage), format({ fingerprint, result })),
    readDrawn: (entry) => readEntry(drawnPathOf(entry), entry),
    async writeDrawn(entry, result) {
      const path = drawnPathOf(entry);
      const text = format({ fingerprint: entry.fingerprint, result });
      const isFirst = await writeOnce(path, text);
      const stored = isFirst ? { result } : await readEntry(path, entry);
      if (stored) return stored.result;
      // The stored file is damaged and cannot be used.
      await writeFileAtomic(path, text);
      return result;
    },
  };
}

/** Placeholder for the path of the work directory in stored results. */
const ROOT = 'work-directory:';

/** Writes a file unless it exists. @returns true if it did not exist */
async function writeOnce(path: string, text: string): Promise<boolean> {
  await makeDirectory(dirname(path), 0o700);
  const aside = await nameAside(path);
  await writeNewFile(aside, text);
  try {
    await link(aside, path);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    if (!isErrno(error, 'EPERM', 'ENOTSUP', 'ENOSYS')) throw error;
    await writeNewFile(path, text); // a file system without hard links
  } finally {
    await rm(aside, { force: true });
  }
  await syncDirectory(dirname(path));
  return true;
}

/** Entry of a store's file, or undefined if the file is damaged: the stage then runs again. */
export function parseEntry(text: string): { fingerprint: string; result: Json } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('fingerprint' in value) || typeof value.fingerprint !== 'string') return undefined;
  return 'result' in value
    ? { fingerprint: value.fingerprint, result: value.result as Json }
    : undefined;
}
