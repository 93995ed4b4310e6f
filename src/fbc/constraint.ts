import { ConfigError } from '../base/errors.ts';
import type { ChannelGraph } from './channel-graph.ts';
import {
  type BundleVersion,
  compareNumbers,
  comparePrereleases,
  compareBundleVersions,
  parseBundleVersion,
} from './version.ts';

export type VersionConstraint = {
  /** Tests a version; false also for text that is not a semantic version. */
  readonly accepts: (version: string) => boolean;
};

/** One comparison with a version; `parts` counts the numbers that are written: `1.2` has two. */
type Comparison = {
  readonly matches: (version: BundleVersion, bound: Bound) => boolean;
  readonly bound: Bound;
};

type Bound = { readonly version: BundleVersion; readonly parts: 0 | 1 | 2 | 3 };

const PART = '[0-9]+|[xX*]';
const VERSION =
  `v?(${PART})(?:\\.(${PART}))?(?:\\.(${PART}))?` +
  `(-[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?`;
const OPERATOR = '!=|>=|=>|<=|=<|~>|=|>|<|~|\\^|';
const COMPARISON = new RegExp(`\\s*(${OPERATOR})\\s*${VERSION}(?=$|[\\s,])\\s*,?\\s*`, 'y');

const MATCHERS: Readonly<Record<string, Comparison['matches']>> = {
  '': isEqual,
  '=': isEqual,
  '!=': isNotEqual,
  '>': isGreater,
  '<': (version, bound) => compareBundleVersions(version, bound.version) < 0,
  '>=': (version, bound) => compareBundleVersions(version, bound.version) >= 0,
  '=>': (version, bound) => compareBundleVersions(version, bound.version) >= 0,
  '<=': isLessOrEqual,
  '=<': isLessOrEqual,
  '~': isNear,
  '~>': isNear,
  '^': isCompatible,
};

/** Characters of a constraint; catalogs have some thirty. Reading one may take their square. */
const MAX_LENGTH = 1000;

/**
 * A constraint in the language of Masterminds/semver v3, which oc-mirror filters with: comparisons
 * joined by spaces or commas must all hold, `||` separates alternatives, `A - B` includes both ends.
 * Build metadata is ignored. A prerelease is accepted only if a comparison of the same alternative
 * has a prerelease itself. npm's ranges differ in both, and are not used.
 */
export function parseConstraint(text: string): VersionConstraint {
  const spaced = text.replaceAll(/\s+/g, ' ');
  if (spaced.length > MAX_LENGTH) throw tooLong(spaced);
  const alternatives = spaced
    .replaceAll(new RegExp(`\\s*(${VERSION})\\s+-\\s+(${VERSION})\\s*`, 'g'), rewriteHyphen)
    .split('||')
    .map((group) => parseGroup(group, text));
  return {
    accepts: (candidate) => {
      const version = parseBundleVersion(candidate);
      return version !== undefined && alternatives.some((group) => acceptsAll(group, version));
    },
  };
}

/** The version of a bound, missing parts as zeros; undefined if it is not a version. */
export function completeVersion(text: string): string | undefined {
  const parts = /^v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?$/.exec(text);
  if (parts === null) return undefined;
  const full = `${parts[1] ?? '0'}.${parts[2] ?? '0'}.${parts[3] ?? '0'}${parts[4] ?? ''}`;
  return parseBundleVersion(full) === undefined ? undefined : full;
}

function rewriteHyphen(range: string): string {
  const [from = '', to = ''] = range.trim().split(/(?<!\s)\s+-\s+/);
  return ` >=${from} <=${to} `;
}

function parseGroup(group: string, whole: string): readonly Comparison[] {
  const comparisons: Comparison[] = [];
  COMPARISON.lastIndex = 0;
  let position = 0;
  while (position < group.length) {
    const match = COMPARISON.exec(group);
    if (match === null) throw improper(whole, group.slice(position));
    position = COMPARISON.lastIndex;
    comparisons.push(readComparison(match, whole));
  }
  if (comparisons.length === 0) throw improper(whole, group);
  return comparisons;
}

