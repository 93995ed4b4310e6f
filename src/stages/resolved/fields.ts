import type { Json } from '../../base/text/json.ts';
import { type Lock, mismatch, nameField } from './record.ts';

/* Owns the fields of a lock, in the order in which they are compared. */

/**
 * Requires the value of the lock.
 * @throws ConfigError `lock.mismatch`
 */
export function requireSame(field: string, expected: string, found: string): void {
  if (expected !== found) throw mismatch(field, { expected, found });
}

/**
 * Lists the fields that must fit; earlier fields explain differences in later ones. Tags are
 * checked by the lock itself.
 */
export function listFields(lock: Lock): readonly (readonly [string, string])[] {
  const { product, release, path, seed, signatures, base, installer, registryImage } = lock;
  const { catalogs, images, drawn, contents } = lock;
  const fields = {
    product,
    release,
    path,
    seed,
    signatures,
    base,
    installer,
    registryImage,
    catalogs,
    images: Object.fromEntries(images.map((image) => [image, image])),
    drawn,
    contents,
  };
  return Object.entries(fields).flatMap(([name, value]) => flatten(value, name));
}

/** Flattens a value into its texts, each by the name of its place. */
export function flatten(
  value: Json | undefined,
  path: string,
): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  if (typeof value === 'string') return [[path, value]];
  const members = Object.entries((value ?? {}) as Readonly<Record<string, Json | undefined>>);
  return members.flatMap(([name, member]) => flatten(member, nameField(path, name)));
}
