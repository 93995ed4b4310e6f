import type { ConfigDocument, Plain } from '../document/document.ts';
import { suggestName } from '../../base/text/nearest-name.ts';
import type { ConfigProblem } from '../document/problem.ts';
import type { SchemaNode } from '../document/schema.ts';

export const IMAGESET_API_VERSION = 'mirror.openshift.io/v2alpha1';
export const IMAGESET_KIND = 'ImageSetConfiguration';

const TEXT: SchemaNode = { type: 'string' };
const FLAG: SchemaNode = { type: 'boolean' };

const object = (
  properties: Readonly<Record<string, SchemaNode>>,
  required: readonly string[] = [],
): SchemaNode => ({ type: 'object', properties, required });
const list = (items: SchemaNode): SchemaNode => ({ type: 'array', items });

const PLATFORMS = list(object({ os: TEXT, architecture: TEXT, variant: TEXT }));
const RANGE = { minVersion: TEXT, maxVersion: TEXT };

const PLATFORM = object({
  graph: FLAG,
  architectures: list(TEXT),
  platforms: PLATFORMS,
  release: TEXT,
  kubeVirtContainer: FLAG,
  channels: list(
    object({ name: TEXT, type: TEXT, ...RANGE, shortestPath: FLAG, full: FLAG }, ['name']),
  ),
});

const OPERATOR = object(
  {
    catalog: TEXT,
    full: FLAG,
    targetCatalog: TEXT,
    targetTag: TEXT,
    targetCatalogSourceTemplate: TEXT,
    skipDependencies: FLAG,
    platforms: PLATFORMS,
    packages: list(
      object(
        {
          name: TEXT,
          defaultChannel: TEXT,
          ...RANGE,
          channels: list(object({ name: TEXT, ...RANGE }, ['name'])),
        },
        ['name'],
      ),
    ),
  },
  ['catalog'],
);

const HELM = object({
  repositories: list(
    object({
      url: TEXT,
      name: TEXT,
      charts: list(
        object({
          name: TEXT,
          version: TEXT,
          path: TEXT,
          imagePaths: list(TEXT),
          platforms: PLATFORMS,
        }),
      ),
    }),
  ),
  local: list(object({ name: TEXT, path: TEXT, imagePaths: list(TEXT) })),
});

/** oc-mirror's ImageSetConfiguration v2alpha1, whose reader refuses keys that it does not know. */
export const IMAGESET_SCHEMA: SchemaNode = object(
  {
    apiVersion: TEXT,
    kind: TEXT,
    archiveSize: { type: 'integer' },
    mirror: object({
      platform: PLATFORM,
      operators: list(OPERATOR),
      additionalImages: list(
        object({ name: TEXT, targetRepo: TEXT, targetTag: TEXT, platforms: PLATFORMS }, ['name']),
      ),
      helm: HELM,
      blockedImages: list(object({ name: TEXT }, ['name'])),
      samples: list(object({ name: TEXT })),
    }),
  },
  ['apiVersion', 'kind', 'mirror'],
);

/** Unknown keys, absent keys and values of another type, in the order of the file. */
export const checkImageSetShape = (document: ConfigDocument): readonly ConfigProblem[] =>
  checkNode(document, { value: document.value, schema: IMAGESET_SCHEMA, path: '' });

type Place = { readonly value: Plain; readonly schema: SchemaNode; readonly path: string };

function checkNode(document: ConfigDocument, place: Place): readonly ConfigProblem[] {
  const { value, schema, path } = place;
  if (!hasType(value, schema.type)) {
    return [document.report.at(path, `must be ${nameType(schema.type)}`)];
  }
  const { items } = schema;
  if (Array.isArray(value)) {
    return (value as readonly Plain[]).flatMap((item, index) =>
      items ? checkNode(document, { value: item, schema: items, path: `${path}[${index}]` }) : [],
    );
  }
  return isMapping(value) ? checkMapping(document, { value, schema, path }) : [];
}

type Mapping = Readonly<Record<string, Plain>>;

const isMapping = (value: Plain): value is Mapping =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

function checkMapping(
  document: ConfigDocument,
  { value, schema, path }: Place & { readonly value: Mapping },
): readonly ConfigProblem[] {
  const { properties = {}, required = [] } = schema;
  const under = (name: string): string => (path === '' ? name : `${path}.${name}`);
  const missing = required
    .filter((name) => !Object.hasOwn(value, name) || value[name] === '')
    .map((name) => document.report.at(under(name), 'is required'));
  const present = Object.entries(value).flatMap(([name, child]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return known
      ? checkNode(document, { value: child, schema: known, path: under(name) })
      : [refuseKey(document, under(name), { name, known: Object.keys(properties) })];
  });
  return [...missing, ...present];
}

/** Keys of v1alpha2, which oc-mirror v1 read, and what stands in their place in v2alpha1. */
const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  ['storageConfig', 'remove it: sealift keeps its state in the work directory'],
  ['targetName', 'write the path of the copy to "targetCatalog"'],
  ['originalRef', 'remove it'],
  ['minBundle', 'write the version of that bundle to "minVersion"'],
]);

function refuseKey(
  document: ConfigDocument,
  path: string,
  { name, known }: { readonly name: string; readonly known: readonly string[] },
): ConfigProblem {
  const suggestion = FORMER_KEYS.has(name) ? undefined : suggestName(name, known);
  const hint =
    path === 'delete' ? 'it belongs to a DeleteImageSetConfiguration' : FORMER_KEYS.get(name);
  return document.report.atOffset(document.offsetOf(path), {
    path,
    problem: 'no such key',
    hint: suggestion ?? hint,
    hideValue: true,
  });
}

function hasType(value: Plain, type: SchemaNode['type']): boolean {
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isMapping(value);
  if (type === 'integer') return Number.isSafeInteger(value);
  return typeof value === type;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  object: 'a mapping',
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
};

const nameType = (type: SchemaNode['type']): string => TYPE_NAMES[type ?? ''] ?? 'a text';
