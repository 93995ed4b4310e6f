import type { Json } from '../base/text/json.ts';
import type { Rules } from './decode.ts';
import { shapeOf, type RecordNode, type Shape } from './shape.ts';

/**
 * The JSON Schema (draft 7) of a shape, for editors. Where null counts as absent, it is allowed everywhere.
 */
export function toJsonSchema(shape: Shape, rules: NullRule): Json {
  const { description } = shape;
  return { ...(description !== undefined && { description }), ...describeNode(shape, rules) };
}

type Members = Readonly<Record<string, Json>>;
type NullRule = Pick<Rules, 'null'>;
type NodeOf<K> = Extract<Shape, { readonly kind: K }>;
type Describe<K> = (shape: NodeOf<K>, rules: NullRule) => Members;

function describeNode(shape: Shape, rules: NullRule): Members {
  const describe = DESCRIBERS[shape.kind] as Describe<Shape['kind']>;
  return describe(shape, rules);
}

const describeInner = ({ of }: { readonly of: Shape }, rules: NullRule): Members =>
  describeNode(of, rules);

const typed = (name: string, rules: NullRule): Members => ({
  type: rules.null === 'absent' ? [name, 'null'] : name,
});

const DESCRIBERS: { readonly [K in Shape['kind']]: Describe<K> } = {
  free: () => ({}),
  flag: (_, rules) => typed('boolean', rules),
  text: ({ isFilled = false, pattern }, rules) => ({
    ...typed('string', rules),
    ...(isFilled && { minLength: 1 }),
    ...(pattern && { pattern: pattern.source }),
  }),
  integer: ({ least, most }, rules) => ({
    ...typed('integer', rules),
    ...(least !== undefined && { minimum: least }),
    ...(most !== undefined && { maximum: most }),
  }),
  choice: ({ words }, rules) => ({ enum: [...words, ...(rules.null === 'absent' ? [null] : [])] }),
  list: ({ of, isUnique }, rules) => ({
    ...typed('array', rules),
    items: toJsonSchema(of, rules),
    ...(isUnique && { uniqueItems: true }),
  }),
  tuple: ({ items }, rules) => ({
    ...typed('array', rules),
    items: items.map((item) => toJsonSchema(item, rules)),
    minItems: items.length,
    maxItems: items.length,
  }),
  mapping: ({ of }, rules) => ({
    ...typed('object', rules),
    additionalProperties: toJsonSchema(of, rules),
  }),
  record: (shape, rules) => ({ ...typed('object', rules), ...describeMembers(shape, rules) }),
  otherwise: describeInner,
  refined: describeInner,
  mapped: describeInner,
  noted: describeInner,
  parsed: () => ({}),
};

function describeMembers({ others, members }: RecordNode, rules: NullRule): Members {
  const all = Object.entries(members);
  const required = all.filter(([, { kind }]) => kind !== 'optional').map(([name]) => name);
  const properties = all.map(([name, member]) => {
    const schema = toJsonSchema(shapeOf(member), rules) as Members;
    const value = member.kind === 'optional' ? member.value?.() : undefined;
    return [name, value === undefined ? schema : { ...schema, default: value as Json }] as const;
  });
  return {
    additionalProperties: others === 'kept' || others === 'left-out',
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(properties),
  };
}
