import { readFileSync } from 'node:fs';
import type { DocumentProblem } from '../base/errors.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { findNearestName, suggestName } from '../base/text/words.ts';
import { decode, formatSteps, YAML_RULES, type Finding } from './decode.ts';
import { readYaml, UNKNOWN_KEY, type ConfigDocument, type TextSource } from './document.ts';
import { maskUserInfo, type ReportDetails } from './report.ts';
import {
  oneOf,
  coreOf,
  defaulted,
  FLAG,
  FREE,
  list,
  listMemberNames,
  mapping,
  optional,
  record,
  type Plain,
  type Shape,
} from './shape.ts';

/* Owns configurations whose shape is a JSON Schema of ours. */

/** The part of JSON Schema draft 7 that is used. */
export type SchemaNode = {
  readonly title?: string;
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'boolean' | 'integer';
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly items?: SchemaNode;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly uniqueItems?: boolean;
};

/**
 * The schemas that ship with the program, by the documents that they describe. `init` writes each
 * at the same path next to the file that it begins, so that editors find it on every machine.
 */
export const SCHEMA = {
  appliance: 'schema/appliance-config.schema.json',
  installation: 'schema/image-based-installation-config.schema.json',
  site: 'schema/site.schema.json',
} as const;

type SchemaPath = (typeof SCHEMA)[keyof typeof SCHEMA];

export const readSchemaText = (path: SchemaPath): string =>
  readFileSync(new URL(path, PACKAGE_ROOT), 'utf8');

const schemas = new Map<SchemaPath, SchemaNode>();

export function readSchema(path: SchemaPath = SCHEMA.appliance): SchemaNode {
  const schema = schemas.get(path) ?? (JSON.parse(readSchemaText(path)) as SchemaNode);
  schemas.set(path, schema);
  return schema;
}

/** The line that names the schema of a YAML file for editors; the path is relative to the file. */
export const formatModeline = (path: string): string => `# yaml-language-server: $schema=${path}\n`;

/** The name of every key on any level, in lower case. */
export const listKeys = (schema: SchemaNode): ReadonlySet<string> =>
  new Set(listMemberNames(shapeOfSchema(schema)).map((name) => name.toLowerCase()));

/** Reads a document along a schema, as plain data that must be checked afterwards. */
export const readAlongSchema = (
  source: Omit<TextSource, 'publicKeys'> & Partial<TextSource>,
  schema: SchemaNode,
): ConfigDocument => readYaml({ publicKeys: listKeys(schema), ...source }, shapeOfSchema(schema));

const shapes = new WeakMap<SchemaNode, Shape>();

/** The shape of the values that a schema describes. */
function shapeOfSchema(schema: SchemaNode): Shape {
  const shape = shapes.get(schema) ?? createShape(schema);
  shapes.set(schema, shape);
  return shape;
}

function createShape(schema: SchemaNode): Shape {
  const { type, properties, items, required = [], ...node } = schema;
  const words = node.const === undefined ? node.enum : [node.const];
  if (words) return oneOf(...words);
  if (type === 'array') return list(items ? shapeOfSchema(items) : FREE, node.uniqueItems);
  if (type === 'object' && !properties) return mapping(FREE);
  if (type === 'object') {
    const members = Object.entries(properties ?? {}).map(([name, member]) => {
      const shape = shapeOfSchema(member);
      if (required.includes(name)) return [name, shape] as const;
      const value = member.default as Plain | undefined;
      return [name, value === undefined ? optional(shape) : defaulted(shape, () => value)] as const;
    });
    return record(Object.fromEntries(members));
  }
  return createScalar(schema);
}

function createScalar({ type, pattern, minLength = 0, minimum, maximum }: SchemaNode): Shape {
  if (type === 'boolean') return FLAG;
  if (type === 'integer') {
    return {
      kind: 'integer',
      ...(minimum !== undefined && { least: minimum }),
      ...(maximum !== undefined && { most: maximum }),
    };
  }
  if (type !== 'string') return FREE;
  return {
    kind: 'text',
    isFilled: minLength > 0,
    ...(pattern !== undefined && { pattern: new RegExp(pattern, 'u') }),
  };
}

/** Last members of paths whose values are never shown. */
const SECRET_PATH = /(?:^|\.)(?:pullSecret|sshKey|userCorePass|ignitionConfigOverride)$/;

