import type { SealiftError } from '../base/errors.ts';
import { readJsonText, type JsonBounds, type JsonManner } from './json-text.ts';
import { createKeyed, type Keyed, type KeyRules, matchMembers } from './keys.ts';
import { shapeOf, type RecordNode, type Shape } from './shape.ts';

/* Owns the judgement of parsed values along a shape. */

export type Rules = JsonManner &
  KeyRules & {
    /** A member that is null counts as absent, or has the value null. */
    readonly null: 'absent' | 'value';
    /** The text of a value that was written without quotes, by its path. */
    readonly writtenOf?: (path: string) => string | undefined;
  };

const MOST: JsonBounds = { values: 1_500_000, depth: 16 };

export const JSON_RULES: Rules = { members: 'exact', null: 'value', most: MOST };
/** Go's encoding/json. */
export const GO_RULES: Rules = { members: 'fold-case', null: 'absent', most: MOST };
/** A document of YAML, whose members got the names of the shape while it was read. */
export const YAML_RULES: Rules = { members: 'exact', null: 'absent', most: MOST };

export type Path = readonly (string | number)[];

/** `operators[0].catalog`. */
export const formatSteps = (path: Path): string =>
  path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');

/** A fault of a value, or of the text that it was to be read from. */
export type Finding = {
  readonly path: Path;
  /** `noted`: the value is not wrong. */
  readonly code: 'syntax' | 'type' | 'value' | 'missing' | 'unknown' | 'noted';
  /** The shape that the value breaks; for an unknown member the shape of the record. */
  readonly shape: Shape;
  readonly found: unknown;
  /** The fault in words, if the shape does not say it: a fault of the text, or found by `refine`. */
  readonly why?: string;
};

/** `value` is what could be read, undefined if a part that it needs is wrong. */
export type Decoded<T> = {
  readonly value: T | undefined;
  readonly findings: readonly Finding[];
};

/**
 * Reads a parsed value along a shape. Members may have any name, also `__proto__`.
 *
 * @param rules.path place of the value in its document
 */
export function decode<T>(
  shape: Shape<T>,
  value: unknown,
  { path = [], ...rules }: Rules & { readonly path?: Path } = JSON_RULES,
): Decoded<T> {
  const at: Reading = { rules, findings: [], path: [...path] };
  const read = readValue(shape, value, at);
  return { value: read === WRONG ? undefined : (read as T), findings: at.findings };
}

/** The value; if there are findings, `refuse` makes the error of them. */
export function requireDecoded<T>(
  { value, findings }: Decoded<T>,
  refuse: (findings: readonly [Finding, ...Finding[]]) => SealiftError,
): T {
  const [first, ...others] = findings;
  if (first) throw refuse([first, ...others]);
  return value as T;
}

/** The value if it has no fault: for records of our own, which are made again. */
export const ifFaultless = <T>({ value, findings }: Decoded<T>): T | undefined =>
  findings.length === 0 ? value : undefined;

/** Reads a JSON text along a shape. Its faults are findings, which do not quote the text. */
export function decodeJson<T>(
  shape: Shape<T>,
  source: Uint8Array | string,
  rules: Rules = JSON_RULES,
): Decoded<T> {
  const read = readJsonText(source, rules);
  if (read.why !== undefined) {
    const finding: Finding = { path: [], code: 'syntax', shape, found: undefined, why: read.why };
    return { value: undefined, findings: [finding] };
  }
  return decode(shape, read.value, rules);
}

type Reading = {
  readonly rules: Rules;
  readonly findings: Finding[];
  readonly path: (string | number)[];
};

const WRONG = Symbol('wrong');

/** A text full of faults must not fill the memory. */
const MOST_FINDINGS = 10_000;

function refuse(at: Reading, finding: Omit<Finding, 'path'>): typeof WRONG {
  if (at.findings.length < MOST_FINDINGS) at.findings.push({ path: [...at.path], ...finding });
  return WRONG;
}

function readAt(step: string | number, value: unknown, { shape, at }: Part): unknown {
  at.path.push(step);
  const read = readValue(shape, value, at);
  at.path.pop();
  return read;
}

type Part = { readonly shape: Shape; readonly at: Reading };

type NodeOf<K> = Extract<Shape, { readonly kind: K }>;
type Read<K> = (shape: NodeOf<K>, value: unknown, at: Reading) => unknown;

function readValue(shape: Shape, value: unknown, at: Reading): unknown {
  const read = READERS[shape.kind] as Read<Shape['kind']>;
  return read(shape, value, at);
}

const READERS: { readonly [K in Shape['kind']]: Read<K> } = {
  text: readScalar,
  flag: readScalar,
  integer: readScalar,
  choice: readScalar,
  free: (_, value) => value,
  list: readList,
  tuple: readTuple,
  mapping: readMapping,
  record: readRecord,
  otherwise(shape, value, at) {
    const read = (value ?? undefined) === undefined ? WRONG : readValue(shape.of, value, at);
    return read === WRONG ? shape.value : read;
  },
  refined: readRefined,
  mapped(shape, value, at) {
    const read = readValue(shape.of, value, at);
    return read === WRONG ? WRONG : shape.to(read as never, at.path);
  },
  parsed(shape, value, at) {
    const isNumber = typeof value === 'number' || typeof value === 'boolean';
    const written = isNumber ? at.rules.writtenOf?.(formatSteps(at.path)) : undefined;
    return shape.parse(value, written) ?? refuse(at, { code: 'value', shape, found: value });
  },
  noted(shape, value, at) {
    const read = readValue(shape.of, value, at);
    const why = read === WRONG ? undefined : shape.why(read as never);
    if (why !== undefined) refuse(at, { code: 'noted', shape, found: value, why });
    return read;
  },
};

