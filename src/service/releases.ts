import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { digestFromHex, hexOf } from '../base/digest.ts';
import { SealiftError, isErrno } from '../base/errors.ts';
import type { IsoImage } from '../iso/open-iso.ts';
import { readIndex } from '../media/index/media-index.ts';
import { useMedium } from '../media/open-medium.ts';
import type { PartCache } from '../media/serving/part-cache.ts';
import { openFromPartStore } from '../media/serving/part-store.ts';
import { openIsoBase } from '../media/serving/virtual-base.ts';
import type { VirtualBase } from '../media/serving/virtual-iso.ts';
import { isElsewhere, type SourceHost } from '../media/source/open-source.ts';
import pLimit from 'p-limit';

/** A release that the store has an ISO of. */
export type Release = {
  readonly version: string;
  /** As RPM says it, which assisted-service does as well. */
  readonly architecture: string;
  readonly base: VirtualBase;
};

/** The releases that are served: each matches its version exactly. */
export type Releases = {
  readonly list: () => Promise<readonly Release[]>;
  readonly find: (version: string, architecture: string) => Promise<Release | undefined>;
  readonly close: () => Promise<void>;
};

type Options = {
  readonly host: SourceHost;
  readonly cache: PartCache;
  /** Told once of each ISO that cannot be served. */
  readonly warn: (message: string) => void;
};

/** What a place of the store offers; another key is another ISO. */
type Candidate = { readonly key: string; readonly open: () => Promise<VirtualBase> };

/**
 * The ISOs of ours in folders (files, and what `addToPartStore` added), and at addresses. Folders are looked at
 * again when a release is asked for: what is new is served without a restart. An ISO that was replaced stays
 * open until the end, for the downloads of it that go on.
 */
export function openReleases(places: readonly string[], options: Options): Releases {
  const opened = new Map<string, Promise<Release | undefined>>();
  const all = new Set<VirtualBase>();
  const open = async ({ key, open }: Candidate): Promise<Release | undefined> => {
    try {
      const base = await open();
      all.add(base);
      const release = await describe(base);
      if (!release) options.warn(`${key} is not an ISO of sealift: it is not served`);
      return release;
    } catch (error) {
      if (!(error instanceof SealiftError)) throw error;
      options.warn(`${key} is not served: ${error.message}`);
      return undefined;
    }
  };
  const inOrder = pLimit(1);
  const list = (): Promise<readonly Release[]> =>
    inOrder(async () => {
      const lists = await Promise.all(places.map((place) => listCandidates(place, options)));
      const candidates = lists.flat();
      const keys = new Set(candidates.map(({ key }) => key));
      for (const key of opened.keys()) if (!keys.has(key)) opened.delete(key);
      const releases = candidates.map((candidate) => {
        const known = opened.get(candidate.key) ?? open(candidate);
        opened.set(candidate.key, known);
        return known;
      });
      return (await Promise.all(releases)).filter((release) => release !== undefined);
    });
  return {
    list,
    async find(version, architecture) {
      const found = await list();
      return found.find((each) => each.version === version && each.architecture === architecture);
    },
    async close() {
      for (const base of all) await base.close();
    },
  };
}

async function listCandidates(place: string, { host, cache }: Options): Promise<Candidate[]> {
  if (isElsewhere(place)) return [{ key: place, open: () => openIsoBase(place, { host, cache }) }];
  const folder = resolve(host.cwd, place);
  const files = (await listNames(folder)).filter((name) => name.endsWith('.iso'));
  const isos = files.map(async (name): Promise<Candidate[]> => {
    const path = join(folder, name);
    const key = await keyOf(path);
    return key === undefined ? [] : [{ key, open: () => openIsoBase(path, { host, cache }) }];
  });
  const layouts = (await listNames(join(folder, 'layouts'))).flatMap((name) => {
    const [, hex] = /^([0-9a-f]{64})\.json$/.exec(name) ?? [];
    if (hex === undefined) return [];
    return [{ key: join(folder, hex), open: () => openFromPartStore(folder, digestFromHex(hex)) }];
  });
  return [...(await Promise.all(isos)).flat(), ...layouts];
}

async function listNames(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

/** Another file of the same name has another key; undefined for what is not a file, or gone meanwhile. */
async function keyOf(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs } = await stat(path);
    return `${path} ${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const describe = async (base: VirtualBase): Promise<Release | undefined> => {
  const index = await useRelease({ base }, readIndex);
  if (!index) return undefined;
  const { version, architecture } = index.release;
  return { version, architecture, base };
};

/** Does something with the files of an ISO, which stays open. */
export const useRelease = <Result>(
  { base }: Pick<Release, 'base'>,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> =>
  useMedium(
    {
      path: base.name,
      size: base.size,
      async read(offset, size, buffer = Buffer.allocUnsafe(size)) {
        const bytes = buffer.subarray(0, size);
        await base.fill(bytes, offset, new AbortController().signal);
        return bytes;
      },
      close: () => Promise.resolve(),
    },
    work,
  );

/** What names the bytes of a release in URLs. */
export const shortDigest = ({ base }: Release): string => hexOf(base.digest).slice(0, 12);