type SchemaOptions = {
  /** Hints for unknown keys that used to have a meaning. */
  readonly hints?: ReadonlyMap<string, string>;
  /** True if rules report missing members in their own words. */
  readonly mayLack?: boolean;
};

const REQUIRED = { code: 'config.required' };

/** All faults that a schema finds in a document that was read along it. */
export function checkSchema(
  document: ConfigDocument,
  schema: SchemaNode,
  { hints = new Map(), mayLack = false }: SchemaOptions = {},
): readonly DocumentProblem[] {
  return decode(shapeOfSchema(schema), document.value, YAML_RULES)
    .findings.filter(({ code }) => !(mayLack && code === 'missing'))
    .map((finding) => {
      const path = formatSteps(finding.path);
      const shown = findWritten(finding, document.writtenOf(path));
      return document.report(
        path,
        ...explain({ ...finding, found: shown }, path, { schema, hints }),
      );
    });
}

/** The value as it is written, if it was not meant as text. */
const findWritten = ({ shape, found }: Finding, written: string | undefined): unknown =>
  coreOf(shape).kind === 'flag' ? (written ?? found) : found;

type About = { readonly schema: SchemaNode; readonly hints: ReadonlyMap<string, string> };

function explain(finding: Finding, path: string, about: About): [string, ReportDetails] {
  const { code, shape, found } = finding;
  if (code === 'missing' || isEmpty(finding)) return ['is required', REQUIRED];
  if (code === 'unknown') {
    const key = String(finding.path.at(-1));
    const known = shape.kind === 'record' ? Object.keys(shape.members) : [];
    const hint = about.hints.get(key) ?? suggestKey(key, known, about.schema);
    return ['no such key', { code: UNKNOWN_KEY, hint, hideValue: true }];
  }
  const shown = path === '' || SECRET_PATH.test(path) ? '' : `, but is ${show(found as Plain)}`;
  return [
    `${code === 'type' ? `must be ${nameType(shape)}` : describeRule(shape)}${shown}`,
    { code: 'config.schema', hint: hintFor(finding, path, about) },
  ];
}

/** True for an empty text in a place that needs a text, which reads better as missing. */
const isEmpty = ({ shape, found }: Finding): boolean =>
  shape.kind === 'text' && shape.isFilled === true && found === '';

function describeRule(shape: Shape): string {
  if (shape.kind === 'integer') return describeRange(shape);
  if (shape.kind === 'text') return `must match ${shape.pattern?.source ?? ''}`;
  if (shape.kind !== 'choice') return 'must not have an item twice';
  const words = shape.words.map((word) => `"${word}"`).join(', ');
  return `must be ${shape.words.length === 1 ? '' : 'one of '}${words}`;
}

function describeRange({ least = 0, most }: { readonly least?: number; readonly most?: number }) {
  return most === undefined ? `must be at least ${least}` : `must be between ${least} and ${most}`;
}

function hintFor({ code, shape, found, ...finding }: Finding, path: string, { schema }: About) {
  if (code === 'type' && path.endsWith('ullSecret')) {
    return 'put the JSON in single quotes, or write file:PATH or env:NAME';
  }
  if (shape.kind === 'text' && code === 'value') return findNode(schema, finding.path)?.description;
  if (shape.kind !== 'choice' || typeof found !== 'string') return undefined;
  const near = shape.words.length > 1 ? findNearestName(found, shape.words.map(String)) : undefined;
  return near === undefined ? undefined : `write "${near}"`;
}

const findNode = (schema: SchemaNode, path: Finding['path']): SchemaNode | undefined =>
  path.reduce<SchemaNode | undefined>(
    (node, step) => (typeof step === 'number' ? node?.items : node?.properties?.[step]),
    schema,
  );

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

const nameType = ({ kind }: Shape): string => TYPES[kind] ?? 'a string';

const TYPES: Readonly<Record<string, string>> = {
  record: 'a mapping',
  mapping: 'a mapping',
  list: 'a list',
  flag: 'true or false',
  integer: 'a whole number',
};

function show(value: Plain): string {
  if (typeof value === 'string') return `"${maskUserInfo(value).slice(0, 80)}"`;
  if (Array.isArray(value)) return 'a list';
  return value !== null && typeof value === 'object' ? 'a mapping' : String(value);
}