function readComparison(match: RegExpExecArray, whole: string): Comparison {
  const [, operator = '', major = '', minor, patch, prerelease = '', build = ''] = match;
  const written = [major, minor, patch];
  const open = written.findIndex((part) => part === undefined || /^[xX*]$/.test(part));
  const parts = (open === -1 ? 3 : open) as Bound['parts'];
  const numbers = written.map((part, index) => (index < parts ? (part ?? '0') : '0'));
  const version = parseBundleVersion(`${numbers.join('.')}${prerelease}${build}`);
  const matches = MATCHERS[operator];
  if (version === undefined || matches === undefined) throw improper(whole, match[0]);
  return { matches, bound: { version, parts } };
}

const tooLong = (text: string): ConfigError =>
  new ConfigError(
    'catalog.constraint',
    `version constraint "${text.slice(0, 30)}..." has ${text.length} characters`,
    { expected: `at most ${MAX_LENGTH}`, hint: 'write fewer comparisons' },
  );

function improper(whole: string, found: string): ConfigError {
  return new ConfigError(
    'catalog.constraint',
    `version constraint ${JSON.stringify(whole)} has ${JSON.stringify(found.trim())} where a comparison is expected`,
    {
      expected: 'comparisons such as ">=1.2.0 <=1.4.0"',
      found: found.trim(),
      hint: 'write full versions',
    },
  );
}

function acceptsAll(group: readonly Comparison[], version: BundleVersion): boolean {
  const takesPrereleases = group.some(({ bound }) => bound.version.prerelease.length > 0);
  if (version.prerelease.length > 0 && !takesPrereleases) return false;
  return group.every(({ matches, bound }) => matches(version, bound));
}

/** `=1.2` means any patch of it. */
function isEqual(version: BundleVersion, bound: Bound): boolean {
  if (bound.parts < 3) return isNear(version, bound);
  return compareBundleVersions(version, bound.version) === 0;
}

function isNotEqual(version: BundleVersion, bound: Bound): boolean {
  if (bound.parts === 3 || bound.parts === 0)
    return compareBundleVersions(version, bound.version) !== 0;
  if (version.major !== bound.version.major) return true;
  if (bound.parts === 1) return false;
  if (version.minor !== bound.version.minor) return true;
  return comparePrereleases(version.prerelease, bound.version.prerelease) !== 0;
}

/** `>11` excludes 11.1.0, and `>11.1` excludes 11.1.5. */
function isGreater(version: BundleVersion, bound: Bound): boolean {
  const major = compareNumbers(version.major, bound.version.major);
  if (bound.parts === 1) return major > 0;
  if (bound.parts === 2) return (major || compareNumbers(version.minor, bound.version.minor)) > 0;
  return compareBundleVersions(version, bound.version) > 0;
}

/** `<=11` includes 11.1.0, and `<=11.1` includes 11.1.5. */
function isLessOrEqual(version: BundleVersion, bound: Bound): boolean {
  if (bound.parts === 3) return compareBundleVersions(version, bound.version) <= 0;
  const major = compareNumbers(version.major, bound.version.major);
  if (major > 0) return false;
  return major < 0 || bound.parts === 1 || compareNumbers(version.minor, bound.version.minor) <= 0;
}

/** `~1.2.3` is 1.2.3 and its later patches; `~1` any minor. `~0.0.0` and `*` are everything. */
function isNear(version: BundleVersion, bound: Bound): boolean {
  if (compareBundleVersions(version, bound.version) < 0) return false;
  if (bound.parts === 0 || (bound.parts === 3 && isZero(bound.version))) return true;
  if (version.major !== bound.version.major) return false;
  return bound.parts === 1 || version.minor === bound.version.minor;
}

