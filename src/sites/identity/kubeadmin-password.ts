import { drawText, type RandomBytes } from './random-text.ts';

/** Without l, O, 0 and 1, which people mistake for others. */
const ALPHABET = 'abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789';

/** Password of the cluster's first administrator: four groups of five with dashes between. */
export function drawPassword(random: RandomBytes): string {
  const text = drawText(ALPHABET, 20, random);
  return [0, 5, 10, 15].map((start) => text.slice(start, start + 5)).join('-');
}
