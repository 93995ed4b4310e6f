import { isMap, isScalar, isSeq, LineCounter } from 'yaml';
import type { Document, Node, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { YamlExcess } from '../../base/text/document-bounds.ts';
import { explainYaml } from '../../config/document/explain-yaml.ts';
import { suggestName } from '../../base/text/nearest-name.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import { isEmptyDocument, parseYaml } from './parse-yaml.ts';
import { createReporter, type Report } from './report.ts';
import { resolveScalar } from './scalar.ts';
import type { Free, Shape, ValueOf } from './shape.ts';
import { createAliases, type Aliases, type NodePair } from './site-aliases.ts';
import type { SiteFile } from '../site.ts';

/** A file of a site, read along its shape. */
export type SiteDocument<S> = {
  readonly value: ValueOf<S>;
  /** Syntax, duplicate and unknown keys, values of another type. */
  readonly problems: readonly ConfigProblem[];
  /** Unknown keys that a lenient shape lets pass. */
  readonly warnings: readonly ConfigProblem[];
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
  const lines = new LineCounter();
  const { text, document, problems: faults } = parse(file.bytes, lines);
  const reader = new Reader(document);
  const report = createReporter({ text, file: file.shownAs, lines, marks: reader });
  const broken = faults.map(({ offset, problem }) => report({ offset }, `${BROKEN}: ${problem}`));
  const value = broken.length === 0 ? reader.read(document.contents, shape, '') : undefined;
  const isLenient = shape.kind === 'record' && shape.isLenient === true;
  const list = (isWarning: boolean): readonly ConfigProblem[] =>
    reader.findings
      .filter(({ isUnknown = false }) => (isLenient && isUnknown) === isWarning)
      .map(({ offset, path, problem, hint, hideValue }) =>
        report({ offset, path }, problem, { hint, hideValue }),
      );
  return {
    value: (value ?? {}) as ValueOf<S>,
    problems: [...broken, ...list(false)],
    warnings: list(true),
    isBroken: broken.length > 0,
    report,
    shownAs: file.shownAs,
    lineOf: (path) => Math.max(1, lines.linePos(reader.offsetOf(path)).line),
  };
}

const BROKEN = 'error converting YAML to JSON';
const DECODER = new TextDecoder('utf-8', { fatal: true });

type Parsed = {
  readonly text: string;
  readonly document: Document.Parsed;
  readonly problems: readonly { readonly offset: number; readonly problem: string }[];
};

/** What cannot be parsed at all is an empty document with a problem. */
function parse(bytes: Uint8Array, lines: LineCounter): Parsed {
  const text = decode(bytes);
  const refuse = (problem: string, offset = 0): Parsed => ({
    text: text ?? '',
    document: EMPTY,
    problems: [{ offset, problem }],
  });
  if (text === undefined) return refuse('this is not UTF-8');
  try {
    const [document, ...others] = parseYaml(text, lines);
    const second = others.find((other) => !isEmptyDocument(other));
    const faults = [
      ...[...document.errors, ...document.warnings].map(({ code, pos }) => ({ code, at: pos[0] })),
      ...(second ? [{ code: 'MULTIPLE_DOCS', at: second.range[0] }] : []),
    ];
    const problems = faults.map(({ code, at }) => ({ offset: at, problem: explainYaml(code) }));
    return { text, document, problems };
  } catch (error) {
    if (!(error instanceof YamlExcess)) throw error;
    return refuse(error.message, error.offset);
  }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return DECODER.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

const [EMPTY] = parseYaml('') as [Document.Parsed];

type Finding = {
  readonly offset: number;
  readonly path: string;
  readonly problem: string;
  readonly hint?: string | undefined;
  readonly hideValue?: boolean;
  /** A key that no shape has. */
  readonly isUnknown?: boolean;
};

/** What a key means. */
type Meaning = {
  readonly name: string;
  /** What may stand there; nothing may at an unknown key. */
  readonly shape: Shape | undefined;
  /** The value where none is written; a member of a record is absent then. */
  readonly empty?: Free;
};

type Choose = (written: string, pair: NodePair) => Meaning;

class Reader {
  readonly findings: Finding[] = [];
  readonly #aliases: Aliases;
  readonly #offsets = new Map<string, number>();
  #values = 0;
  #depth = 0;

  constructor(document: Document.Parsed) {
    this.#aliases = createAliases(document);
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
    const target = this.#aliases.follow(node);
    if (node && !target) return this.#refuseAlias(path, offset);
    if (++this.#values > MAX_VALUES || this.#depth > MAX_DEPTH) return this.#refuseSize(path);
    this.#depth++;
    const value = this.#readNode(target, shape, path);
    this.#depth--;
    return value;
  }

  #readNode(node: Node | null | undefined, shape: Shape, path: string): Free | undefined {
    if (isMap(node)) return this.#readMapping(node, shape, path);
    if (isSeq(node)) return this.#readList(node, shape, path);
    return isScalar(node) ? this.#readScalar(node, shape, path) : undefined;
  }

  #readMapping(node: YAMLMap, shape: Shape, path: string): Free | undefined {
    if (shape.kind === 'record') return this.#readRecord(node, shape.members, path);
    if (shape.kind === 'free') return this.#readMap(node, shape, path);
    if (shape.kind === 'map') return this.#readMap(node, shape.of, path);
    return this.#refuse(path, shape, 'object');
  }

  #readList(node: YAMLSeq, shape: Shape, path: string): Free | undefined {
    if (shape.kind !== 'list' && shape.kind !== 'free') return this.#refuse(path, shape, 'array');
    const of = shape.kind === 'list' ? shape.of : shape;
    // Only free data has a word for what is not there.
    const empty = of.kind === 'free' ? null : undefined;
    return node.items.map(
      (item, index) => this.read(item as Node | null, of, `${path}[${index}]`) ?? empty,
    ) as readonly Free[];
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
      this.findings.push({
        offset: offsetOfKey(pair),
        path: joinPath(path, written),
        problem: `unknown field "${written}"`,
        hint: suggestName(written, Object.keys(members)),
        hideValue: true,
        isUnknown: true,
      });
      return { name: written, shape: undefined };
    });
  }

  #readMap(node: YAMLMap, shape: Shape, path: string): Free {
    const empty = shape.kind === 'text' ? '' : null;
    return this.#readPairs(node, path, (name) => ({ name, shape, empty }));
  }

  #readPairs(node: YAMLMap, path: string, choose: Choose): Free {
    // Without a prototype: a key may be called __proto__.
    const result = Object.create(null) as Record<string, Free>;
    const seen = new Set<string>();
    for (const pair of this.#aliases.listPairs(node)) {
      const { name, shape, empty } = choose(this.#readKey(pair, path), pair);
      const place = joinPath(path, name);
      if (seen.has(name)) {
        this.#refuseDuplicate(name, place, offsetOfKey(pair));
        continue;
      }
      seen.add(name);
      const value = this.#readValue(pair, shape, place) ?? empty;
      if (value !== undefined) result[name] = value;
    }
    return result;
  }

  #readValue(pair: NodePair, shape: Shape | undefined, place: string): Free | undefined {
    this.#offsets.set(place, pair.value?.range?.[0] ?? offsetOfKey(pair));
    const value = shape && this.read(pair.value, shape, place);
    if (value === undefined || value === '') this.#offsets.set(place, offsetOfKey(pair));
    return value;
  }

  #readKey({ key }: NodePair, path: string): string {
    const target = this.#aliases.follow(key);
    if (isScalar(target)) return target.source ?? String(target.value);
    const offset = key?.range?.[0] ?? this.offsetOf(path);
    this.findings.push({ offset, path, problem: 'a key must be text', hideValue: true });
    return '(no text)';
  }

  #refuseDuplicate(name: string, path: string, offset: number): void {
    const problem = `key "${name}" already set in map`;
    this.findings.push({ offset, path, problem, hideValue: true });
  }

  #refuse(path: string, shape: Shape, found: string): Free | undefined {
    const problem = `cannot unmarshal ${found} into ${TYPES[shape.kind]}`;
    this.findings.push({ offset: this.offsetOf(path), path, problem });
    return undefined;
  }

  #refuseAlias(path: string, offset: number): Free | undefined {
    this.findings.push({ offset, path, problem: `${BROKEN}: this alias has no anchor` });
    return undefined;
  }

  #refuseSize(path: string): Free | undefined {
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

const offsetOfKey = ({ key }: NodePair): number => key?.range?.[0] ?? 0;

function findMember(members: Readonly<Record<string, Shape>>, written: string): string | undefined {
  if (Object.hasOwn(members, written)) return written;
  const lower = written.toLowerCase();
  return Object.keys(members).find((name) => name.toLowerCase() === lower);
}
