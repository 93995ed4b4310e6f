import { isObject } from '../base/lists.ts';
import { appendSuggestion } from '../base/text/words.ts';
import { foldCase } from '../shape/keys.ts';

/* Owns the reading of a JSON value as Go's encoding/json reads it into the structs of assisted-service. */

/** The part of a JSON Schema that gives a value its type. */
export type BodySchemaNode = {
  readonly '$ref'?: string;
  readonly 'type'?: string | readonly string[];
  readonly 'properties'?: Readonly<Record<string, BodySchemaNode>>;
  readonly 'items'?: BodySchemaNode;
  /** Name of the type in assisted-service. */
  readonly 'x-go-type'?: string;
};

type Reading = {
  readonly resolve: (schema: BodySchemaNode) => BodySchemaNode;
  /** Name of the struct that the body is read into. */
  readonly struct: string;
  /** Makes the error of the first fault, from Go's words. */
  readonly refuse: (why: string) => Error;
};

/** Members are found regardless of case, null is absent, unknown members and other types are refused. */
export const readAsGo = (value: unknown, schema: BodySchemaNode, reading: Reading): unknown =>
  readValue(value, schema, { ...reading, path: '' });

type Place = Reading & { readonly path: string };

function readValue(value: unknown, given: BodySchemaNode, place: Place): unknown {
  if (value === null || value === undefined) return undefined;
  const schema = place.resolve(given);
  const expected = [schema.type ?? []].flat()[0] ?? '';
  const found = nameJsonType(value);
  if (!isOfType(value, expected)) throw place.refuse(explainType(value, found, { schema, place }));
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    return value.flatMap((each: unknown) => readValue(each, items, place) ?? []);
  }
  const { properties } = schema;
  return properties && isObject(value) ? readMembers(value, properties, place) : value;
}

function readMembers(
  value: Readonly<Record<string, unknown>>,
  properties: Readonly<Record<string, BodySchemaNode>>,
  place: Place,
): object {
  const members: [string, unknown][] = [];
  for (const [given, member] of Object.entries(value)) {
    const name = findName(properties, given);
    const schema = name === undefined ? undefined : properties[name];
    if (name === undefined || schema === undefined) {
      const guess = appendSuggestion(given, Object.keys(properties));
      throw place.refuse(`json: unknown field ${quote(given)}${guess}`);
    }
    const path = place.path === '' ? name : `${place.path}.${name}`;
    const read = readValue(member, schema, { ...place, path });
    if (read !== undefined) members.push([name, read]);
  }
  return Object.fromEntries(members);
}

function findName(
  properties: Readonly<Record<string, unknown>>,
  given: string,
): string | undefined {
  if (Object.hasOwn(properties, given)) return given;
  const folded = foldCase(given);
  return Object.keys(properties).find((name) => foldCase(name) === folded);
}

const MOST_SHOWN = 64;

const quote = (name: string): string => JSON.stringify(name.slice(0, MOST_SHOWN));

function nameJsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

function isOfType(value: unknown, expected: string): boolean {
  if (expected === 'integer') return Number.isSafeInteger(value);
  if (expected === 'array') return Array.isArray(value);
  if (expected === 'object') return isObject(value);
  return typeof value === expected;
}

const GO_TYPES: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'int64',
  boolean: 'bool',
};

/** Quotes no value: it may be a secret. */
function explainType(
  value: unknown,
  found: string,
  { schema, place }: { readonly schema: BodySchemaNode; readonly place: Place },
): string {
  const { struct, path } = place;
  const [type = ''] = [schema.type ?? []].flat();
  const goType = schema['x-go-type'] ?? GO_TYPES[type] ?? `models.${struct}`;
  const what = typeof value === 'number' && type === 'integer' ? `${found} ${value}` : found;
  const where = path === '' ? 'Go value' : `Go struct field ${struct}.${path}`;
  return `json: cannot unmarshal ${what} into ${where} of type ${goType}`;
}

/** True if a text that is not JSON is the beginning of one. */
export function isCutOffJson(text: string): boolean {
  const rest = text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '');
  if (rest.includes('"')) return true;
  const [opened, closed] = [/[[{]/g, /[\]}]/g].map((form) => rest.match(form)?.length ?? 0);
  return (opened ?? 0) > (closed ?? 0);
}
