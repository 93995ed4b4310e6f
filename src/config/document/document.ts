import { isMap, isScalar, isSeq } from 'yaml';
import type { Node, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { suggestName } from '../../base/text/nearest-name.ts';
import { createAliases, type Aliases, type NodePair } from './aliases.ts';
import { parseText, type ParsedText } from './parse-text.ts';
import type { DocumentProblem } from '../../base/problem.ts';
import { createReport, type Report, type ReportDetails } from './report.ts';
import { resolveScalar } from './scalar.ts';
import { listKeys, shapeOf, type SchemaNode } from './schema.ts';
import { FREE, TYPES, type Plain, type Shape, type ValueOf } from './shape.ts';

/** A YAML or JSON file, read along what may stand in it. */
export type ConfigDocument<Value = Plain> = {
  readonly value: Value;
  /** Syntax, duplicate keys, aliases; of a document read along a shape, also unknown keys and types. */
  readonly problems: readonly DocumentProblem[];
  /** Unknown keys that a lenient shape lets pass. */
  readonly warnings: readonly DocumentProblem[];
  /** The text is not valid YAML or unfolds to too much: there is no value to check. */
  readonly isBroken: boolean;
  readonly report: Report;
  readonly file: string;
  /** Of the value at a path, or of the nearest thing above it that is written; from 1. */
  readonly lineOf: (path: string) => number;
  /** Whether the value was written without quotes. */
  readonly isUnquoted: (path: string) => boolean;
};

export type TextSource = {
  readonly text: string | Uint8Array;
  /** How the file is named in problems. */
  readonly file: string;
  readonly publicKeys: ReadonlySet<string>;
};

/**
 * Reads a document along a schema, which is to be checked afterwards: an unknown key holds `{}`, and a
 * value of another type stays.
 */
export const readAlongSchema = (
  source: Omit<TextSource, 'publicKeys'> & Partial<TextSource>,
  schema: SchemaNode,
): ConfigDocument =>
  read({ publicKeys: listKeys(schema), ...source }, shapeOf(schema), true) as ConfigDocument;

/**
 * Reads a document along a shape, strictly: unknown keys and values of another type are problems and
 * left out of the value.
 */
export const readAlongShape = <S extends Shape>(
  source: TextSource,
  shape: S,
): ConfigDocument<ValueOf<S>> => read(source, shape, false) as ConfigDocument<ValueOf<S>>;

/**
 * In YAML 1.1, of which JSON is a part: keys of records match without regard to case; a plain scalar
 * where text is wanted keeps its written text (`4.20` is not the number 4.2); an empty value counts as
 * absent.
 */
function read(source: TextSource, shape: Shape, keepsAll: boolean): ConfigDocument<unknown> {
  const parsed = parseText(source.text);
  const walk = new Walk(parsed, keepsAll);
  const report = createReport({ ...parsed, ...source, text: parsed.text, offsetOf: walk.offsetOf });
  const faults = parsed.faults.map(({ offset, problem }) =>
    report({ offset }, `not valid YAML: ${problem}`, { code: 'config.syntax' }),
  );
  const value = faults.length === 0 ? walk.read(parsed.document.contents, shape, '') : undefined;
  const isLenient = shape.kind === 'record' && shape.isLenient === true;
  const list = (isWarning: boolean): readonly DocumentProblem[] =>
    walk.findings
      .filter(({ code }) => (isLenient && code === UNKNOWN_KEY) === isWarning)
      .map((finding) => report(finding, finding.problem, finding));
  return {
    value: value ?? (keepsAll && faults.length === 0 ? null : {}),
    problems: [...faults, ...list(false)],
    warnings: list(true),
    isBroken: faults.length > 0 || walk.isTooLarge,
    report,
    file: source.file,
    lineOf: (path) => Math.max(1, parsed.lines.linePos(walk.offsetOf(path)).line),
    isUnquoted: (path) => walk.isUnquoted(path),
  };
}

/** A key that no shape has. */
export const UNKNOWN_KEY = 'config.unknown-key';

/** More values than any configuration has: what aliases of aliases would unfold to is refused. */
const MAX_VALUES = 20_000;

/** Levels of mappings and lists, far below what would exhaust the stack. */
const MAX_DEPTH = 100;

type Finding = ReportDetails & {
  readonly offset: number;
  readonly path: string;
  readonly problem: string;
};

/** What a key means. */
type Meaning = {
  readonly name: string;
  /** What may stand there; nothing may at an unknown key. */
  readonly shape: Shape | undefined;
  /** The value where none is written; a member of a record is absent then. */
  readonly empty?: Plain;
};

type Choose = (written: string, pair: NodePair) => Meaning;

class Walk {
  readonly findings: Finding[] = [];
  readonly #lines: ParsedText['lines'];
  readonly #aliases: Aliases;
  readonly #keepsAll: boolean;
  /** Of values, and of keys without one. */
  readonly #offsets = new Map<string, number>();
  readonly #unquoted = new Set<string>();
  /** The lists and mappings that hold the value being read. */
  readonly #holders = new Set<Node>();
  #values = 0;

  constructor({ document, lines }: ParsedText, keepsAll: boolean) {
    this.#aliases = createAliases(document);
    this.#lines = lines;
    this.#keepsAll = keepsAll;
  }

  get isTooLarge(): boolean {
    return this.#values > MAX_VALUES;
  }

  isUnquoted(path: string): boolean {
    return this.#unquoted.has(path);
  }

  /** Of the value, or of the nearest thing above it that is written. */
  readonly offsetOf = (path: string): number => {
    for (let at = path; at !== ''; at = at.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
      const offset = this.#offsets.get(at);
      if (offset !== undefined) return offset;
    }
    return this.#offsets.get('') ?? 0;
  };

  read(node: Node | null | undefined, shape: Shape, path: string): Plain | undefined {
    this.#mark(node, path);
    const target = this.#aliases.follow(node);
    if (node && !target) return this.#refuse(path, 'not valid YAML: this alias has no anchor');
    this.#values++;
    if (this.isTooLarge) return this.#refuseSize(path);
    if (isScalar(target)) return this.#readScalar(target, shape, path);
    return isMap(target) || isSeq(target) ? this.#readHolder(target, shape, path) : undefined;
  }

  #mark(node: Node | null | undefined, path: string): void {
    if (!this.#offsets.has(path)) this.#offsets.set(path, node?.range?.[0] ?? this.offsetOf(path));
  }

  #readHolder(node: YAMLMap | YAMLSeq, shape: Shape, path: string): Plain | undefined {
    if (this.#holders.has(node))
      return this.#refuse(path, 'is an alias to a node that contains it');
    if (this.#holders.size > MAX_DEPTH) return this.#refuseSize(path);
    this.#holders.add(node);
    const value = isMap(node)
      ? this.#readMapping(node, shape, path)
      : this.#readList(node, shape, path);
    this.#holders.delete(node);
    return value;
  }

  #readMapping(node: YAMLMap, shape: Shape, path: string): Plain | undefined {
    if (shape.kind === 'record') return this.#readRecord(node, shape.members, path);
    if (shape.kind === 'map') return this.#readMap(node, shape.of, path);
    if (shape.kind === 'free' || this.#keepsAll) return this.#readMap(node, FREE, path);
    return this.#refuseType(path, shape, 'object');
  }

  #readList(node: YAMLSeq, shape: Shape, path: string): Plain | undefined {
    const isOther = shape.kind !== 'list' && shape.kind !== 'free';
    if (isOther && !this.#keepsAll) return this.#refuseType(path, shape, 'array');
    const of = shape.kind === 'list' ? shape.of : FREE;
    // Only free data has a word for what is not there.
    const empty = of.kind === 'free' || this.#keepsAll ? null : undefined;
    return node.items.map(
      (item, index) => this.read(item as Node | null, of, `${path}[${index}]`) ?? empty,
    ) as readonly Plain[];
  }

  #readScalar(scalar: Scalar, shape: Shape, path: string): Plain | undefined {
    if (this.#keepsAll && scalar.type === 'PLAIN') this.#unquoted.add(path);
    const value = resolveScalar(scalar);
    if (value === null) return undefined;
    if (shape.kind === 'text') return textOf(scalar);
    if (isOfKind(value, shape.kind)) return value;
    if (this.#keepsAll) return shape.kind === 'flag' ? textOf(scalar) : value;
    return this.#refuseType(path, shape, typeof value === 'boolean' ? 'bool' : typeof value);
  }

  #readRecord(node: YAMLMap, members: Readonly<Record<string, Shape>>, path: string): Plain {
    return this.#readPairs(node, path, (written, pair) => {
      const name = findMember(members, written);
      if (name !== undefined) return { name, shape: members[name] };
      if (this.#keepsAll) return { name: written, shape: undefined, empty: {} };
      this.findings.push({
        code: UNKNOWN_KEY,
        offset: offsetOfKey(pair),
        path: joinPath(path, written),
        problem: `unknown field "${written}"`,
        hint: suggestName(written, Object.keys(members)),
        hideValue: true,
      });
      return { name: written, shape: undefined };
    });
  }

  #readMap(node: YAMLMap, shape: Shape, path: string): Plain {
    const empty = shape.kind === 'text' ? '' : null;
    return this.#readPairs(node, path, (name) => ({ name, shape, empty }));
  }

  #readPairs(node: YAMLMap, path: string, choose: Choose): Plain {
    // Without a prototype: a key may be called __proto__.
    const result = Object.create(null) as Record<string, Plain>;
    const seen = new Map<string, number>();
    for (const pair of this.#aliases.listPairs(node)) {
      const { name, shape, empty } = choose(this.#readKey(pair, path), pair);
      const place = joinPath(path, name);
      const first = seen.get(name);
      if (first !== undefined) {
        const problem = `is written twice, first in line ${this.#lines.linePos(first).line}`;
        const code = 'config.duplicate-key';
        const offset = offsetOfKey(pair);
        this.findings.push({ code, offset, path: place, problem, hideValue: true });
        continue;
      }
      seen.set(name, offsetOfKey(pair));
      const value = this.#readValue(pair, shape, place) ?? empty;
      if (value !== undefined) result[name] = value;
    }
    return result;
  }

  /** A key without a usable value is a place to point at all the same. */
  #readValue(pair: NodePair, shape: Shape | undefined, place: string): Plain | undefined {
    this.#offsets.set(place, pair.value?.range?.[0] ?? offsetOfKey(pair));
    const value = shape && this.read(pair.value, shape, place);
    if (value === undefined) this.#offsets.set(place, offsetOfKey(pair));
    return value;
  }

  #readKey(pair: NodePair, path: string): string {
    const target = this.#aliases.follow(pair.key);
    if (isScalar(target)) return textOf(target);
    const offset = offsetOfKey(pair);
    const code = 'config.syntax';
    this.findings.push({ code, offset, path, problem: 'a key must be text', hideValue: true });
    return '(no text)';
  }

  #refuseType(path: string, { kind }: Shape, found: string): Plain | undefined {
    return this.#refuse(path, `cannot unmarshal ${found} into ${TYPES[kind]}`, 'config.type');
  }

  #refuseSize(path: string): Plain | undefined {
    if (this.#values > MAX_VALUES + 1) return undefined;
    this.#values = MAX_VALUES + 1;
    return this.#refuse(
      path,
      `the document unfolds to more than ${MAX_VALUES} values or ${MAX_DEPTH} levels`,
    );
  }

  #refuse(path: string, problem: string, code = 'config.syntax'): Plain | undefined {
    this.findings.push({ code, offset: this.offsetOf(path), path, problem });
    return undefined;
  }
}

const isOfKind = (value: Plain, kind: Shape['kind']): boolean =>
  kind === 'free' ||
  (kind === 'flag' && typeof value === 'boolean') ||
  (kind === 'integer' && Number.isSafeInteger(value));

const textOf = ({ source, value }: Scalar): string => source ?? String(value);

const joinPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

const offsetOfKey = ({ key }: NodePair): number => key?.range?.[0] ?? 0;

function findMember(members: Readonly<Record<string, Shape>>, written: string): string | undefined {
  if (Object.hasOwn(members, written)) return written;
  const lower = written.toLowerCase();
  return Object.keys(members).find((name) => name.toLowerCase() === lower);
}
