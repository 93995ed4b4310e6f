import { link, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nameAside } from '../../base/disk/aside.ts';
import { explainWriteError } from '../../base/disk/disk-errors.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { DiskError, IntegrityError, isErrno } from '../../base/errors.ts';
import {
  addEntry,
  createChangeset,
  hides,
  type Changeset,
  type LayerNode,
  createFileFinder,
  type Changesets,
} from './changeset.ts';
import { refuseManyLayers, type LayerPlace } from './read.ts';
import { joinLayerPath, normaliseName, openLayer, type Layer } from './stream.ts';
import {
  type ExtractTreeOptions,
  type StagedFiles,
  createStage,
  refuseLargeTree,
  refuseLongName,
} from './staged-files.ts';

export type ExtractedTree = {
  readonly files: number;
  /** Bytes of all files together. */
  readonly size: number;
};

/**
 * Writes every regular file below a directory of the flattened image (`configs`, '' for all of it) to the
 * directory `output`, of any size in bounded memory: the names of all entries are held, and no file.
 * Whiteouts, opaque directories, hard links and symbolic links to files count as they do in a container (OCI
 * image-spec layer.md). Modes and owners are dropped, devices and empty directories left out. Layers are read
 * from the top: those that may touch the directory, down to one that hides it from all below, and those that
 * links out of the tree lead to. Each is unpacked once, or twice if such a link leads into it.
 *
 * `output` must not exist, or be empty. It appears by rename when all of it is on the disk; files
 * may share an inode where the image has links.
 *
 * @throws IntegrityError `layer.directory-missing`, `layer.tree-too-large`, `layer.link-unfollowed`,
 * `layer.name-too-long`, and what `openLayer`, `addEntry` and `createFileFinder` throw; DiskError
 * `layer.output-exists`, `disk.full`
 */
