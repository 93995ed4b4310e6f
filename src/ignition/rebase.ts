import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../base/lists.ts';
import type { RecordNode, Shape } from '../shape/shape.ts';
import { keyOf } from './merge.ts';
import { DOCUMENT, type Field, findField, type IgnitionConfig } from './schema.ts';

type Entry = Readonly<Record<string, unknown>>;

/** A value before it was changed, the changed value, and the value that gets the change. */
export type Sides<Value> = { readonly before: Value; readonly now: Value; readonly base: Value };

/** A config with changes that were made to another one. */
export type Rebased = {
  readonly config: IgnitionConfig;
  /** Changed parts, such as `storage.files /etc/motd`. */
  readonly changed: readonly string[];
  /** Parts that the base has in a third form, which the config keeps. */
  readonly conflicts: readonly string[];
};

/**
 * Makes the changes that lead from one config to another in a third: a three-way merge, whose lists are joined
 * by the keys of their entries. New files and users precede those of the base, and other new entries follow
 * them, like the values of a site.
 */
export function rebaseConfig(sides: Sides<IgnitionConfig>): Rebased {
  const [changed, conflicts] = [new Set<string>(), new Set<string>()];
  const context = { changed, conflicts, path: '', isEntry: false };
  const config = rebaseMember(sides, DOCUMENT, context);
  return {
    config: config as IgnitionConfig,
    changed: [...changed],
    conflicts: [...conflicts],
  };
}

/** Chooses one of three values; undefined if both sides changed it, each in its own way. */
export function chooseRebased<Value>({
  before,
  now,
  base,
}: Sides<Value>): { readonly value: Value } | undefined {
  if (isDeepStrictEqual(now, before) || isDeepStrictEqual(now, base)) return { value: base };
  return isDeepStrictEqual(before, base) ? { value: now } : undefined;
}

type Context = {
  readonly changed: Set<string>;
  readonly conflicts: Set<string>;
  readonly path: string;
  /** True inside an entry of a list, which is named as a whole. */
  readonly isEntry: boolean;
};

function rebaseMember(sides: Sides<unknown>, field: Field | undefined, context: Context): unknown {
  const { before, now, base } = sides;
  if (isDeepStrictEqual(now, before)) return base;
  const chosen = chooseRebased(sides);
  const joined = joinMember(sides, field, context);
  if (joined === undefined) {
    context.changed.add(context.path);
    if (!chosen) context.conflicts.add(context.path);
  }
  return chosen ? chosen.value : (joined ?? base);
}

/** Joins the members of an object or the entries of a list; undefined for a value that has no parts. */
function joinMember(sides: Sides<unknown>, field: Field | undefined, context: Context): unknown {
  const { before, now, base } = sides;
  if (field?.kind === 'list' && field.key !== undefined && field.key.length > 0) {
    const lists = { before: listOf(before), now: listOf(now), base: listOf(base) };
    return rebaseList(lists, { key: field.key, of: field.of }, context);
  }
  return field?.kind === 'record' ? joinEntries(sides, field, context) : undefined;
}

function joinEntries(
  { before, now, base }: Sides<unknown>,
  shape: RecordNode,
  context: Context,
): Entry | undefined {
  if (now === undefined || (base === undefined && before !== undefined)) return undefined;
  const entries = { before: before ?? {}, now, base: base ?? {} };
  return areEntries(entries) ? rebaseMembers(entries, shape, context) : undefined;
}

const areEntries = (sides: Sides<unknown>): sides is Sides<Entry> =>
  Object.values(sides).every(isObject);

const listOf = (value: unknown): readonly Entry[] => (value ?? []) as readonly Entry[];

function rebaseMembers(sides: Sides<Entry>, shape: RecordNode, context: Context): Entry {
  const { before, now, base } = sides;
  const { path, isEntry } = context;
  const keys = new Set([...Object.keys(base), ...Object.keys(now), ...Object.keys(before)]);
  const merged = [...keys].map((key): readonly [string, unknown] => {
    const field = findField(shape, key);
    const own = path === '' ? key : `${path}.${key}`;
    const inner = { ...context, path: isEntry ? path : own };
    return [
      key,
      rebaseMember({ before: before[key], now: now[key], base: base[key] }, field, inner),
    ];
  });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

/** Lists whose new entries come first. */
const LEADING: readonly string[] = ['storage.files', 'passwd.users'];

function rebaseList(
  { before, now, base }: Sides<readonly Entry[]>,
  { key, of }: { readonly key: readonly string[]; readonly of: Shape },
  context: Context,
): readonly Entry[] {
  const { path, isEntry } = context;
  const byKey = (list: readonly Entry[]): ReadonlyMap<string, Entry> =>
    new Map(list.map((entry) => [keyOf(entry, key), entry]));
  const [earlier, later, kept] = [byKey(before), byKey(now), byKey(base)];
  const rebase = (name: string): readonly Entry[] => {
    const shown = name.slice(name.indexOf('=') + 1);
    // A source may hold a whole config, or a password.
    const isNamed = !isEntry && !key.includes('source');
    const inner = { ...context, path: isNamed ? `${path} ${shown}` : path, isEntry: true };
    const sides = { before: earlier.get(name), now: later.get(name), base: kept.get(name) };
    const entry = rebaseMember(sides, of, inner);
    return entry === undefined ? [] : [entry as Entry];
  };
  const joined = [...kept.keys()].flatMap(rebase);
  const added = [...later.keys()].filter((name) => !kept.has(name)).flatMap(rebase);
  return LEADING.includes(path) ? [...added, ...joined] : [...joined, ...added];
}
