import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { Document, Node, Pair, Scalar, YAMLMap } from 'yaml';
import { findNearest } from '../edit-distance.ts';
import type { ConfigProblem } from '../problem.ts';
import { createReporter, type Report } from './report.ts';
import { resolveScalar } from './scalar.ts';
import type { Free, Shape, ValueOf } from './shape.ts';
import type { SiteFile } from './site.ts';

/** A file of a site, read along its shape. */
export type SiteDocument<S> = {
  readonly value: ValueOf<S>;
  /** Syntax, duplicate and unknown keys, values of another type. */
  readonly problems: readonly ConfigProblem[];
  /** No YAML: nothing could be read. */
  readonly isBroken: boolean;
  readonly report: Report;
  readonly shownAs: string;
  /** Of the value at a path, from 1. */
  readonly lineOf: (path: string) => number;
};

/** More values than any site has: what aliases of aliases would unfold to is refused. */
const MAX_VALUES = 20_000;

/** Levels of mappings and lists, far below what would exhaust the stack. */
const MAX_DEPTH = 100;

/**
 * Reads a YAML 1.1 file, and so JSON, strictly: unknown and duplicate keys are problems. A plain scalar
 * where text is wanted keeps its written text, and an empty value counts as absent.
 */
export function readSiteDocument<S extends Shape>(file: SiteFile, shape: S): SiteDocument<S> {
  const text = decodeText(file.bytes);
  const lines = new LineCounter();
  const document = parseDocument(text ?? '', {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: 'silent',
    // Every scalar as text: what it means depends on what the shape wants.
    schema: 'failsafe',
  });
  const reader = new Reader(document);
  const report = createReporter({ text: text ?? '', file: file.shownAs, lines, marks: reader });
  const broken = [
    ...(text === undefined ? [report('', 'error converting YAML to JSON: this is not UTF-8')] : []),
    ...[...document.errors, ...document.warnings].map(({ code, pos }) =>
      report({ offset: pos[0] }, `error converting YAML to JSON: ${explainYaml(code)}`),
    ),
  ];
  const value = broken.length === 0 ? reader.read(document.contents, shape, '') : undefined;
  const found = reader.findings.map(({ offset, path, problem, hint, hideValue }) =>
    report({ offset, path }, problem, { hint, hideValue }),
  );
  return {
    value: (value ?? {}) as ValueOf<S>,
    problems: [...broken, ...found],
    isBroken: broken.length > 0,
    report,
    shownAs: file.shownAs,
    lineOf: (path) => Math.max(1, lines.linePos(reader.offsetOf(path)).line),
  };
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

type Finding = {
  readonly offset: number;
  readonly path: string;
  readonly problem: string;
  readonly hint?: string | undefined;
  readonly hideValue?: boolean;
};

class Reader {
  readonly findings: Finding[] = [];
  readonly #document: Document.Parsed;
  readonly #offsets = new Map<string, number>();
  #values = 0;
  #depth = 0;

  constructor(document: Document.Parsed) {
    this.#document = document;
  }

  /** Of the value, or of the nearest thing above it that is written. */
  offsetOf(path: string): number {
    for (let at = path; at !== ''; at = at.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
      const offset = this.#offsets.get(at);
      if (offset !== undefined) return offset;
    }
    return this.#offsets.get('') ?? 0;
  }

  read(node: Node | null | undefined, shape: Shape, path: string): Free | undefined {
    const offset = node?.range?.[0] ?? this.offsetOf(path);
    if (!this.#offsets.has(path)) this.#offsets.set(path, offset);
    const target = isAlias(node) ? node.resolve(this.#document) : node;
    if (++this.#values > MAX_VALUES || this.#depth > MAX_DEPTH) return this.#refuseSize(path);
    this.#depth++;
    const value = this.#readNode(target, shape, path);
    this.#depth--;
    return value;
  }

  #readNode(node: Node | null | undefined, shape: Shape, path: string): Free | undefined {
    if (isMap(node)) {
      if (shape.kind === 'record') return this.#readRecord(node, shape.members, path);
      if (shape.kind === 'free') return this.#readMap(node, shape, path);
      return shape.kind === 'map'
        ? this.#readMap(node, shape.of, path)
        : this.#refuse(path, shape, 'object');
    }
    if (isSeq(node)) {
      if (shape.kind !== 'list' && shape.kind !== 'free') return this.#refuse(path, shape, 'array');
      const of = shape.kind === 'list' ? shape.of : shape;
      return node.items.map(
        (item, index) => this.read(item as Node | null, of, `${path}[${index}]`) ?? null,
      );
    }
    return isScalar(node) ? this.#readScalar(node, shape, path) : undefined;
  }

  #readScalar(scalar: Scalar, shape: Shape, path: string): Free | undefined {
    const { kind } = shape;
    const value = resolveScalar(scalar);
    if (value === null) return undefined;
    if (kind === 'free') return value;
    if (kind === 'text') return scalar.source ?? String(value);
    if (kind === 'flag' && typeof value === 'boolean') return value;
    if (kind === 'integer' && Number.isSafeInteger(value)) return value;
    return this.#refuse(path, shape, typeof value === 'boolean' ? 'bool' : typeof value);
  }

  #readRecord(node: YAMLMap, members: Readonly<Record<string, Shape>>, path: string): Free {
    return this.#readPairs(node, path, (written, pair) => {
      const name = findMember(members, written);
      if (name !== undefined) return { name, shape: members[name] };
      const near = findNearest(written, Object.keys(members));
      this.findings.push({
        offset: offsetOfKey(pair),
        path: joinPath(path, written),
        problem: `unknown field "${written}"`,
        hint: near === undefined ? undefined : `did you mean "${near}"?`,
        hideValue: true,
      });
      return { name: written, shape: undefined };
    });
  }

  #readMap(node: YAMLMap, shape: Shape, path: string): Free {
    return this.#readPairs(node, path, (name) => ({ name, shape }));
  }

  #readPairs(
    node: YAMLMap,
    path: string,
    choose: (
      written: string,
      pair: Pair<Node | null, Node | null>,
    ) => { readonly name: string; readonly shape: Shape | undefined },
  ): Free {
    // Without a prototype: a key may be called __proto__.
    const result = Object.create(null) as Record<string, Free>;
    const seen = new Map<string, number>();
    for (const pair of node.items as readonly Pair<Node | null, Node | null>[]) {
      const { name, shape } = choose(this.#readKey(pair, path), pair);
      const place = joinPath(path, name);
      if (this.#isDuplicate(seen, { name, place, offset: offsetOfKey(pair) })) continue;
      this.#offsets.set(place, pair.value?.range?.[0] ?? offsetOfKey(pair));
      const value = shape === undefined ? undefined : this.read(pair.value, shape, place);
      if (value !== undefined) result[name] = value;
      else if (shape?.kind === 'free') result[name] = null;
      if (value === undefined || value === '') this.#offsets.set(place, offsetOfKey(pair));
    }
    return result;
  }

  #readKey({ key }: Pair<Node | null, Node | null>, path: string): string {
    const target = isAlias(key) ? key.resolve(this.#document) : key;
    if (isScalar(target)) return target.source ?? String(target.value);
    const offset = key?.range?.[0] ?? this.offsetOf(path);
    this.findings.push({ offset, path, problem: 'a key must be text', hideValue: true });
    return '(no text)';
  }

  #isDuplicate(
    seen: Map<string, number>,
    key: { readonly name: string; readonly place: string; readonly offset: number },
  ): boolean {
    if (!seen.has(key.name)) {
      seen.set(key.name, key.offset);
      return false;
    }
    this.findings.push({
      offset: key.offset,
      path: key.place,
      problem: `key "${key.name}" already set in map`,
      hideValue: true,
    });
    return true;
  }

  #refuse(path: string, shape: Shape, found: string): undefined {
    const problem = `cannot unmarshal ${found} into ${TYPES[shape.kind]}`;
    this.findings.push({ offset: this.offsetOf(path), path, problem });
    return undefined;
  }

  #refuseSize(path: string): undefined {
    if (this.#values > MAX_VALUES + 1) return undefined;
    this.#values = MAX_VALUES + 1;
    const problem = `the document has more than ${MAX_VALUES} values or ${MAX_DEPTH} levels`;
    this.findings.push({ offset: this.offsetOf(path), path, problem });
    return undefined;
  }
}

