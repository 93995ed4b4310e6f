import type { IgnitionConfig } from './config.ts';
import { DOCUMENT, NODE_LISTS, type Field, type Members } from './schema.ts';

type Entry = Readonly<Record<string, unknown>>;

/**
 * What Ignition makes of a parent and a child configuration (`ignition.config.merge`, and system
 * configs below the user's): the child's values win member by member, lists are joined by their
 * entries' keys, and a path that the child makes a file, directory or link is only that.
 *
 * The result declares the newer version of the two, since the older is a subset of it. It may be
 * wrong where both parents were right: check it again.
 */
export function mergeConfigs(parent: IgnitionConfig, child: IgnitionConfig): IgnitionConfig {
  const merged = mergeMembers(parent, child, DOCUMENT) as IgnitionConfig;
  const versions = [parent.ignition.version, child.ignition.version].sort();
  return { ...merged, ignition: { ...merged.ignition, version: versions[1] ?? '' } };
}

function mergeMembers(parent: Entry, child: Entry, members: Members): Entry {
  const keys = new Set([...Object.keys(parent), ...Object.keys(child)]);
  return Object.fromEntries(
    [...keys].map((key) => {
      const field = Object.hasOwn(members, key) ? members[key] : undefined;
      const merged = mergeMember(parent[key], child[key], field);
      return [key, NODE_LISTS.includes(key) ? withoutPaths(merged, pathsOf(child, key)) : merged];
    }),
  );
}

function mergeMember(parent: unknown, child: unknown, field: Field | undefined): unknown {
  if (child === undefined) return parent;
  if (parent === undefined || field === undefined) return child;
  switch (field.kind) {
    case 'object':
      return mergeMembers(parent as Entry, child as Entry, field.members);
    case 'strings':
      return mergeStrings(parent as readonly string[], child as readonly string[], field);
    case 'list':
      return mergeLists(parent as readonly Entry[], child as readonly Entry[], field);
    case 'string':
    case 'integer':
    case 'boolean':
      return child;
  }
}

function mergeStrings(
  parent: readonly string[],
  child: readonly string[],
  field: { readonly concatenated: boolean },
): readonly string[] {
  if (field.concatenated) return [...parent, ...child];
  return [...parent, ...child.filter((entry) => !parent.includes(entry))];
}

function mergeLists(
  parent: readonly Entry[],
  child: readonly Entry[],
  field: { readonly members: Members; readonly key: readonly string[] },
): readonly Entry[] {
  if (field.key.length === 0) return [...parent, ...child];
  const children = new Map(child.map((entry) => [keyOf(entry, field.key), entry]));
  const parents = new Set(parent.map((entry) => keyOf(entry, field.key)));
  const joined = parent.map((entry) => {
    const other = children.get(keyOf(entry, field.key));
    return other === undefined ? entry : mergeMembers(entry, other, field.members);
  });
  return [...joined, ...child.filter((entry) => !parents.has(keyOf(entry, field.key)))];
}

/** Partitions have a number or, where it is 0 or absent, a label; everything else has one key. */
function keyOf(entry: Entry, key: readonly string[]): string {
  const name = key.find((member) => entry[member] !== undefined && entry[member] !== 0);
  return name === undefined ? '' : `${name}=${String(entry[name])}`;
}

/** The paths that the child gives to the other kinds of nodes. */
function pathsOf(storage: Entry, kind: string): Set<unknown> {
  const others = NODE_LISTS.filter((other) => other !== kind);
  return new Set(
    others.flatMap((other) =>
      ((storage[other] ?? []) as readonly Entry[]).map((node) => node['path']),
    ),
  );
}

function withoutPaths(nodes: unknown, paths: Set<unknown>): unknown {
  return (nodes as readonly Entry[]).filter((node) => !paths.has(node['path']));
}
