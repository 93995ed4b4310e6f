import type { DocumentProblem } from '../base/errors.ts';
import type { ConfigDocument } from './document.ts';
import type { Plain } from './shape.ts';

type Scalar = null | boolean | number | string;

/** A value, and the document that wrote it; for a mapping the first document that did. */
export type MergedEntry = {
  readonly from: ConfigDocument;
  /** Undefined if the document removed the value. */
  readonly content: Map<string, MergedEntry> | MergedEntry[] | Scalar | undefined;
};

/** Several documents as one: every problem is reported at the place of its value. */
export type MergedDocument = ConfigDocument & {
  readonly root: MergedEntry;
  /** The document that wrote the value at a path, or the nearest value above it. */
  readonly ownerOf: (path: string) => ConfigDocument;
};

/** One value for one place. Its document has the value alone. */
export type Setting = {
  readonly document: ConfigDocument;
  /** Members by name, items of lists by index. */
  readonly steps: readonly (string | number)[];
};

/**
 * Merges later documents over earlier ones, and settings over all: mappings are merged by key,
 * everything else replaces the earlier value, and null removes it.
 */
export function mergeDocuments(
  documents: readonly [ConfigDocument, ...ConfigDocument[]],
  settings: readonly Setting[] = [],
): MergedDocument {
  const [first, ...overlays] = documents;
  let root = removeNulls(build(first.value, first), first);
  for (const overlay of overlays) {
    // A file of comments has no value.
    if (overlay.value !== null) root = removeNulls(merge(root, overlay.value, overlay), overlay);
  }
  const refused: DocumentProblem[] = [];
  for (const setting of settings.filter(({ document }) => document.problems.length === 0)) {
    const outcome = set(root, setting);
    if ('content' in outcome) root = outcome;
    else refused.push(outcome);
  }
  const all = [...documents, ...settings.map(({ document }) => document)];
  const ownerOf = (path: string): ConfigDocument => find(root, path).from;
  return {
    root,
    ownerOf,
    value: toPlain(root) ?? null,
    problems: [...all.flatMap(({ problems }) => problems), ...refused, ...checkKinds(documents)],
    warnings: all.flatMap(({ warnings }) => warnings),
    isBroken: all.some(({ isBroken }) => isBroken),
    report: (place, ...details) =>
      (typeof place === 'string' ? ownerOf(place) : first).report(place, ...details),
    file: first.file,
    lineOf: (path) => ownerOf(path).lineOf(path),
    writtenOf: (path) => ownerOf(path).writtenOf(path),
    nulls: first.nulls,
    path: first.path,
  };
}

function build(value: Plain, from: ConfigDocument): MergedEntry {
  if (isMapping(value)) {
    const members = Object.entries(value).map(([name, at]) => [name, build(at, from)] as const);
    return { from, content: new Map(members) };
  }
  if (isList(value)) return { from, content: value.map((item) => build(item, from)) };
  return { from, content: value };
}

function merge(target: MergedEntry | undefined, value: Plain, from: ConfigDocument): MergedEntry {
  const members = target?.content;
  if (!(members instanceof Map) || !isMapping(value)) return build(value, from);
  for (const [name, at] of Object.entries(value)) {
    members.set(name, merge(members.get(name), at, from));
  }
  return { from: target?.from ?? from, content: members };
}

/** Marks removed values as absent, at the place at which they were removed. */
function removeNulls(root: MergedEntry, from: ConfigDocument): MergedEntry {
  for (const path of from.nulls) {
    const steps = findSteps(root, path);
    const holder = steps.slice(0, -1).reduce<MergedEntry | undefined>(childOf, root)?.content;
    const [name] = steps.slice(-1);
    if (holder instanceof Map && typeof name === 'string') {
      holder.set(name, { from, content: undefined });
    }
  }
  return root;
}

const childOf = (
  entry: MergedEntry | undefined,
  step: string | number,
): MergedEntry | undefined => {
  const content = entry?.content;
  if (content instanceof Map) return content.get(String(step));
  return Array.isArray(content) ? content[Number(step)] : undefined;
};

/** The names of a path, as far as they exist; the remainder is the last. A key may have dots. */
function findSteps(root: MergedEntry, path: string): readonly (string | number)[] {
  const steps: (string | number)[] = [];
  let entry: MergedEntry | undefined = root;
  let rest = path;
  while (rest !== '') {
    const { content }: MergedEntry = entry;
    const [step, after] = Array.isArray(content)
      ? splitIndex(rest)
      : splitName(rest, content instanceof Map ? content : new Map());
    steps.push(step);
    entry = childOf(entry, step);
    if (entry === undefined) break;
    rest = after;
  }
  return steps;
}

