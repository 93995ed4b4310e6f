import { isAlias, isMap, isScalar, isSeq, LineCounter } from 'yaml';
import { parseDocument } from '../../base/text/yaml.ts';
import type { Document, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { findYamlExcess } from '../../base/text/document-bounds.ts';
import { withoutUndefined } from '../../base/members.ts';
import { explainYaml } from './explain-yaml.ts';
import { maskLines } from './masked-lines.ts';
import type { ConfigProblem } from './problem.ts';
import { listKeys, type SchemaNode } from './schema.ts';

/** A value of the document: plain data, keys spelled as in the schema. */
export type Plain =
  null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** Where a value stands, and how it was written. */
type Mark = { readonly offset: number; readonly plainScalar: boolean };

/** Makes problems about one file: from a path where there is a value, else from an offset. */
export type Reporter = {
  at: (path: string, problem: string, hint?: string) => ConfigProblem;
  atOffset: (offset: number, about: ProblemText) => ConfigProblem;
};

type ProblemText = {
  readonly path: string;
  readonly problem: string;
  readonly hint?: string | undefined;
  /** The value on the line is nobody's business: show the line up to its colon. */
  readonly hideValue?: boolean;
};

export type ConfigDocument = {
  readonly value: Plain;
  readonly problems: readonly ConfigProblem[];
  /** The text is not valid YAML or unfolds to too much: there is no value to check. */
  readonly isBroken: boolean;
  readonly report: Reporter;
  /** Whether the value was written without quotes. */
  isUnquoted: (path: string) => boolean;
  /** The offset of a key or value, for unknown keys. */
  offsetOf: (path: string) => number;
};

/** More nodes than any configuration has: what aliases of aliases would unfold to is refused. */
const MAX_NODES = 20_000;

/** What stands for the value of a key that the schema does not know. */
const UNKNOWN: Plain = {};

/**
 * Reads YAML along a schema: keys match without regard to case; a plain scalar where the schema wants
 * a string keeps its written text (`4.20` is not the number 4.2); an empty value counts as absent.
 */
export function parseConfigDocument(
  text: string,
  file: string,
  schema: SchemaNode,
): ConfigDocument {
  const lines = new LineCounter();
  const excess = findYamlExcess(text, lines);
  const document = parseDocument(excess ? '' : text, {
    ...(!excess && { lineCounter: lines }),
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: 'silent',
  });
  const report = createReporter(text, file, lines);
  const walk = new Walk(document, report);
  const faults = document.errors.map(({ code, pos }) => ({ at: pos[0], why: explainYaml(code) }));
  if (excess) faults.push({ at: excess.offset, why: excess.message });
  const problems = faults.map(({ at, why }) =>
    report.atOffset(at, { path: '', problem: `not valid YAML: ${why}` }),
  );
  const value = problems.length === 0 ? walk.read(document.contents, schema, '') : {};
  return {
    value,
    problems: [...problems, ...walk.problems],
    isBroken: problems.length > 0 || walk.isTooLarge,
    report: {
      ...report,
      at: (path, problem, hint) => report.atOffset(walk.offsetOf(path), { path, problem, hint }),
    },
    isUnquoted: (path) => walk.marks.get(path)?.plainScalar ?? false,
    offsetOf: (path) => walk.offsetOf(path),
  };
}

function createReporter(text: string, file: string, lines: LineCounter): Reporter {
  const masked = maskLines(text, listKeys());
  const atOffset: Reporter['atOffset'] = (offset, { path, problem, hint, hideValue }) => {
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    const shown = masked[line - 1] ?? '';
    const lineText = hideValue ? shown.replace(/^([^:]*:).*$/, '$1') : shown;
    const column = Math.max(1, col);
    return {
      file,
      line: Math.max(1, line),
      column,
      path,
      problem,
      lineText,
      ...withoutUndefined({ hint }),
    };
  };
  return { atOffset, at: (path, problem, hint) => atOffset(0, { path, problem, hint }) };
}

class Walk {
  readonly marks = new Map<string, Mark>();
  readonly problems: ConfigProblem[] = [];
  readonly #document: Document.Parsed;
  readonly #report: Reporter;
  /** The lists and mappings that hold the value being read. */
  readonly #holders = new Set<Node>();
  #nodes = 0;

  constructor(document: Document.Parsed, report: Reporter) {
    this.#document = document;
    this.#report = report;
  }

  get isTooLarge(): boolean {
    return this.#nodes > MAX_NODES;
  }

  /** Of the value, or of the nearest thing above it that is written. */
  offsetOf(path: string): number {
    for (let at = path; at !== ''; at = at.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
      const mark = this.marks.get(at);
      if (mark) return mark.offset;
    }
    return this.marks.get('')?.offset ?? 0;
  }

  read(node: Node | null | undefined, schema: SchemaNode | undefined, path: string): Plain {
    const target = isAlias(node) ? node.resolve(this.#document) : node;
    this.#mark(path, node, isScalar(target) && target.type === 'PLAIN');
    if (++this.#nodes > MAX_NODES) return this.#refuseSize(path);
    if (isMap(target) || isSeq(target)) return this.#readCollection(target, schema, path);
    return isScalar(target) ? readScalar(target, schema) : null;
  }

  #readCollection(target: YAMLMap | YAMLSeq, schema: SchemaNode | undefined, path: string): Plain {
    if (this.#holders.has(target)) return this.#refuse(path, 'is an alias to what holds it');
    this.#holders.add(target);
    const read = isSeq(target)
      ? target.items.map((item, index) =>
          this.read(item as Node | null, schema?.items, `${path}[${index}]`),
        )
      : schema?.properties
        ? this.#readMap(target, schema, path)
        : {};
    this.#holders.delete(target);
    return read;
  }

  #mark(path: string, node: Node | null | undefined, plainScalar: boolean): void {
    if (this.marks.has(path) && !node?.range) return;
    this.marks.set(path, { offset: node?.range?.[0] ?? this.offsetOf(path), plainScalar });
  }

  #refuseSize(path: string): Plain {
    if (this.#nodes > MAX_NODES + 1) return null;
    return this.#refuse(path, `the document unfolds to more than ${MAX_NODES} values`);
  }

  #refuse(path: string, problem: string): null {
    this.problems.push(this.#report.atOffset(this.offsetOf(path), { path, problem }));
    return null;
  }

  #readMap(map: YAMLMap, schema: SchemaNode, path: string): Plain {
    // Without a prototype: a key may be called __proto__.
    const result = Object.create(null) as Record<string, Plain>;
    const seen = new Map<string, number>();
    for (const { key, value } of map.items as readonly Pair<Node | null, Node | null>[]) {
      const name = canonicalKey(key, schema);
      const place = path === '' ? name : `${path}.${name}`;
      const offset = key?.range?.[0] ?? 0;
      if (this.#isDuplicate(seen, { name, place, offset })) continue;
      const child = findMember(schema, name);
      const read = child === undefined ? UNKNOWN : this.read(value, child, place);
      // A key without a usable value is a place to point at all the same.
      if (isUnusable(read)) this.marks.set(place, { offset, plainScalar: false });
      if (read !== null) result[name] = read;
    }
    return result;
  }

  #isDuplicate(
    seen: Map<string, number>,
    key: { readonly name: string; readonly place: string; readonly offset: number },
  ): boolean {
    const first = seen.get(key.name);
    seen.set(key.name, first ?? key.offset);
    if (first === undefined) return false;
    const { line } = this.#report.atOffset(first, { path: '', problem: '' });
    this.problems.push(
      this.#report.atOffset(key.offset, {
        path: key.place,
        problem: `is written twice, first in line ${line}`,
        hideValue: true,
      }),
    );
    return true;
  }
}

