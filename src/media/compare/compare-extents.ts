import { INDEX_PATH, REGISTRY_ROOT, UPGRADE_REGISTRY_ROOT } from '../index/media-paths.ts';
import type { IndexExtent } from '../index/media-index.ts';
import { listChanges, type Changes, type Compared } from './list-changes.ts';

/** Bytes of the extents that the indexes name. */
export type ComparedBytes = {
  /** Of the new medium that are anywhere on the old one. */
  readonly shared: number;
  /** Of the new medium that are at the same place on the old one. */
  readonly inPlace: number;
  /** Of the new medium that are not on the old one. */
  readonly new: number;
  /** Of the old medium that are not on the new one. */
  readonly gone: number;
};

type Extents = readonly IndexExtent[];

/** Compares bytes by digest. An index has no digest in itself; `isSameIndex` speaks for it. */
export function compareBytes(old: Extents, now: Extents, isSameIndex: boolean): ComparedBytes {
  const [oldDigests, digests] = [listDigests(old), listDigests(now)];
  const isOn = (others: ReadonlySet<string>, { digest }: IndexExtent): boolean =>
    digest === undefined ? isSameIndex : others.has(digest);
  const places = new Map(old.map(({ offset, digest }) => [offset, digest]));
  const bytes = { shared: 0, inPlace: 0, new: 0, gone: 0 };
  for (const extent of now) {
    const { size, offset, digest } = extent;
    if (!isOn(oldDigests, extent)) {
      bytes.new += size;
      continue;
    }
    bytes.shared += size;
    if (places.has(offset) && places.get(offset) === digest) bytes.inPlace += size;
  }
  for (const extent of old) if (!isOn(digests, extent)) bytes.gone += extent.size;
  return bytes;
}

const listDigests = (extents: Extents): ReadonlySet<string> =>
  new Set(extents.flatMap(({ digest }) => digest ?? []));

/** Without a digest: a file may hold little more than a secret. */
export type ComparedFile = { readonly path: string };

/** Compares the files outside of the registry: the base with its kernel, and what was put beside it. */
export const compareFiles = (old: Extents, now: Extents): Changes<ComparedFile> =>
  listChanges(listFiles(old), listFiles(now));

const REGISTRIES = [`${REGISTRY_ROOT}/`, `${UPGRADE_REGISTRY_ROOT}/`];

/** A file has several extents where it is large, or where a part of it was patched. */
function listFiles(extents: Extents): ReadonlyMap<string, Compared<ComparedFile>> {
  const files = new Map<string, Compared<ComparedFile>>();
  for (const { size, digest, paths } of extents) {
    for (const path of paths) {
      if (path === INDEX_PATH || REGISTRIES.some((root) => path.startsWith(root))) continue;
      const content = `${files.get(path)?.content ?? ''}${size} ${digest ?? ''}\n`;
      files.set(path, { item: { path }, content });
    }
  }
  return files;
}
