/** Lists by a key, both in the order of the items. */
export function groupBy<Item>(
  items: Iterable<Item>,
  keyOf: (item: Item) => string,
): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** What stands in the list more than once, each once. */
export function findRepeated(items: readonly string[]): readonly string[] {
  const groups = groupBy(items, (item) => item);
  return [...groups].filter(([, group]) => group.length > 1).map(([item]) => item);
}
