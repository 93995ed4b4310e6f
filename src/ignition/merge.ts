import { isObject } from '../base/lists.ts';
import type { RecordNode } from '../shape/shape.ts';
import { DOCUMENT, type Field, findField, type IgnitionConfig, SHARED_NAMES } from './schema.ts';

type Entry = Readonly<Record<string, unknown>>;

/**
 * Merges a parent and a child configuration as Ignition does (`ignition.config.merge`, and system
 * configs below the user's): the child's values win member by member, lists are joined by their
 * entries' keys, and the child decides whether a path is a file, directory or link.
 *
 * The result declares the newer version of the two, since the older is a subset of it. It may be
 * invalid even if both inputs are valid: check it again.
 */
export function mergeConfigs(parent: IgnitionConfig, child: IgnitionConfig): IgnitionConfig {
  const merged = mergeMembers(parent, child, DOCUMENT) as IgnitionConfig;
  const versions = [parent.ignition.version, child.ignition.version].sort();
  return { ...merged, ignition: { ...merged.ignition, version: versions[1] ?? '' } };
}

function mergeMembers(parent: Entry, child: Entry, shape: RecordNode): Entry {
  const keys = new Set([...Object.keys(parent), ...Object.keys(child)]);
  return Object.fromEntries(
    [...keys].map((key) => {
      const merged = mergeMember(parent[key], child[key], findField(shape, key));
      return [key, withoutNames(merged, namesBeside(child, key))];
    }),
  );
}

function mergeMember(parent: unknown, child: unknown, field: Field | undefined): unknown {
  if (child === undefined) return parent;
  if (parent === undefined || field === undefined) return child;
  if (field.kind === 'record') return mergeMembers(parent as Entry, child as Entry, field);
  if (field.kind !== 'list') return child;
  return field.of.kind === 'record'
    ? mergeLists(parent as readonly Entry[], child as readonly Entry[], { ...field, of: field.of })
    : mergeStrings(parent as readonly string[], child as readonly string[], field);
}

function mergeStrings(
  parent: readonly string[],
  child: readonly string[],
  { isConcatenated = false }: Field,
): readonly string[] {
  if (isConcatenated) return [...parent, ...child];
  const known = new Set(parent);
  return [...parent, ...child.filter((entry) => !known.has(entry))];
}

function mergeLists(
  parent: readonly Entry[],
  child: readonly Entry[],
  { key = [], of }: { readonly key?: readonly string[]; readonly of: RecordNode },
): readonly Entry[] {
  if (key.length === 0) return [...parent, ...child];
  const children = new Map(child.map((entry) => [keyOf(entry, key), entry]));
  const parents = new Set(parent.map((entry) => keyOf(entry, key)));
  const joined = parent.map((entry) => {
    const other = children.get(keyOf(entry, key));
    return other === undefined ? entry : mergeMembers(entry, other, of);
  });
  return [...joined, ...child.filter((entry) => !parents.has(keyOf(entry, key)))];
}

/** Key of a list entry. A partition's key is its number or, if that is 0 or absent, its label. */
export function keyOf(entry: Entry, key: readonly string[]): string {
  const name = key.find((member) => entry[member] !== undefined && entry[member] !== 0);
  return name === undefined ? '' : `${name}=${String(entry[name])}`;
}

/** The names that the child has in the other lists of the same namespace. */
function namesBeside(child: Entry, key: string): ReadonlySet<unknown> {
  const lists = SHARED_NAMES.find((names) => names.includes(key)) ?? [];
  const others = lists.filter((other) => other !== key);
  return new Set(
    others.flatMap((other) => ((child[other] ?? []) as readonly unknown[]).map(nameOf)),
  );
}

const nameOf = (entry: unknown): unknown => (isObject(entry) ? entry['path'] : entry);

const withoutNames = (list: unknown, names: ReadonlySet<unknown>): unknown =>
  names.size === 0 || !Array.isArray(list)
    ? list
    : list.filter((entry) => !names.has(nameOf(entry)));
