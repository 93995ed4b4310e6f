import type { Header } from 'tar-stream';
import { IntegrityError } from '../../base/errors.ts';
import { joinLayerPath, normaliseName, refuseLongPath, splitPath } from './stream.ts';

/** A node at a path of one layer. */
export type LayerNode =
  | { readonly kind: 'file'; readonly size: number }
  | { readonly kind: 'directory' }
  /** Target as written: may be absolute (from the image's root) or have `..`. */
  | { readonly kind: 'symlink'; readonly target: string }
  /** Target is a path of this layer or of one below. */
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'device' }
  /** A file whose bytes are not simply what the tar holds; only reading it is an error. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/** OCI image-spec layer.md: what a layer adds to those below it, and what it hides of them. */
export type Changeset = {
  readonly nodes: Map<string, LayerNode>;
  /** Paths that a `.wh.` entry removes from the layers below. */
  readonly whiteouts: Set<string>;
  /** Directories whose content in the layers below is hidden. */
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

/** A later entry of the same name replaces an earlier one. @returns the path, undefined for a whiteout */
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
    changeset.whiteouts.add(normaliseName(joinLayerPath(parent, name.slice(WHITEOUT.length))));
    return undefined;
  }
  changeset.nodes.set(path, nodeOf(header));
  refuseBomb(changeset);
  return path;
}

/** True if a layer hides what the layers below it have at this path. */
export function hides(changeset: Changeset, path: string): boolean {
  if (changeset.whiteouts.has(path)) return true;
  return path !== '' && isClosed(changeset, splitPath(path).parent);
}

/** True if no file of the layers below is visible in this directory. */
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
    default: // tar-stream hands over null for a type it does not know, contrary to its types
      return { kind: 'unreadable', reason: 'an entry of a type that pax does not define' };
  }
}

/** Reads a link; tar-stream passes null for a link without a target, contrary to its types. */
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

/** Layers from the top down, as a path needs them; undefined below the bottom. */
export type Changesets = (depth: number, path: string) => Promise<Changeset | undefined>;

/** A regular file of the flattened image: which layer has its bytes, and under which path. */
export type Found = { readonly depth: number; readonly path: string; readonly size: number };

/** Number of links that Linux follows in one path (path_resolution(7)). */
const MAX_LINKS = 40;

/** Far above any real image: what the targets of all links that are followed may have together. */
const MAX_LINK_COMPONENTS = 500_000;

/** Directories that are cached so that the next file starts from there: some megabytes. */
const MAX_KNOWN = 10_000;

/** Look-ups between two chances for signals and timers. */
const BATCH_SIZE = 1000;

type Placed = { readonly depth: number; readonly node: LayerNode };

/**
 * Gives a function that finds the regular file a path means in the flattened image, in time that grows
 * with the path's length. Symbolic links are followed in any component and never leave the image: `/`
 * is its root, and `..` ends there. Layers are asked for from the top, no further down than needed.
 *
 * The function throws IntegrityError `layer.link-loop`, `layer.links-too-long`,
 * `layer.file-unreadable`, and the signal's reason.
 */
export function createFileFinder(
  changesets: Changesets,
  signal: AbortSignal,
): (path: string) => Promise<Found | undefined> {
  const known = new Set<string>(['']);
  let linkComponents = 0;
  let steps = 0;
  const look = async (path: string): Promise<Placed | undefined> => {
    if (++steps % BATCH_SIZE === 0) await new Promise(setImmediate);
    signal.throwIfAborted();
    const placed = await findNode(changesets, path, 0);
    if (placed?.node.kind !== 'directory') return placed;
    if (known.size > MAX_KNOWN) known.clear();
    known.add('').add(path);
    return placed;
  };
  const readLink = (target: string): string[] => {
    const components = target.split('/');
    linkComponents += components.length;
    if (linkComponents > MAX_LINK_COMPONENTS) throw tooLong();
    return components;
  };
  return async (path) => {
    let done = findKnownParent(known, path);
    let todo = path.slice(done.length).split('/');
    let links = 0;
    for (let name = todo.shift(); name !== undefined; name = todo.shift()) {
      const here = step(done, name);
      const placed = known.has(here) ? undefined : await look(here);
      if (known.has(here)) {
        done = here;
      } else if (placed?.node.kind === 'symlink') {
        if (++links > MAX_LINKS) throw loopError(path);
        if (placed.node.target.startsWith('/')) done = '';
        todo = [...readLink(placed.node.target), ...todo];
      } else {
        const isLast = placed !== undefined && todo.length === 0;
        return isLast ? await followHardLinks(changesets, here, placed) : undefined;
      }
    }
    return undefined;
  };
}

/** The lowest directory above a path that is known to be one; the root is. */
function findKnownParent(known: ReadonlySet<string>, path: string): string {
  let { parent } = splitPath(path);
  while (!known.has(parent)) ({ parent } = splitPath(parent));
  return parent;
}

function step(directory: string, name: string): string {
  if (name === '' || name === '.') return directory;
  return name === '..' ? splitPath(directory).parent : joinLayerPath(directory, name);
}

/** The node of the flattened image at a path whose parents are not links, looking from `top` down. */
async function findNode(
  changesets: Changesets,
  path: string,
  top: number,
): Promise<Placed | undefined> {
  for (let depth = top; ; depth++) {
    const changeset = await changesets(depth, path);
    if (changeset === undefined) return undefined;
    const node = changeset.nodes.get(path);
    if (node !== undefined) return { depth, node };
    if (hides(changeset, path)) return undefined;
  }
}

/** The target of a hard link to its own name: that name in the layers below, unless it is hidden there. */
async function findBelow(
  changesets: Changesets,
  { path, depth }: { readonly path: string; readonly depth: number },
): Promise<Placed | undefined> {
  const changeset = await changesets(depth, path);
  if (changeset === undefined || hides(changeset, path)) return undefined;
  return findNode(changesets, path, depth + 1);
}

/** A hard link names an entry of its own layer or of one below; layers above do not affect it. */
async function followHardLinks(
  changesets: Changesets,
  path: string,
  placed: Placed,
): Promise<Found | undefined> {
  let here = { path, ...placed };
  for (let links = 0; here.node.kind === 'link'; links++) {
    if (links > MAX_LINKS) throw loopError(path);
    const target = here.node.target;
    const next = await (target === here.path
      ? findBelow(changesets, here)
      : findNode(changesets, target, here.depth));
    if (next === undefined) return undefined;
    here = { path: target, ...next };
  }
  const { depth, node } = here;
  if (node.kind === 'unreadable') throw unreadable(here.path, node.reason);
  return node.kind === 'file' ? { depth, path: here.path, size: node.size } : undefined;
}

const loopError = (path: string): IntegrityError =>
  new IntegrityError(
    'layer.link-loop',
    `path "${path}" goes through more than ${MAX_LINKS} links of its image`,
  );

const tooLong = (): IntegrityError =>
  new IntegrityError(
    'layer.links-too-long',
    `targets of the links of an image have more than ${MAX_LINK_COMPONENTS} components`,
    { expected: `at most ${MAX_LINK_COMPONENTS}`, found: 'more' },
  );

const unreadable = (path: string, reason: string): IntegrityError =>
  new IntegrityError('layer.file-unreadable', `file "${path}" is packed as ${reason}`, {
    expected: 'a plain file',
    found: reason,
  });
