/*
 * A call with `...items` takes stack for each item, and ends in a RangeError with some 120,000 of them:
 * fewer than an input may have. These take any number.
 */

/** Adds items to the end of a list. */
export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}

/** The largest of some numbers and `least`. */
export function maxOf(numbers: Iterable<number>, least = -Infinity): number {
  let max = least;
  for (const number of numbers) if (number > max) max = number;
  return max;
}

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

/** Bytes of all together. */
export function sumSizes(items: Iterable<{ readonly size: number }>): number {
  let sum = 0;
  for (const { size } of items) sum += size;
  return sum;
}
