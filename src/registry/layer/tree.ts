import { IntegrityError } from '../../base/errors.ts';
import { hides, type Changeset, type LayerNode } from './changeset.ts';
import { joinPath, splitPath } from './names.ts';

/** Layers from the top down, as a path needs them; undefined below the bottom. */
export type Changesets = (depth: number, path: string) => Promise<Changeset | undefined>;

/** A regular file of the flattened image: which layer has its bytes, and under which path. */
export type Found = { readonly depth: number; readonly path: string; readonly size: number };

/** As many links as Linux follows in one path (path_resolution(7)). */
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
  return name === '..' ? splitPath(directory).parent : joinPath(directory, name);
}

/** What the flattened image has at a path whose parents are not links, looking from `top` down. */
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

/** What an entry that has its own name as its target stands for, unless its layer hides that too. */
async function findBelow(
  changesets: Changesets,
  { path, depth }: { readonly path: string; readonly depth: number },
): Promise<Placed | undefined> {
  const changeset = await changesets(depth, path);
  if (changeset === undefined || hides(changeset, path)) return undefined;
  return findNode(changesets, path, depth + 1);
}

/** A hard link names an entry of its own layer or of one below; what is above does not touch it. */
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
