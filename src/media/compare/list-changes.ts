/** What two lists do not have in common, each list sorted. */
export type Changes<Item> = {
  readonly added: readonly Item[];
  readonly removed: readonly Item[];
  readonly changed: readonly { readonly old: Item; readonly new: Item }[];
  /** How many are the same in both. */
  readonly unchanged: number;
};

/** A thing of a medium, and a text that is the same only where the thing is. */
export type Compared<Item> = { readonly item: Item; readonly content: string };

/** Compares things by their keys, in the order of the keys. */
export function listChanges<Item>(
  old: ReadonlyMap<string, Compared<Item>>,
  now: ReadonlyMap<string, Compared<Item>>,
): Changes<Item> {
  const added: Item[] = [];
  const removed: Item[] = [];
  const changed: { readonly old: Item; readonly new: Item }[] = [];
  for (const key of [...new Set([...old.keys(), ...now.keys()])].sort()) {
    const [before, after] = [old.get(key), now.get(key)];
    if (after === undefined && before) removed.push(before.item);
    if (before === undefined && after) added.push(after.item);
    if (before && after && before.content !== after.content) {
      changed.push({ old: before.item, new: after.item });
    }
  }
  return { added, removed, changed, unchanged: old.size - removed.length - changed.length };
}

/** How many things differ. */
export const countChanges = ({ added, removed, changed }: Changes<unknown>): number =>
  added.length + removed.length + changed.length;
