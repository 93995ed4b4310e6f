import type { RecordNode } from './shape.ts';

/* Owns the meaning of the keys of a record: names of members, other names, and case. */

/** Names of members match exactly, or regardless of case as in Go's JSON decoder. */
export type KeyRules = { readonly members: 'exact' | 'fold-case' };

export type Keyed = Record<string, unknown>;

/** Without a prototype: a member may be called `__proto__`. */
export const createKeyed = (): Keyed => Object.create(null) as Keyed;

type Found = { readonly step: string; readonly member: unknown };

type Matched = {
  /** By the name in the shape, each with its step in a path: an alias stays as written. */
  readonly find: (name: string) => Found | undefined;
  readonly others: Keyed;
  /** Keys that mean a member which another key before them meant as well. */
  readonly repeated: readonly string[];
};

export function matchMembers(shape: RecordNode, value: Keyed, rules: KeyRules): Matched {
  if (rules.members === 'exact' && !shape.aliases) return matchExactly(shape, value);
  const known = new Map<string, Found>();
  const others = createKeyed();
  const repeated: string[] = [];
  const isExact = rules.members === 'exact';
  for (const [written, member] of Object.entries(value)) {
    const name = findName(shape, written, rules);
    if (name === undefined) others[written] = member;
    else if (!known.has(name) || (!isExact && name === written)) {
      known.set(name, { step: isExact ? written : name, member });
    } else if (isExact) repeated.push(written);
  }
  return { find: (name) => known.get(name), others, repeated };
}

/** Most records have nothing to fold and no aliases. */
function matchExactly({ members }: RecordNode, value: Keyed): Matched {
  const others = createKeyed();
  for (const written of Object.keys(value)) {
    if (!Object.hasOwn(members, written)) others[written] = value[written];
  }
  const find = (name: string): Found | undefined =>
    Object.hasOwn(value, name) ? { step: name, member: value[name] } : undefined;
  return { find, others, repeated: [] };
}

/** The member of a record that a key means: the key itself goes before others that fold to it. */
function findName(
  { members, aliases }: RecordNode,
  written: string,
  rules: KeyRules,
): string | undefined {
  if (Object.hasOwn(members, written)) return written;
  if (aliases && Object.hasOwn(aliases, written)) return aliases[written];
  return rules.members === 'exact' ? undefined : foldNames(members).get(foldCase(written));
}

const folded = new WeakMap<object, ReadonlyMap<string, string>>();

function foldNames(members: RecordNode['members']): ReadonlyMap<string, string> {
  const known = folded.get(members);
  if (known) return known;
  const names = new Map(Object.keys(members).map((name) => [foldCase(name), name]));
  folded.set(members, names);
  return names;
}

/**
 * Folds a key: keys that are equal after this are the same key. The dotless i folds to itself
 * alone (Unicode CaseFolding.txt has it for Turkic languages only), although its capital is I.
 */
export const foldCase = (key: string): string =>
  key
    .split('ı')
    .map((part) => part.toLowerCase().toUpperCase())
    .join('ı');