const TYPES: Readonly<Record<Shape['kind'], string>> = {
  text: 'a field of type string',
  flag: 'a field of type bool',
  integer: 'a field of type int',
  list: 'a field of type list',
  map: 'a field of type map',
  record: 'a field of type object',
  free: 'a field',
};

const joinPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

const offsetOfKey = ({ key }: Pair<Node | null, Node | null>): number => key?.range?.[0] ?? 0;

function findMember(members: Readonly<Record<string, Shape>>, written: string): string | undefined {
  if (Object.hasOwn(members, written)) return written;
  const lower = written.toLowerCase();
  return Object.keys(members).find((name) => name.toLowerCase() === lower);
}

function explainYaml(code: string): string {
  const words: Readonly<Record<string, string>> = {
    BAD_INDENT: 'the indentation does not fit the lines above',
    TAB_AS_INDENT: 'a tab stands where only spaces may indent',
    MULTIPLE_DOCS: 'a second document begins here; only one may stand in the file',
    MISSING_CHAR: 'a closing quote, bracket, comma or colon is missing',
    MULTILINE_IMPLICIT_KEY: 'a key goes over more than one line',
    BLOCK_AS_IMPLICIT_KEY: 'a second colon stands in the value; put the value in quotes',
    BAD_SCALAR_START: 'a value may not start with this character; put it in quotes',
    BAD_ALIAS: 'this alias has no anchor',
    BAD_DQ_ESCAPE: 'this escape does not exist in double quotes; use single quotes',
    TAG_RESOLVE_FAILED: 'this tag has no meaning here',
    UNEXPECTED_TOKEN: 'nothing may stand here',
    IMPOSSIBLE: 'nothing may stand here',
  };
  return words[code] ?? code.toLowerCase().replaceAll('_', ' ');
}