/** `^1.2.3`: all numbers after the leftmost one that is not 0 may be higher. */
function isCompatible(version: BundleVersion, bound: Bound): boolean {
  const { major, minor, patch } = bound.version;
  if (compareBundleVersions(version, bound.version) < 0) return false;
  if (version.major !== major) return false;
  if (major !== '0' || bound.parts === 1) return true;
  if (version.minor !== minor) return false;
  return minor !== '0' || bound.parts === 2 || version.patch === patch;
}

function isZero(version: BundleVersion): boolean {
  return version.major === '0' && version.minor === '0' && version.patch === '0';
}

export type RangeFilter = {
  /** Range in the form of the user's bounds: `>=1.2.0 <=1.4.0`. */
  readonly range: string;
  /** Version of each bundle, by name; a missing name is outside every range. */
  readonly versions: ReadonlyMap<string, string>;
};

export type SelectedEntries = {
  /** May hold names that are not entries of the channel. */
  readonly names: ReadonlySet<string>;
  readonly warnings: readonly string[];
};

type Node = { readonly name: string; readonly inRange: readonly string[] };

/**
 * The entries of a channel that a range selects: the shortest part of the chain that holds everything
 * in range, so that the channel stays one chain with one head. Entries of that part outside the range
 * are selected with a warning; of the entries that it skips, only those in range are selected.
 */
export function filterByRange(
  graph: ChannelGraph,
  { range, versions }: RangeFilter,
): SelectedEntries {
  const constraint = parseConstraint(range);
  const isAccepted = (name: string): boolean => {
    const version = versions.get(name);
    return version !== undefined && constraint.accepts(version);
  };
  const selected = cutChain(listNodes(graph, isAccepted));
  const names = new Set<string>();
  const warnings: string[] = [];
  for (const { name, inRange } of selected) {
    if (!isAccepted(name)) warnings.push(describeNeeded(name, versions.get(name), range));
    for (const wanted of [name, ...inRange]) names.add(wanted);
  }
  return { names, warnings };
}

/** Names of the shortest part of the chain with these entries; may hold names that are not entries. */
export function keepChain(graph: ChannelGraph, wanted: ReadonlySet<string>): ReadonlySet<string> {
  const selected = cutChain(listNodes(graph, (name) => wanted.has(name)));
  return new Set(selected.flatMap(({ name, inRange }) => [name, ...inRange]));
}

/** The chain, head first, and the name that its last entry replaces: it may be of another channel. */
function listNodes(graph: ChannelGraph, isAccepted: (name: string) => boolean): readonly Node[] {
  const nodes = graph.chain.map(({ name, skips = [] }) => ({
    name,
    inRange: [...new Set(skips)].filter(isAccepted),
  }));
  const beyond = graph.chain.at(-1)?.replaces ?? '';
  if (beyond !== '') nodes.push({ name: beyond, inRange: [] });
  return nodes.map((node) => ({
    ...node,
    inRange: isAccepted(node.name) ? [node.name, ...node.inRange] : node.inRange,
  }));
}

/**
 * Cuts the chain from the lowest node that has all of the range at or below it, down to the lowest
 * that has any. A bundle counts once, at the lowest node that mentions it.
 */
function cutChain(nodes: readonly Node[]): readonly Node[] {
  const seen = new Set<string>();
  let head = 0;
  let end = 0;
  for (const [index, { inRange }] of [...nodes.entries()].reverse()) {
    const before = seen.size;
    for (const name of inRange) seen.add(name);
    if (seen.size === before) continue;
    if (before === 0) end = index + 1;
    head = index;
  }
  return nodes.slice(head, end);
}

function describeNeeded(name: string, version: string | undefined, range: string): string {
  const purpose = 'required to ensure inclusion of all bundles in the range';
  return version === undefined
    ? `including bundle "${name}": it is unversioned but is ${purpose}`
    : `including bundle "${name}" with version "${version}": it falls outside the specified range of "${range}" but is ${purpose}`;
}