// eslint-disable-next-line max-params -- source, path, target and options are each clear at the call
export async function extractTree(
  layers: readonly Layer[],
  directory: string,
  output: string,
  options: ExtractTreeOptions,
): Promise<ExtractedTree> {
  refuseManyLayers(layers);
  await makeDirectory(dirname(output));
  const aside = await nameAside(output);
  const staging = join(aside, 'staged');
  const tree = join(aside, 'tree');
  try {
    await makeDirectory(staging);
    await mkdir(tree);
    const root = normaliseName(directory);
    const stage = createStage(staging, options);
    const stack = await stageTree(layers, root, { stage, ...options });
    const places = await findFiles(stack, root, options.signal);
    await stageLinked(layers, places.values(), { stage, signal: options.signal });
    const extracted = await assemble(places, { stage, root, tree, ...options });
    await syncTree(tree);
    await moveTo(tree, output);
    await syncDirectory(dirname(output));
    return extracted;
  } catch (error) {
    throw explainWriteError(error, dirname(output));
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

type Staging = { readonly stage: StagedFiles; readonly signal: AbortSignal };

/** An image's layers for one directory, as far as read. */
type Stack = {
  /** Changesets of the layers that the directory depends on, from the top; others count as empty. */
  readonly related: ReadonlyMap<number, Changeset>;
  readonly changesets: Changesets;
};

/** Reads layers from the top and stages the files of the tree that no layer above hides. */
async function stageTree(
  layers: readonly Layer[],
  root: string,
  { stage, signal, mayTouch = () => true }: Staging & Pick<ExtractTreeOptions, 'mayTouch'>,
): Promise<Stack> {
  const related = new Map<number, Changeset>();
  for (const [depth, layer] of layers.toReversed().entries()) {
    if (!mayTouch(layer)) continue;
    const isWanted = (path: string): boolean =>
      isBelow(path, root) &&
      ![...related.values()].some((above) => above.nodes.has(path) || hides(above, path));
    const changeset = await stageLayer(layer, isWanted, { depth, stage, signal });
    related.set(depth, changeset);
    if (hides(changeset, joinLayerPath(root, ANY_NAME))) break;
  }
  const others = new Map<number, Changeset>();
  const changesets: Changesets = async (depth, path) => {
    const layer = layers.at(-1 - depth);
    if (layer === undefined || depth >= layers.length) return undefined;
    const known = related.get(depth) ?? others.get(depth);
    if (known) return known;
    const isOfTree = path === root || isBelow(path, root) || isBelow(root, path);
    if (isOfTree && !mayTouch(layer)) return UNTOUCHED;
    const changeset = await stageLayer(layer, () => false, { depth, stage, signal });
    others.set(depth, changeset);
    return changeset;
  };
  return { related, changesets };
}

/** A name that no entry has: a layer that hides it hides everything in its directory. */
const ANY_NAME = '\0';

/** Changeset of a layer that does not touch the directory. */
const UNTOUCHED = createChangeset();

/** The path of each file of the tree in the image, and which entry has its bytes; sorted. */
async function findFiles(
  { related, changesets }: Stack,
  root: string,
  signal: AbortSignal,
): Promise<Map<string, LayerPlace>> {
  if (findVisible(related.values(), root)?.kind !== 'directory') throw missing(root);
  const paths = new Set([...related.values()].flatMap(({ nodes }) => [...nodes.keys()]));
  const files = new Map<string, LayerPlace>();
  const findFile = createFileFinder(changesets, signal);
  for (const path of [...paths].filter((one) => isBelow(one, root)).sort()) {
    const node = findVisible(related.values(), path);
    if (node === undefined || node.kind === 'directory' || node.kind === 'device') continue;
    const found = await findFile(path);
    if (found !== undefined) files.set(path, found);
    else if (node.kind === 'symlink') throw unfollowed(path, node.target);
  }
  return files;
}

function findVisible(changesets: Iterable<Changeset>, path: string): LayerNode | undefined {
  for (const changeset of changesets) {
    const node = changeset.nodes.get(path);
    if (node !== undefined) return node;
    if (hides(changeset, path)) return undefined;
  }
  return undefined;
}

/** Stages what links lead to outside the tree, or to entries that are hidden under their own name. */
async function stageLinked(
  layers: readonly Layer[],
  places: Iterable<LayerPlace>,
  { stage, signal }: Staging,
): Promise<void> {
  const absent = [...places].filter((place) => stage.get(place) === undefined);
  for (const depth of new Set(absent.map((place) => place.depth))) {
    const paths = new Set(absent.filter((one) => one.depth === depth).map(({ path }) => path));
    const layer = layers.at(-1 - depth);
    if (layer === undefined) throw new RangeError(`image has no layer ${depth} below its top`);
    const isWanted = (path: string): boolean => paths.has(path);
    await stageLayer(layer, isWanted, { depth, stage, signal });
  }
}

/** Reads all of a layer and stages the regular files that are wanted. */
async function stageLayer(
  layer: Layer,
  isWanted: (path: string) => boolean,
  { depth, stage, signal }: Staging & { readonly depth: number },
): Promise<Changeset> {
  const changeset = createChangeset();
  for await (const entry of openLayer(layer, signal)) {
    const path = addEntry(changeset, entry.header);
    const isFile = path !== undefined && changeset.nodes.get(path)?.kind === 'file';
    if (isFile && isWanted(path)) await stage.add({ depth, path }, entry);
    else entry.skip();
  }
  return changeset;
}

type Assembly = ExtractTreeOptions & {
  readonly stage: StagedFiles;
  readonly root: string;
  readonly tree: string;
};

/** Links staged files to their places in the tree. */
async function assemble(
  places: ReadonlyMap<string, LayerPlace>,
  { stage, root, tree, ...options }: Assembly,
): Promise<ExtractedTree> {
  let size = 0;
  for (const [path, place] of places) {
    const staged = stage.get(place);
    if (staged === undefined) throw new Error(`file ${place.path} was found, but not unpacked`);
    size += staged.size;
    refuseLargeTree(size, path, options);
    const below = root === '' ? path : path.slice(root.length + 1);
    refuseLongName(below);
    const target = join(tree, below);
    await makeDirectory(dirname(target));
    await link(staged.path, target);
  }
  return { files: places.size, size };
}

/** Makes the names of a whole tree durable; the files are already. */
async function syncTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) await syncTree(join(directory, entry.name));
  }
  await syncDirectory(directory);
}

async function moveTo(tree: string, output: string): Promise<void> {
  try {
    await rename(tree, output);
  } catch (cause) {
    if (!isErrno(cause, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) throw cause;
    throw new DiskError('layer.output-exists', `directory ${output} already exists`, { cause });
  }
}

const isBelow = (path: string, root: string): boolean =>
  root === '' ? path !== '' : path.startsWith(joinLayerPath(root, ''));

const missing = (root: string): IntegrityError =>
  new IntegrityError('layer.directory-missing', `image has no directory "${root}"`, {
    expected: root,
    found: 'nothing',
  });

const unfollowed = (path: string, target: string): IntegrityError =>
  new IntegrityError(
    'layer.link-unfollowed',
    `symbolic link "${path}" should lead to a regular file of its image, but "${target}" is not one`,
    { expected: 'a regular file', found: target },
  );
