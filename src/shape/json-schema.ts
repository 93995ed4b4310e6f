import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { DocumentProblem } from '../base/errors.ts';
import { findNearestName, suggestName } from '../base/text/words.ts';
import { UNKNOWN_KEY } from './decode-yaml.ts';
import type { ConfigDocument, SchemaNode } from './document.ts';
import { maskUserInfo } from './report.ts';
import type { Plain } from './shape.ts';

/** Last members of paths whose values are never shown. */
const SECRET_PATH = /(?:^|\.)(?:pullSecret|sshKey|userCorePass|ignitionConfigOverride)$/;

type SchemaOptions = {
  /** Hints for unknown keys that used to have a meaning. */
  readonly hints?: ReadonlyMap<string, string>;
  /** True if rules report missing members in their own words. */
  readonly mayLack?: boolean;
};

const REQUIRED = { code: 'config.required' };

const compiled = new WeakMap<SchemaNode, ValidateFunction>();

/**
 * All faults that a schema finds in a document that was read along it, in the order of the schema.
 */
export function checkSchema(
  document: ConfigDocument,
  schema: SchemaNode,
  { hints = new Map(), mayLack = false }: SchemaOptions = {},
): readonly DocumentProblem[] {
  const validate = compiled.get(schema) ?? compile(schema);
  if (validate(document.value)) return [];
  return (validate.errors ?? [])
    .filter(({ keyword }) => !(mayLack && keyword === 'required'))
    .map((error) => explain(error, document, { schema, hints }));
}

/**
 * The schema is ours, and the tests check it: checking it at each start takes longer than all
 * other work here.
 */
const FAST = { meta: false, validateSchema: false, code: { optimize: false } };

function compile(schema: SchemaNode): ValidateFunction {
  const validate = new Ajv({ allErrors: true, verbose: true, strict: true, ...FAST }).compile(
    schema,
  );
  compiled.set(schema, validate);
  return validate;
}

type About = { readonly schema: SchemaNode; readonly hints: ReadonlyMap<string, string> };

function explain(error: ErrorObject, document: ConfigDocument, about: About): DocumentProblem {
  const path = formatPointer(error.instancePath);
  const under = (name: string): string => (path === '' ? name : `${path}.${name}`);
  const { report } = document;
  if (error.keyword === 'required') {
    return report(
      under((error.params as { missingProperty: string }).missingProperty),
      'is required',
      REQUIRED,
    );
  }
  if (error.keyword === 'additionalProperties') {
    const key = (error.params as { additionalProperty: string }).additionalProperty;
    const known = Object.keys((error.parentSchema as SchemaNode).properties ?? {});
    const hint = about.hints.get(key) ?? suggestKey(key, known, about.schema);
    return report(under(key), 'no such key', { code: UNKNOWN_KEY, hint, hideValue: true });
  }
  if (isEmpty(error)) return report(path, 'is required', REQUIRED);
  const shown =
    path === '' || SECRET_PATH.test(path) ? '' : `, but is ${show(error.data as Plain)}`;
  return report(path, `${describeRule(error)}${shown}`, {
    code: 'config.schema',
    hint: hintFor(path, error),
  });
}

/** True for an empty text in a place that needs a text, which reads better as missing. */
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

/** Likely meanings of an unknown key: a key next to it, or one of another level. */
export const suggestKey = (
  key: string,
  known: readonly string[],
  schema: SchemaNode,
): string | undefined => suggestName(key, known) ?? findPlace(key, schema);

function findPlace(key: string, schema: SchemaNode): string | undefined {
  const place = findPath(key.toLowerCase(), schema, '');
  return place === undefined ? undefined : `"${key}" belongs at ${place}`;
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
  if (typeof value === 'string') return `"${maskUserInfo(value).slice(0, 80)}"`;
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
