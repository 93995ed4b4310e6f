/**
 * Operations on lists of any length. A call with `...items` takes stack for each item, and ends in
 * a RangeError with some 120,000 of them: fewer than an input may have.
 */

export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}

/** The largest of some numbers and `least`. */
export function maxOf(numbers: Iterable<number>, least = -Infinity): number {
  let max = least;
  for (const number of numbers) if (number > max) max = number;
  return max;
}

/** Index of the first item that is `behind`, as all after it are; the length if no item is. */
export function findFirst<Item>(
  items: readonly Item[],
  isBehind: (item: Item, index: number) => boolean,
): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isBehind(items[middle] as Item, middle)) high = middle;
    else low = middle + 1;
  }
  return low;
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

/** Items that are in the list more than once, each once. */
export function findRepeated(items: readonly string[]): readonly string[] {
  const groups = groupBy(items, (item) => item);
  return [...groups].filter(([, group]) => group.length > 1).map(([item]) => item);
}

export function sumSizes(items: Iterable<{ readonly size: number }>): number {
  let sum = 0;
  for (const { size } of items) sum += size;
  return sum;
}

/** True if a parsed value has members: neither a scalar nor a list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Empty if the value is not an object: a missing member is noticed at the place that needs it. */
export const objectOrEmpty = (value: unknown): Readonly<Record<string, unknown>> =>
  isObject(value) ? value : {};

/** The members that have a value: an optional member is absent, never undefined. */
export function withoutUndefined<T extends object>(
  object: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
