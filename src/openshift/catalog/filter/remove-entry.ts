import { withoutUndefined } from '../../../base/lists.ts';
import type { ChannelEntry } from '../catalog.ts';
import { compareBuilds, compareText, parseBundleVersion } from './version/bundle-version.ts';

export type RemovedEntry = {
  readonly entries: readonly ChannelEntry[];
  /** The entry that takes over what the removed one replaced and skipped; absent when nothing needs it. */
  readonly heir?: ChannelEntry;
  readonly isHead: boolean;
};

/**
 * A channel's entries without one of them, as if its bundle had never been published and clusters that
 * have it nevertheless should upgrade. OLM's own way to withdraw a bundle is that the next one skips it
 * and replaces what it replaced, and so it is here. When the head goes, the highest version of what it
 * superseded becomes the head and skips the others: a channel that had one head keeps one.
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
  const supersedes = (entry: ChannelEntry, other: string): boolean =>
    entry.replaces === other || (entry.skips ?? []).includes(other);
  const below = [removed.replaces ?? '', ...(removed.skips ?? [])];
  const orphans = rest.filter(
    (entry) => below.includes(entry.name) && !rest.some((other) => supersedes(other, entry.name)),
  );
  const above = rest.filter((entry) => supersedes(entry, name));
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

/** By version; one without any is lowest. */
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
