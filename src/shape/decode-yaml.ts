import { explainBroken, withoutBroken } from '../base/text/utf8.ts';
import { isMap, isScalar, isSeq, type Node, type YAMLMap, type Scalar, type YAMLSeq } from 'yaml';
import { type Aliases, createAliases, type NodePair } from './aliases.ts';
import { readGoScalar } from './go-scalar.ts';
import type { ParsedText } from './parse-text.ts';
import type { ReportDetails } from './report.ts';
import { coreOf, FREE, shapeOf, type Plain, type RecordNode, type Shape } from './shape.ts';

/*
 * Owns the meaning of YAML nodes: scalars of YAML 1.1, and the walk that makes
 * plain data of them along a shape. The walk does not judge the data.
 */

const INTEGER = /^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** Sexagesimals, dates, merge and value keys, floats that are not numbers: some readers interpret them. */
const OTHER =
  /^(?:[-+]?[\d_]*\.[\d_]*|[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?|\d{4}-\d\d?-\d\d?.*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|<<|=)$/;

/** The meaning of what is written without quotes, to the program that reads the document in the end. */
export type Dialect = {
  readonly readScalar: (text: string) => null | boolean | number | string;
  /** False: `<<` is a key like any other. */
  readonly hasMerges: boolean;
};

/** `.inf` and `.nan` stay text. */
function resolvePlain(text: string): null | boolean | number | string {
  const { value } = readGoScalar(text);
  return typeof value === 'number' && !Number.isFinite(value) ? text : value;
}

/** Go's reader, by which Kubernetes and the installer read every document. */
const GO: Dialect = { readScalar: resolvePlain, hasMerges: true };

/** True if any reader of YAML would read a text without quotes as something else. */
export const isOtherInYaml = (text: string): boolean =>
  typeof resolvePlain(text) !== 'string' || isLikeNumber(text) || OTHER.test(text);

/** True for a text like a number, of any size: some readers take the largest for infinite. */
const isLikeNumber = (text: string): boolean =>
  INTEGER.test(text) || FLOAT.test(text.replaceAll('_', ''));

/** More values than any configuration has: aliases of aliases that would expand to more are refused. */
const MAX_VALUES = 20_000;

/** Levels of mappings and lists, far below what would exhaust the stack. */
const MAX_DEPTH = 100;

export type TextFinding = ReportDetails & {
  readonly offset: number;
  readonly path: string;
  readonly problem: string;
};

type Meaning = {
  readonly name: string;
  /** The shape of the value; undefined at an unknown key, which may have no value. */
  readonly shape: Shape | undefined;
  /** The value if no value is written; a member of a record is absent then. */
  readonly empty?: Plain;
};

type Choose = (written: string) => Meaning;

/** The number of values that were read, from one document or from all that are merged. */
export type ValueCount = { values: number; readonly most?: number };

export const isTooMany = ({ values, most = MAX_VALUES }: ValueCount): boolean => values > most;

/**
 * Reads the nodes of one text along a shape, and remembers the position of each value. Members of records
 * match without regard to case. The value of an unknown member is `{}`, and a value of another shape stays.
 */
export class Walk {
  readonly findings: TextFinding[] = [];
  readonly #lines: ParsedText['lines'];
  readonly #aliases: Aliases;
  readonly #count: ValueCount;
  readonly #dialect: Dialect;
  /** The paths at which null or no value is written. */
  readonly nulls = new Set<string>();
  /** Offsets of values, and of keys without a value. */
  readonly #offsets = new Map<string, number>();
  readonly #unquoted = new Map<string, string>();
  /** The lists and mappings that hold the value being read. */
  readonly #holders = new Set<Node>();

  constructor({ document, lines }: ParsedText, count: ValueCount, dialect = GO) {
    this.#aliases = createAliases(document, dialect.hasMerges);
    this.#dialect = dialect;
    this.#lines = lines;
    this.#count = count;
  }

  get isTooLarge(): boolean {
    return isTooMany(this.#count);
  }

  /** The text of a scalar that was written without quotes. */
  readonly writtenOf = (path: string): string | undefined => this.#unquoted.get(path);

  /** Offset of the value, or of the nearest written value above it. */
  readonly offsetOf = (path: string): number => {
    for (let at = path; at !== ''; at = parentOf(at)) {
      const offset = this.#offsets.get(at);
      if (offset !== undefined) return offset;
    }
    return this.#offsets.get('') ?? 0;
  };

  read(node: Node | null | undefined, described: Shape, path: string): Plain | undefined {
    const shape = coreOf(described);
    this.#mark(node, path);
    const target = this.#aliases.follow(node);
    if (node && !target) return this.#refuse(path, 'not valid YAML: this alias has no anchor');
    this.#count.values++;
    if (this.isTooLarge) return this.#refuseSize(path);
    if (isScalar(target)) return this.#readScalar(target, shape, path);
    if (isMap(target) || isSeq(target)) return this.#readHolder(target, shape, path);
    this.nulls.add(path);
    return undefined;
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

  #readMapping(node: YAMLMap, shape: Shape, path: string): Plain {
    if (shape.kind === 'record') return this.#readRecord(node, shape.members, path);
    return this.#readMap(node, shape.kind === 'mapping' ? shape.of : FREE, path);
  }

  #readList(node: YAMLSeq, shape: Shape, path: string): Plain {
    const of = shape.kind === 'list' ? shape.of : FREE;
    return node.items.map(
      (item, index) => this.read(item as Node | null, of, `${path}[${index}]`) ?? null,
    );
  }

  #readScalar(scalar: Scalar, shape: Shape, path: string): Plain | undefined {
    const why = explainBroken(textOf(scalar));
    if (why !== undefined) {
      this.#refuse(path, why);
      return withoutBroken(textOf(scalar)); // so that rules have no further complaint of it
    }
    if (scalar.type === 'PLAIN') this.#unquoted.set(path, textOf(scalar));
    const isPlain = scalar.type === 'PLAIN' && scalar.tag === undefined;
    const value = isPlain ? this.#dialect.readScalar(scalar.source ?? '') : textOf(scalar);
    if (value === null) this.nulls.add(path);
    if (value === null) return undefined;
    return isOfTexts(shape) ? textOf(scalar) : value;
  }

  #readRecord(node: YAMLMap, members: RecordNode['members'], path: string): Plain {
    return this.#readPairs(node, path, (written) => {
      const name = findMember(members, written);
      const member = name === undefined ? undefined : members[name];
      if (name === undefined || !member) return { name: written, shape: undefined, empty: {} };
      return { name, shape: shapeOf(member) };
    });
  }

  #readMap(node: YAMLMap, shape: Shape, path: string): Plain {
    return this.#readPairs(node, path, (name) => ({ name, shape, empty: null }));
  }

  #readPairs(node: YAMLMap, path: string, choose: Choose): Plain {
    // Without a prototype: a key may be called __proto__.
    const result = Object.create(null) as Record<string, Plain>;
    const seen = new Map<string, number>();
    for (const pair of this.#aliases.listPairs(node)) {
      const { name, shape, empty } = choose(this.#readKey(pair, path));
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

  /** Reads a value. A key without a usable value still has a position to point at. */
  #readValue(pair: NodePair, shape: Shape | undefined, place: string): Plain | undefined {
    this.#offsets.set(place, pair.value?.range?.[0] ?? offsetOfKey(pair));
    const value = shape && this.read(pair.value, shape, place);
    if (value === undefined) this.#offsets.set(place, offsetOfKey(pair));
    return value;
  }

  #readKey(pair: NodePair, path: string): string {
    const target = this.#aliases.follow(pair.key);
    const text = isScalar(target) ? textOf(target) : undefined;
    const why = explainKey(text);
    if (text !== undefined && why === undefined) return text;
    const offset = offsetOfKey(pair);
    const code = 'config.syntax';
    this.findings.push({ code, offset, path, problem: `a key ${why ?? ''}`, hideValue: true });
    return '(unusable key)';
  }

  #refuseSize(path: string): Plain | undefined {
    const { most = MAX_VALUES } = this.#count;
    if (this.#count.values > most + 1) return undefined;
    this.#count.values = most + 1;
    return this.#refuse(
      path,
      `the document expands to more than ${most} values or ${MAX_DEPTH} levels`,
    );
  }

  #refuse(path: string, problem: string): Plain | undefined {
    const code = 'config.syntax';
    this.findings.push({ code, offset: this.offsetOf(path), path, problem });
    return undefined;
  }
}

/** YAML 1.2.2, 7.4.2, for keys without a question mark; here for all: each place below a key repeats it. */
const LONGEST_KEY = 1024;

function explainKey(text: string | undefined): string | undefined {
  if (text === undefined) return 'must be text';
  if (text.length > LONGEST_KEY) return `must be at most ${LONGEST_KEY} characters long`;
  return explainBroken(text);
}

/** True if scalars are read as they are written. */
const isOfTexts = (shape: Shape): boolean =>
  shape.kind === 'text' ||
  (shape.kind === 'choice' && shape.words.every((word) => typeof word === 'string'));

const textOf = ({ source, value }: Scalar): string => source ?? String(value);

export const joinPath = (path: string, name: string): string =>
  path === '' ? name : `${path}.${name}`;

const offsetOfKey = ({ key }: NodePair): number => key?.range?.[0] ?? 0;

/** `operators[0]` of `operators[0].catalog`; empty for the document. */
const parentOf = (path: string): string => path.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '');

export function findMember(members: object, written: string): string | undefined {
  if (Object.hasOwn(members, written)) return written;
  const lower = written.toLowerCase();
  return Object.keys(members).find((name) => name.toLowerCase() === lower);
}
