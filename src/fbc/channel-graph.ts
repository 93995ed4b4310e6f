import { ConfigError } from '../base/errors.ts';
import { groupBy, withoutUndefined } from '../base/lists.ts';
import type { CatalogChannel, ChannelEntry } from './catalog.ts';
import { compareBuilds, compareText, parseBundleVersion } from './version.ts';

/** Relation between the entries of a channel: which supersedes which. */
export type ChannelGraph = {
  /** The entry that no other replaces or skips. */
  readonly head: ChannelEntry;
  /** Head first; each replaces the next, and the last replaces no entry of the channel. */
  readonly chain: readonly ChannelEntry[];
};

/**
 * The upgrade graph of a channel. `skipRange` plays no part in it, and names that are replaced or
 * skipped need not be entries: real catalogs prune their tails. Linear in entries and edges.
 */
export function planChannelGraph(channel: CatalogChannel): ChannelGraph {
  const problems = findGraphProblems(channel);
  const entries = indexEntries(channel);
  const head = entries.get(listHeads(channel)[0] ?? '');
  if (problems.length > 0 || head === undefined)
    throw new ConfigError('catalog.channel', problems.join('\n'), {
      found: `channel "${channel.name}" of package "${channel.package}"`,
    });
  const chain: ChannelEntry[] = [];
  let entry: ChannelEntry | undefined = head;
  while (entry !== undefined) {
    chain.push(entry);
    entry = entries.get(entry.replaces ?? '');
  }
  return { head, chain };
}

/** Name of the entry that no other replaces or skips. @throws ConfigError `catalog.channel` */
export function findHead(channel: CatalogChannel): string {
  return planChannelGraph(channel).head.name;
}

/**
 * The entries that an upgrade from one entry to the head can pass, both included: all that replace or
 * skip it, and all that replace or skip those. They are one graph with the same head.
 */
export function listAbove(channel: CatalogChannel, name: string): ReadonlySet<string> {
  const steps = channel.entries.flatMap((entry) =>
    [...listSuperseded(entry)].map((superseded) => ({ superseded, heir: entry.name })),
  );
  const heirs = groupBy(steps, ({ superseded }) => superseded);
  const above = new Set([name]);
  // The set grows while it is walked: for-of sees what is added.
  for (const each of above) for (const { heir } of heirs.get(each) ?? []) above.add(heir);
  return above;
}

/** Reasons why a channel is not one graph with one head; empty if it is. */
export function findGraphProblems(channel: CatalogChannel): readonly string[] {
  if (channel.entries.length === 0) return ['channel has no entries'];
  const problems = findEntryProblems(channel);
  const heads = listHeads(channel);
  if (heads.length === 0) problems.push('no channel heads found');
  if (heads.length > 1) problems.push(`multiple channel heads found: [${heads.join(' ')}]`);
  if (problems.length === 0 && hasCycle(channel))
    problems.push('detected a cycle in the upgrade graph of the channel');
  return problems;
}

function findEntryProblems(channel: CatalogChannel): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const { name, replaces, skips = [] } of channel.entries) {
    if (seen.has(name)) problems.push(`duplicate channel entry "${name}"`);
    seen.add(name);
    if (replaces === name) problems.push(`invalid channel entry "${name}": replaces itself`);
    if (skips.includes(name)) problems.push(`invalid channel entry "${name}": skips itself`);
  }
  return problems;
}

/** Entries that no other replaces or skips, sorted. */
function listHeads(channel: CatalogChannel): readonly string[] {
  const superseded = new Set<string>();
  for (const entry of channel.entries)
    for (const name of listSuperseded(entry)) if (name !== entry.name) superseded.add(name);
  const names = new Set(channel.entries.map(({ name }) => name));
  return [...names].filter((name) => !superseded.has(name)).sort();
}

/**
 * Kahn's algorithm: an entry is taken after all that supersede it, so each is queued once regardless
 * of the number of edges to it. Entries that are never taken are on a cycle or below one.
 */