function splitIndex(path: string): readonly [step: number | string, rest: string] {
  const [all, index] = /^\[(\d+)\]\.?/.exec(path) ?? [];
  return all === undefined ? [path, ''] : [Number(index), path.slice(all.length)];
}

function splitName(
  path: string,
  members: ReadonlyMap<string, MergedEntry>,
): readonly [step: string, rest: string] {
  for (const { index } of path.matchAll(/[.[]/g)) {
    const name = path.slice(0, index);
    if (members.has(name)) return [name, path.slice(index).replace(/^\./, '')];
  }
  return [path, ''];
}

function find(root: MergedEntry, path: string): MergedEntry {
  let entry = root;
  for (const step of findSteps(root, path)) {
    const child = childOf(entry, step);
    if (child === undefined) break;
    entry = child;
  }
  return entry;
}

/** @returns the problem if the path does not exist */
function set(
  target: MergedEntry | undefined,
  { document, steps }: Setting,
): MergedEntry | DocumentProblem {
  const [step, ...rest] = steps;
  if (step === undefined) {
    const isNull = document.nulls.has(document.path);
    return isNull ? { from: document, content: undefined } : build(document.value, document);
  }
  const below = set(childOf(target, step), { document, steps: rest });
  if (!('content' in below)) return below;
  return typeof step === 'number'
    ? setItem(target, { document, step, below })
    : setMember(target, { document, step, below });
}

type Step<Name> = {
  readonly document: ConfigDocument;
  readonly step: Name;
  readonly below: MergedEntry;
};

function setMember(
  target: MergedEntry | undefined,
  { document, step, below }: Step<string>,
): MergedEntry {
  if (!(target?.content instanceof Map)) {
    return { from: document, content: new Map([[step, below]]) };
  }
  target.content.set(step, below);
  return target;
}

function setItem(
  target: MergedEntry | undefined,
  { document, step, below }: Step<number>,
): MergedEntry | DocumentProblem {
  const isRemoved = below.content === undefined;
  const isPresent = target !== undefined && Array.isArray(target.content);
  const holder = isPresent ? target : { from: document, content: [] };
  const items = holder.content as readonly MergedEntry[];
  if (isRemoved || step > items.length) return refuseItem(document, { step, isRemoved, items });
  const content = [...items.slice(0, step), below, ...items.slice(step + 1)];
  return { from: holder.from, content };
}

function refuseItem(
  { report, path }: ConfigDocument,
  { step, isRemoved, items }: { step: number; isRemoved: boolean; items: readonly MergedEntry[] },
): DocumentProblem {
  if (isRemoved) {
    return report(path, 'null cannot remove an item of a list', { hint: 'set the whole list' });
  }
  const count = items.length === 1 ? '1 item' : `${items.length} items`;
  const hint = `the next item is [${items.length}]`;
  return report(path, `[${step}] is past the end of the list, which has ${count}`, { hint });
}

const checkKinds = (documents: readonly ConfigDocument[]): readonly DocumentProblem[] =>
  ['apiVersion', 'kind'].flatMap((name) => {
    const written = documents.flatMap((document) => {
      const value = isMapping(document.value) ? document.value[name] : undefined;
      return typeof value === 'string' ? [{ document, value }] : [];
    });
    const [first, ...others] = written;
    if (first === undefined) return [];
    return others
      .filter(({ value }) => value !== first.value)
      .map(({ document, value }) => {
        const problem = `is "${value}", but "${first.value}" in ${first.document.file}`;
        const hint = `write "${first.value}", or leave it out of overlays`;
        return document.report(name, problem, { hint });
      });
  });

function toPlain({ content }: MergedEntry): Plain | undefined {
  if (Array.isArray(content)) return content.map((item) => toPlain(item) ?? null);
  if (!(content instanceof Map)) return content;
  // Without a prototype: a key may be called __proto__.
  const result = Object.create(null) as Record<string, Plain>;
  for (const [name, entry] of content) {
    const value = toPlain(entry);
    if (value !== undefined) result[name] = value;
  }
  return result;
}

const isList = (value: Plain): value is readonly Plain[] => Array.isArray(value);

const isMapping = (value: Plain): value is Readonly<Record<string, Plain>> =>
  value !== null && typeof value === 'object' && !isList(value);