function readRefined(shape: NodeOf<'refined'>, value: unknown, at: Reading): unknown {
  const read = readValue(shape.of, value, at);
  if (read === WRONG) return WRONG;
  const why = shape.why(read as never);
  return why === undefined ? read : refuse(at, { code: 'value', shape, found: value, why });
}

function readScalar(shape: Shape, value: unknown, at: Reading): unknown {
  if (!isOfType(shape, value)) return refuse(at, { code: 'type', shape, found: value });
  return isAllowed(shape, value) ? value : refuse(at, { code: 'value', shape, found: value });
}

function isOfType({ kind }: Shape, value: unknown): boolean {
  if (kind === 'text') return typeof value === 'string';
  if (kind === 'flag') return typeof value === 'boolean';
  if (kind === 'integer') return Number.isSafeInteger(value);
  return kind !== 'choice' || typeof value === 'string' || typeof value === 'number';
}

function isAllowed(shape: Shape, value: unknown): boolean {
  if (shape.kind === 'text') return isTextAllowed(shape, value as string);
  if (shape.kind === 'choice') return shape.words.includes(value as string);
  if (shape.kind !== 'integer') return true;
  const { least = -Infinity, most = Infinity } = shape;
  return least <= Number(value) && Number(value) <= most;
}

const isTextAllowed = ({ pattern, isFilled = false }: NodeOf<'text'>, text: string): boolean =>
  !(isFilled && text === '') && (pattern === undefined || pattern.test(text));

function readList(shape: NodeOf<'list'>, value: unknown, at: Reading): unknown {
  if (!Array.isArray(value)) return refuse(at, { code: 'type', shape, found: value });
  const part = { shape: shape.of, at };
  // A wrong item does not take the others with it.
  const items = value
    .map((item: unknown, index) => readAt(index, item, part))
    .filter((item) => item !== WRONG);
  if (!shape.isUnique || new Set(items).size === items.length) return items;
  return refuse(at, { code: 'value', shape, found: value });
}

function readTuple(shape: NodeOf<'tuple'>, value: unknown, at: Reading): unknown {
  if (!Array.isArray(value) || value.length !== shape.items.length) {
    return refuse(at, { code: 'type', shape, found: value });
  }
  const items = shape.items.map((of, index) => readAt(index, value[index], { shape: of, at }));
  return items.includes(WRONG) ? WRONG : items;
}

function readMapping(shape: NodeOf<'mapping'>, value: unknown, at: Reading): unknown {
  if (!isHolder(value)) return refuse(at, { code: 'type', shape, found: value });
  const result = createKeyed();
  let isWrong = false;
  for (const [name, member] of Object.entries(value)) {
    result[name] = readAt(name, member, { shape: shape.of, at });
    isWrong ||= result[name] === WRONG;
  }
  return isWrong ? WRONG : result;
}

function readRecord(shape: RecordNode, value: unknown, at: Reading): unknown {
  if (!isHolder(value)) return refuse(at, { code: 'type', shape, found: value });
  const { find, others, repeated } = matchMembers(shape, value, at.rules);
  for (const written of repeated) {
    const why = `duplicate field "${written}"`;
    refuseMember(written, { code: 'value', shape, found: value[written], why }, at);
  }
  refuseOthers(shape, others, at);
  const result = shape.others === 'kept' ? others : createKeyed();
  let isWrong = false;
  for (const [name, member] of Object.entries(shape.members)) {
    const { step = name, member: found } = find(name) ?? {};
    const read = readMember(member, found, { name: step, at });
    if (read === WRONG) isWrong = true;
    else if (read !== undefined) result[name] = read;
  }
  return isWrong ? WRONG : result;
}

type Place = { readonly name: string; readonly at: Reading };

function readMember(
  member: RecordNode['members'][string],
  found: unknown,
  { name, at }: Place,
): unknown {
  const part = { shape: shapeOf(member), at };
  const isAbsent = found === undefined || (found === null && isNullAbsent(part));
  if (member.kind !== 'optional') {
    return isAbsent ? readAbsent(name, part) : readAt(name, found, part);
  }
  const read = isAbsent ? WRONG : readAt(name, found, part);
  return read === WRONG ? member.value?.() : read;
}

const isNullAbsent = ({ shape, at }: Part): boolean =>
  at.rules.null === 'absent' && !(shape.kind === 'parsed' && shape.takesNull);

function readAbsent(name: string, { shape, at }: Part): unknown {
  if (shape.kind === 'otherwise') return shape.value;
  return refuseMember(name, { code: 'missing', shape, found: undefined }, at);
}

function refuseMember(step: string, finding: Omit<Finding, 'path'>, at: Reading): typeof WRONG {
  at.path.push(step);
  refuse(at, finding);
  at.path.pop();
  return WRONG;
}

/** Reports members that the shape does not name, unless they are kept or left out. */
function refuseOthers(shape: RecordNode, others: Keyed, at: Reading): void {
  if (shape.others === 'kept' || shape.others === 'left-out') return;
  for (const [name, found] of Object.entries(others)) {
    refuseMember(name, { code: 'unknown', shape, found }, at);
  }
}

const isHolder = (value: unknown): value is Keyed =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
