import { drawText, type RandomBytes } from './random-text.ts';

/** Cloud resources with longer names were refused; the limit stayed. */
const MAX_SIZE = 27;
const SUFFIX_SIZE = 5;

/** No vowels and nothing that looks like one: no word comes out by chance. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** Name of a cluster's infrastructure: its own name, shortened, and five random characters. */
export function makeInfraId(clusterName: string, random: RandomBytes): string {
  const name = clusterName
    .replaceAll(/[^A-Za-z0-9-]/gu, '-')
    .replaceAll(/-{2,}/g, '-')
    .slice(0, MAX_SIZE - SUFFIX_SIZE - 1)
    .replace(/-+$/, '');
  return `${name}-${drawText(ALPHABET, SUFFIX_SIZE, random)}`;
}
