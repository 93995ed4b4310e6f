import { digestOf, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import type { FileSection } from './live-base/base-tree.ts';
import { SECTOR_SIZE, type ExtentSource, type FileContent } from './extent.ts';
import type { TreeDirectory, TreeLeaf } from './tree.ts';

/** Bytes that one or more new files consist of. */
export type UniqueContent = {
  readonly digest: Digest;
  readonly size: number;
  readonly source: ExtentSource;
  /** Sorted. */
  readonly paths: readonly string[];
};

/** Contents of new files, each once however many files have it. */
export type Contents = {
  /** In the order of their first paths. */
  readonly small: readonly UniqueContent[];
  /** In the order of their first paths. */
  readonly blobs: readonly UniqueContent[];
  readonly digestOfFile: ReadonlyMap<TreeLeaf, Digest>;
};

type Content = Omit<UniqueContent, 'paths'>;

/**
 * The most one directory record can tell (ECMA-119 9.1.4: 32 bits), in whole sectors so that the next
 * section follows without a gap.
 */
const MAX_SECTION_SIZE = 2 ** 32 - SECTOR_SIZE;

/** Finds what there is to be placed. Empty files have no content. */
export function collectContents(root: TreeDirectory): Contents {
  const found = new Map<Digest, Content & { paths: string[] }>();
  const digestOfFile = new Map<TreeLeaf, Digest>();
  for (const file of newFilesOf(root)) {
    if (file.data.kind !== 'new') continue;
    const content = describeContent(file.data.content);
    if (content.size === 0) continue;
    digestOfFile.set(file, content.digest);
    const known = found.get(content.digest);
    if (known && known.size !== content.size) throw sizeConflict(file.path, content, known);
    const paths = known?.paths ?? [];
    paths.push(file.path);
    found.set(content.digest, { ...preferBytes(known, content), paths });
  }
  for (const { paths } of found.values()) paths.sort();
  const unique = [...found.values()].sort((a, b) =>
    (a.paths[0] ?? '') < (b.paths[0] ?? '') ? -1 : 1,
  );
  const small = unique.filter(({ source }) => source.kind === 'bytes');
  const blobs = unique.filter(({ source }) => source.kind === 'blob');
  return { small, blobs, digestOfFile };
}

/** Bytes at hand need not be fetched. */
function preferBytes(known: Content | undefined, found: Content): Content {
  return known?.source.kind === 'bytes' ? known : found;
}

const sizeConflict = (path: string, found: Content, known: Content): IntegrityError =>
  new IntegrityError(
    'layout.size-conflict',
    `blob ${found.digest} of ${path} should have ${found.size} bytes, but ${known.size} elsewhere`,
    { expected: String(known.size), found: String(found.size) },
  );

function* newFilesOf(directory: TreeDirectory): Generator<TreeLeaf> {
  for (const child of directory.children) {
    if (child.kind === 'directory') yield* newFilesOf(child);
    else if (child.data.kind === 'new') yield child;
  }
}

function describeContent(content: FileContent): Content {
  if (content.kind === 'blob') {
    return { digest: content.digest, size: content.size, source: { kind: 'blob' } };
  }
  const { bytes } = content;
  return { digest: digestOf(bytes), size: bytes.length, source: { kind: 'bytes', bytes } };
}

/** The sections of contiguous data: one, and more past 4 GiB (ECMA-119 6.5.1, level 3). */
export function sectionsAt(offset: number, size: number): FileSection[] {
  const sections: FileSection[] = [];
  for (let done = 0; done === 0 || done < size; done += MAX_SECTION_SIZE) {
    sections.push({
      sector: (offset + done) / SECTOR_SIZE,
      size: Math.min(size - done, MAX_SECTION_SIZE),
    });
  }
  return sections;
}
