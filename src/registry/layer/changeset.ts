import type { Header } from 'tar-stream';
import { IntegrityError } from '../../base/errors.ts';
import { joinPath, normaliseName, refuseLongPath, splitPath } from './names.ts';

/** What stands at a path of one layer. */
export type LayerNode =
  | { readonly kind: 'file'; readonly size: number }
  | { readonly kind: 'directory' }
  /** Target as written: may be absolute (from the image's root) or have `..`. */
  | { readonly kind: 'symlink'; readonly target: string }
  /** Target is a path of this layer or of one below. */
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'device' }
  /** A file whose bytes are not simply what the tar holds; only asking for it is an error. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/** OCI image-spec layer.md: what a layer adds to those below it, and what it hides of them. */
export type Changeset = {
  readonly nodes: Map<string, LayerNode>;
  /** Paths that a `.wh.` entry removes from the layers below. */
  readonly whiteouts: Set<string>;
  /** Directories whose content in the layers below does not shine through. */
  readonly opaque: Set<string>;
  /** Directories that `hides` was asked about, so that it looks at each ancestor once. */
  readonly closed: Map<string, boolean>;
};

const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
/** `.wh..wh.plnk` and the like: aufs put its own records into the layer. */
const AUFS_METADATA = '.wh..wh.';

/** Far above any real image; keeps a bomb of empty files from filling the memory. */
const MAX_NODES = 500_000;

/** Answers that are cached for a layer: some megabytes. */
const MAX_CLOSED = 10_000;

export const createChangeset = (): Changeset => ({
  nodes: new Map([['', { kind: 'directory' }]]),
  whiteouts: new Set(),
  opaque: new Set(),
  closed: new Map(),
});

/**
 * Adds one tar entry; a later entry of the same name takes the place of an earlier one. Returns the
 * path, or undefined for a whiteout.
 *
 * @throws IntegrityError `layer.path-escape`, `layer.path-malformed`, `layer.too-many-entries`
 */
export function addEntry(changeset: Changeset, header: Header): string | undefined {
  const path = normaliseName(nameOf(header));
  const { parent, name } = splitPath(path);
  changeset.closed.clear();
  addAncestors(changeset, parent);
  if (name === OPAQUE) {
    changeset.opaque.add(parent);
    return undefined;
  }
  if (name.startsWith(AUFS_METADATA)) return undefined;
  if (name.startsWith(WHITEOUT)) {
    changeset.whiteouts.add(normaliseName(joinPath(parent, name.slice(WHITEOUT.length))));
    return undefined;
  }
  changeset.nodes.set(path, nodeOf(header));
  refuseBomb(changeset);
  return path;
}

/** Whether a layer hides what the layers below it have at this path. */
export function hides(changeset: Changeset, path: string): boolean {
  if (changeset.whiteouts.has(path)) return true;
  return path !== '' && isClosed(changeset, splitPath(path).parent);
}

/** Whether nothing of the layers below shines through in this directory. */
function isClosed(changeset: Changeset, directory: string): boolean {
  const { nodes, whiteouts, opaque, closed } = changeset;
  const known = closed.get(directory);
  if (known !== undefined) return known;
  const isClosedHere =
    whiteouts.has(directory) ||
    opaque.has(directory) ||
    (nodes.get(directory)?.kind ?? 'directory') !== 'directory' ||
    (directory !== '' && isClosed(changeset, splitPath(directory).parent));
  if (closed.size >= MAX_CLOSED) closed.clear();
  closed.set(directory, isClosedHere);
  return isClosedHere;
}

/** Unpacking makes the directories that the packer left out. */
function addAncestors(changeset: Changeset, parent: string): void {
  for (let path = parent; !changeset.nodes.has(path); path = splitPath(path).parent) {
    changeset.nodes.set(path, { kind: 'directory' });
    refuseBomb(changeset);
  }
}

/** A sparse file in pax 1.0 form carries a stand-in as its plain name (GNU tar manual, D.2). */
function nameOf({ name, pax }: Header): string {
  const real = (pax as Readonly<Record<string, string>> | null)?.['GNU.sparse.name'];
  return real ?? name;
}

function nodeOf(header: Header): LayerNode {
  switch (header.type) {
    case 'file':
    case 'contiguous-file':
      if (isSparse(header)) return { kind: 'unreadable', reason: 'a sparse file' };
      return { kind: 'file', size: header.size };
    case 'directory':
      return { kind: 'directory' };
    case 'symlink':
    case 'link':
      return linkOf(header.type, header.linkname);
    case 'block-device':
    case 'character-device':
    case 'fifo':
      return { kind: 'device' };
    default: // tar-stream hands over null for a type it has no word for, whatever its types say
      return { kind: 'unreadable', reason: 'an entry of a type that pax does not define' };
  }
}

/** For a link without a target, tar-stream hands over null, whatever its types say. */
function linkOf(kind: 'symlink' | 'link', target: string | null): LayerNode {
  if (!target) return { kind: 'unreadable', reason: 'a link without a target' };
  if (kind === 'link') return { kind, target: normaliseName(target) };
  refuseLongPath(target, 'a link target');
  return { kind, target };
}

/** GNU tar's sparse forms in pax headers hold a map in front of the data. */
const isSparse = ({ pax }: Header): boolean =>
  Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse.'));

function refuseBomb(changeset: Changeset): void {
  if (changeset.nodes.size <= MAX_NODES) return;
  throw new IntegrityError('layer.too-many-entries', `layer has more than ${MAX_NODES} entries`);
}
