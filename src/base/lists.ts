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
