import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { ConfigDocument, Plain } from './document/document.ts';
import { findNearestName, suggestName } from '../base/text/nearest-name.ts';
import type { ConfigProblem } from './document/problem.ts';
import { readSchema, type SchemaNode } from './document/schema.ts';

/** Last members of paths whose values are never shown. */
const SECRET_PATH = /(?:^|\.)(?:pullSecret|sshKey|userCorePass)$/;

let compiled: ValidateFunction | undefined;

/** Everything the schema has against a document, in the order of the file. */
export function checkSchema(document: ConfigDocument): readonly ConfigProblem[] {
  compiled ??= new Ajv({ allErrors: true, verbose: true, strict: true }).compile(readSchema());
  if (compiled(document.value)) return [];
  return (compiled.errors ?? []).map((error) => explain(error, document));
}

function explain(error: ErrorObject, document: ConfigDocument): ConfigProblem {
  const path = formatPointer(error.instancePath);
  const under = (name: string): string => (path === '' ? name : `${path}.${name}`);
  const { at, atOffset } = document.report;
  if (error.keyword === 'required') {
    const place = under((error.params as { missingProperty: string }).missingProperty);
    return at(place, 'is required');
  }
  if (error.keyword === 'additionalProperties') {
    const key = (error.params as { additionalProperty: string }).additionalProperty;
    return atOffset(document.offsetOf(under(key)), {
      path: under(key),
      problem: 'no such key',
      hint: suggestKey(key, error.parentSchema as SchemaNode),
      hideValue: true,
    });
  }
  const shown =
    path === '' || SECRET_PATH.test(path) ? '' : `, but is ${show(error.data as Plain)}`;
  if (isEmpty(error)) return at(path, 'is required');
  return at(path, `${describeRule(error)}${shown}`, hintFor(path, error));
}

/** An empty text where one is needed reads better as missing. */
const isEmpty = (error: ErrorObject): boolean => error.keyword === 'minLength' && error.data === '';

function describeRule({ keyword, params, parentSchema }: ErrorObject): string {
  const schema = parentSchema as SchemaNode;
  switch (keyword) {
    case 'type':
      return `must be ${nameType((params as { type: string }).type)}`;
    case 'const':
      return `must be "${String(schema.const)}"`;
    case 'enum':
      return `must be one of ${(schema.enum ?? []).map((value) => `"${value}"`).join(', ')}`;
    case 'minimum':
    case 'maximum':
      return describeRange(schema);
    case 'pattern':
      return `must match ${String(schema.pattern)}`;
    default:
      return `breaks the rule "${keyword}" of the schema`;
  }
}

function describeRange({ minimum = 0, maximum }: SchemaNode): string {
  return maximum === undefined
    ? `must be at least ${minimum}`
    : `must be between ${minimum} and ${maximum}`;
}

function hintFor(path: string, error: ErrorObject): string | undefined {
  if (error.keyword === 'type' && path.endsWith('ullSecret')) {
    return 'put the JSON in single quotes, or write file:PATH or env:NAME';
  }
  if (error.keyword === 'pattern') return (error.parentSchema as SchemaNode).description;
  if (error.keyword !== 'enum' || typeof error.data !== 'string') return undefined;
  const near = findNearestName(error.data, (error.parentSchema as SchemaNode).enum ?? []);
  return near === undefined ? undefined : `write "${near}"`;
}

function suggestKey(key: string, schema: SchemaNode): string | undefined {
  const here = Object.keys(schema.properties ?? {});
  const suggestion = suggestName(key, here);
  if (suggestion !== undefined) return suggestion;
  const elsewhere = findPath(key.toLowerCase(), readSchema(), '');
  return elsewhere === undefined ? undefined : `"${key}" belongs at ${elsewhere}`;
}

function findPath(key: string, schema: SchemaNode, path: string): string | undefined {
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const place = path === '' ? name : `${path}.${name}`;
    if (name.toLowerCase() === key) return place;
    const deeper = findPath(key, child.items ?? child, child.items ? `${place}[]` : place);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}

const nameType = (type: string): string =>
  ({ object: 'a mapping', array: 'a list', boolean: 'true or false', integer: 'a whole number' })[
    type
  ] ?? `a ${type}`;

function show(value: Plain): string {
  if (typeof value === 'string') return `"${value.slice(0, 80)}"`;
  if (Array.isArray(value)) return 'a list';
  return value !== null && typeof value === 'object' ? 'a mapping' : String(value);
}

/** RFC 6901 to the form people write: `/operators/0/catalog` to `operators[0].catalog`. */
function formatPointer(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => {
      if (/^\d+$/.test(part)) return `${path}[${part}]`;
      return path === '' ? part : `${path}.${part}`;
    }, '');
}
