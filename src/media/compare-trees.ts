import { digestOf, type Digest } from '../base/digest.ts';
import type { IsoImage } from '../iso/index.ts';
import {
  type Changes,
  type Compared,
  type ComparedFile,
  isOfRegistry,
  listChanges,
} from './compare-parts.ts';
import { BUILT_PATH } from './media-index.ts';
import { attempt, type OpenAttempt, type IsoSource, useMedium } from './open.ts';

/* Comparison of files by the directories of two media: without an index, nothing names their bytes. */

type Tree = ReadonlyMap<string, Compared<ComparedFile>>;

/** Lists the files outside the registry by path, kind and size. Their bytes are not read. */
export const readTree = (medium: IsoSource): Promise<OpenAttempt<Tree>> =>
  useMedium(medium, (iso) => attempt(() => listTree(iso)));

async function listTree(iso: IsoImage): Promise<Tree> {
  const files = new Map<string, Compared<ComparedFile>>();
  for await (const { path, node } of iso.walk()) {
    if (node.kind === 'directory' || isOfRegistry(path)) continue;
    const content = node.kind === 'file' ? node.size : node.target;
    files.set(path, { item: { path }, content: `${node.kind} ${content}` });
  }
  return files;
}

/** Undefined if one of the trees cannot be read. */
export const compareTrees = (
  { value: old }: OpenAttempt<Tree>,
  { value: now }: OpenAttempt<Tree>,
): Changes<ComparedFile> | undefined => old && now && listChanges(old, now);

/** Undefined without a copy of the areas as built, which a customisation may overwrite. */
export async function digestBuilt(iso: IsoImage): Promise<Digest | undefined> {
  const node = await iso.find(BUILT_PATH);
  return node?.kind === 'file' ? digestOf(await iso.readFile(node)) : undefined;
}

export function withBuilt(
  files: Changes<ComparedFile>,
  old: Digest | undefined,
  now: Digest | undefined,
): Changes<ComparedFile> {
  const item = { path: BUILT_PATH };
  const isListed = files.changed.some((pair) => pair.new.path === BUILT_PATH);
  if (!old || !now || old === now || isListed) return files;
  const changed = [...files.changed, { old: item, new: item }];
  return { ...files, changed, unchanged: files.unchanged - 1 };
}
