import { objectOrEmpty } from '../../base/lists.ts';
import { isInDefaultSet, type PayloadManifest, readDefinitions } from '../release/manifests.ts';
import type { Definition, Definitions, Type } from './resource-members.ts';

/*
 * Translates the structural schema of a CustomResourceDefinition v1 (Kubernetes: "Specifying a structural
 * schema") into the members by which resources are read.
 */

type Members = Readonly<Record<string, unknown>>;

/** Every release has the baremetal operator. Our other kinds are multicluster engine's, in no payload. */
export const OF_PAYLOADS: readonly string[] = ['BareMetalHost'];

/** @param manifests read with their schemas */
export function readPayloadDefinitions(
  manifests: readonly PayloadManifest[],
  kinds: readonly string[],
): Definitions {
  const defined = manifests.flatMap((manifest): readonly (readonly [string, Definition])[] => {
    const [definition] = readDefinitions([manifest]);
    if (definition === undefined || !kinds.includes(definition.kind)) return [];
    const schema = findSchema(manifest.document);
    if (!isInDefaultSet(definition) || schema === undefined) return [];
    return [[definition.kind, { group: definition.group, members: toMembers(schema) }]];
  });
  return Object.fromEntries(defined);
}

/** The schema of the version that the cluster stores. */
function findSchema({ spec }: Members): Members | undefined {
  const { versions } = objectOrEmpty(spec);
  const all = Array.isArray(versions) ? versions.map(objectOrEmpty) : [];
  const stored = all.find(({ storage }) => storage === true);
  const schema = objectOrEmpty(objectOrEmpty(stored?.['schema'])['openAPIV3Schema']);
  return schema['properties'] === undefined ? undefined : schema;
}

/** Every resource has these members, with or without the schema. */
const toMembers = (schema: Members): Definition['members'] => ({
  ...mapMembers(schema),
  apiVersion: 'text',
  kind: 'text',
  metadata: 'metadata',
  status: 'any',
});

const mapMembers = ({ properties }: Members): Readonly<Record<string, Type>> =>
  Object.fromEntries(
    Object.entries(objectOrEmpty(properties)).map(([name, schema]) => [
      name,
      toType(objectOrEmpty(schema)),
    ]),
  );

/** Extensions of a schema that allow more than its members and its type tell. */
const FREE_EXTENSIONS = [
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
];

/** The type of a value; null needs no type, because Go takes it for an absent member. */
function toType(schema: Members): Type {
  if (FREE_EXTENSIONS.some((extension) => schema[extension] === true)) return 'any';
  const name = String(schema['type']);
  const convert = Object.hasOwn(CONVERTERS, name) ? CONVERTERS[name] : undefined;
  return convert ? convert(schema) : 'any';
}

const CONVERTERS: Readonly<Record<string, (schema: Members) => Type>> = {
  boolean: () => 'flag',
  integer: () => 'integer',
  string: ({ enum: words, format }) => {
    if (format === 'byte') return 'base64';
    const isPlain = (word: unknown): boolean => typeof word === 'string' && !word.includes('|');
    return Array.isArray(words) && words.every(isPlain) ? `=${words.join('|')}` : 'text';
  },
  array: ({ items }) => [toType(objectOrEmpty(items))],
  object: (schema) => {
    if (Object.keys(objectOrEmpty(schema['properties'])).length > 0) return mapMembers(schema);
    const values = objectOrEmpty(schema['additionalProperties']);
    return Object.keys(values).length > 0 ? { '*': toType(values) } : 'any';
  },
};
