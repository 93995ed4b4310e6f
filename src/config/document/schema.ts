import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../../base/program.ts';
import { FLAG, FREE, INTEGER, list, record, TEXT, type Shape } from './shape.ts';

/** What we use of JSON Schema draft 7. */
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
};

/**
 * The schemas that ship with the program, by what they describe. `init` writes each at the same path beside
 * what it begins, where editors find it on every machine.
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

/** The line by which editors find the schema of a YAML file, relative to the file. */
export const formatModeline = (path: string): string => `# yaml-language-server: $schema=${path}\n`;

/** The name of every key on any level, in lower case. */
export function listKeys(node: SchemaNode): ReadonlySet<string> {
  const below = Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
    name.toLowerCase(),
    ...listKeys(child.items ?? child),
  ]);
  return new Set(below);
}

/** What a document that the schema describes is read along. */
export function shapeOf({ type, properties, items }: SchemaNode): Shape {
  if (type === 'array') return list(items ? shapeOf(items) : FREE);
  if (type === 'object' && properties) {
    const members = Object.entries(properties).map(
      ([name, node]) => [name, shapeOf(node)] as const,
    );
    return record(Object.fromEntries(members));
  }
  return type === undefined || type === 'object' ? FREE : SCALARS[type];
}

const SCALARS = { string: TEXT, boolean: FLAG, integer: INTEGER } as const;