const isUnusable = (read: Plain): boolean => read === null || read === UNKNOWN;

function findMember({ properties = {} }: SchemaNode, name: string): SchemaNode | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function canonicalKey(key: Node | null, schema: SchemaNode): string {
  const written = isScalar(key) ? (key.source ?? String(key.value)) : '(no text)';
  const lower = written.toLowerCase();
  const names = Object.keys(schema.properties ?? {});
  return names.find((name) => name.toLowerCase() === lower) ?? written;
}

function readScalar(scalar: Scalar, schema: SchemaNode | undefined): Plain {
  const { value } = scalar;
  if (value === null || value === undefined) return null;
  if (scalar.type === 'PLAIN') return readPlainScalar(scalar, schema?.type);
  return isPrimitive(value) ? value : JSON.stringify(value);
}

function readPlainScalar({ value, source = '' }: Scalar, type: SchemaNode['type']): Plain {
  if (type === 'string') return source;
  if (type === 'boolean') return readFlag(source) ?? source;
  return isPrimitive(value) ? value : JSON.stringify(value);
}

/** With the words of YAML 1.1, which existing files may use. */
function readFlag(source: string): boolean | undefined {
  if (/^(?:true|yes|on)$/i.test(source)) return true;
  return /^(?:false|no|off)$/i.test(source) ? false : undefined;
}

const isPrimitive = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);
