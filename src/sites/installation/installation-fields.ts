import type { ConfigDocument, Plain } from '../../config/document/document.ts';
import { suggestName } from '../../base/text/nearest-name.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import { readSchema, SCHEMA, type SchemaNode } from '../../config/document/schema.ts';

type PlainObject = Readonly<Record<string, Plain>>;

/** Unknown keys, and values of another type than their key has. */
export function checkFields(document: ConfigDocument): readonly ConfigProblem[] {
  return checkValue(document, document.value, {
    schema: readSchema(SCHEMA.installation),
    path: '',
  });
}

type Place = { readonly schema: SchemaNode; readonly path: string };

function checkValue(document: ConfigDocument, value: Plain, place: Place): ConfigProblem[] {
  const { schema, path } = place;
  if (value === null) return [];
  if (!hasType(value, schema)) {
    return [document.report.at(path, `must be ${nameType(schema)}`)];
  }
  if (isList(value)) {
    return value.flatMap((item, index) =>
      checkValue(document, item, { schema: schema.items ?? {}, path: `${path}[${index}]` }),
    );
  }
  return isObject(value) && schema.properties !== undefined
    ? checkMembers(document, value, place)
    : [];
}

function checkMembers(
  document: ConfigDocument,
  value: PlainObject,
  { schema, path }: Place,
): ConfigProblem[] {
  const members = schema.properties ?? {};
  return Object.entries(value).flatMap(([name, child]) => {
    const below = path === '' ? name : `${path}.${name}`;
    if (Object.hasOwn(members, name)) {
      return checkValue(document, child, { schema: members[name] ?? {}, path: below });
    }
    const hint = suggestName(name, Object.keys(members));
    const offset = document.offsetOf(below);
    const problem = `unknown field "${name}"`;
    return [document.report.atOffset(offset, { path: below, problem, hint, hideValue: true })];
  });
}

function hasType(value: Plain, { type, minimum = 0 }: SchemaNode): boolean {
  if (type === 'object') return isObject(value);
  if (type === 'array') return isList(value);
  if (type === 'integer') return Number.isSafeInteger(value) && Number(value) >= minimum;
  return type === undefined || typeof value === type;
}

function nameType({ type = 'string', minimum = 0 }: SchemaNode): string {
  return {
    object: 'a mapping',
    array: 'a list',
    boolean: 'true or false',
    integer: `a whole number of at least ${minimum}`,
    string: 'a text',
  }[type];
}

const isList = (value: Plain): value is readonly Plain[] => Array.isArray(value);

const isObject = (value: Plain): value is PlainObject =>
  typeof value === 'object' && value !== null && !isList(value);