function hasCycle(channel: CatalogChannel): boolean {
  const entries = indexEntries(channel);
  const waitsFor = new Map([...entries.keys()].map((name) => [name, 0]));
  for (const entry of entries.values())
    for (const name of listSuperseded(entry)) {
      const count = waitsFor.get(name);
      if (count !== undefined) waitsFor.set(name, count + 1);
    }
  const queue = [...entries.values()].filter(({ name }) => waitsFor.get(name) === 0);
  // The array grows while it is walked: for-of sees what is pushed.
  for (const entry of queue)
    for (const name of listSuperseded(entry)) {
      const next = entries.get(name);
      const count = (waitsFor.get(name) ?? 0) - 1;
      waitsFor.set(name, count);
      if (next !== undefined && count === 0) queue.push(next);
    }
  return queue.length < entries.size;
}

/** Names that an entry replaces or skips, each once. */
function listSuperseded({ replaces, skips = [] }: ChannelEntry): Set<string> {
  return new Set(replaces === undefined || replaces === '' ? skips : [replaces, ...skips]);
}

function indexEntries(channel: CatalogChannel): ReadonlyMap<string, ChannelEntry> {
  return new Map(channel.entries.map((entry) => [entry.name, entry]));
}

export type RemovedEntry = {
  readonly entries: readonly ChannelEntry[];
  /** The entry that takes over what the removed one replaced and skipped; absent if there is nothing to take over. */
  readonly heir?: ChannelEntry;
  readonly isHead: boolean;
};

/**
 * A channel's entries without one of them, as if its bundle had never been published; clusters that
 * have it can still upgrade. As when OLM withdraws a bundle, the next entry skips it and replaces what
 * it replaced. If the head is removed, the highest version that it superseded becomes the head and
 * skips the others: a channel that had one head still has one.
 *
 * @param versions of bundles by name
 */
export function removeEntry(
  entries: readonly ChannelEntry[],
  name: string,
  versions: ReadonlyMap<string, string>,
): RemovedEntry | undefined {
  const removed = entries.find((entry) => entry.name === name);
  if (removed === undefined) return undefined;
  const rest = entries
    .filter((entry) => entry.name !== name)
    .map((entry) => (entry.replaces === name ? inherit(entry, removed) : entry));
  const below = listSuperseded(removed);
  const alone = new Set(rest.map((entry) => entry.name).filter((other) => below.has(other)));
  for (const { replaces = '', skips = [] } of alone.size > 0 ? rest : [])
    for (const other of [replaces, ...skips]) alone.delete(other);
  const orphans = rest.filter((entry) => alone.has(entry.name));
  const above = rest.filter(
    ({ replaces, skips = [] }) => replaces === name || skips.includes(name),
  );
  const isHead = above.length === 0;
  const candidates = isHead ? orphans : above;
  const [heir] = candidates.toSorted((a, b) => compareEntries(b, a, versions));
  if (heir === undefined) return { entries: rest, isHead };
  const others = orphans.map((orphan) => orphan.name).filter((orphan) => orphan !== heir.name);
  const changed = others.length === 0 ? heir : skipAlso(heir, others);
  return {
    entries: rest.map((entry) => (entry === heir ? changed : entry)),
    heir: changed,
    isHead,
  };
}

function inherit(entry: ChannelEntry, { name, replaces, skips = [] }: ChannelEntry): ChannelEntry {
  const heir = skipAlso(entry, [name, ...skips]);
  if (replaces !== undefined) return { ...heir, replaces };
  return omitReplaces(heir);
}

const omitReplaces = ({ name, skips, skipRange }: ChannelEntry): ChannelEntry => ({
  name,
  ...withoutUndefined({ skips, skipRange }),
});

const skipAlso = (entry: ChannelEntry, names: readonly string[]): ChannelEntry => ({
  ...entry,
  skips: [...new Set([...(entry.skips ?? []), ...names])],
});

/** Compares entries by version; an entry without a version is lowest. */
function compareEntries(
  a: ChannelEntry,
  b: ChannelEntry,
  versions: ReadonlyMap<string, string>,
): number {
  const [first, second] = [a, b].map(({ name }) => parseBundleVersion(versions.get(name) ?? ''));
  if (first !== undefined && second !== undefined)
    return compareBuilds(first, second) || compareText(a.name, b.name);
  return Number(first !== undefined) - Number(second !== undefined) || compareText(a.name, b.name);
}
