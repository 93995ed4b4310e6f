import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../base/package-root.ts';

/** What we use of JSON Schema draft 7. */
export type SchemaNode = {
  readonly title?: string;
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'boolean' | 'integer';
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly items?: SchemaNode;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
};

/** The schema that ships with the program; editors read the same file. */
export const SCHEMA_PATH = fileURLToPath(
  new URL('schema/appliance-config.schema.json', PACKAGE_ROOT),
);

let schema: SchemaNode | undefined;

export function readSchema(): SchemaNode {
  schema ??= JSON.parse(readFileSync(SCHEMA_PATH, 'utf8')) as SchemaNode;
  return schema;
}

/** The name of every key on any level, in lower case. */
export function listKeys(node: SchemaNode = readSchema()): ReadonlySet<string> {
  const below = Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
    name.toLowerCase(),
    ...listKeys(child.items ?? child),
  ]);
  return new Set(below);
}
