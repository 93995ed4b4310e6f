import { checkSchema } from '../../shape/json-schema.ts';
import type { ConfigDocument } from '../../shape/document.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import type { SchemaNode } from '../../shape/document.ts';

export const IMAGESET_API_VERSION = 'mirror.openshift.io/v2alpha1';
export const IMAGESET_KIND = 'ImageSetConfiguration';

const TEXT: SchemaNode = { type: 'string' };
/** An empty one counts as missing. */
const NAME: SchemaNode = { type: 'string', minLength: 1 };
const FLAG: SchemaNode = { type: 'boolean' };

const object = (
  properties: Readonly<Record<string, SchemaNode>>,
  required: readonly string[] = [],
): SchemaNode => ({ type: 'object', properties, required, additionalProperties: false });
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
    object({ name: NAME, type: TEXT, ...RANGE, shortestPath: FLAG, full: FLAG }, ['name']),
  ),
});

const OPERATOR = object(
  {
    catalog: NAME,
    full: FLAG,
    targetCatalog: TEXT,
    targetTag: TEXT,
    targetCatalogSourceTemplate: TEXT,
    skipDependencies: FLAG,
    platforms: PLATFORMS,
    packages: list(
      object(
        {
          name: NAME,
          defaultChannel: TEXT,
          ...RANGE,
          channels: list(object({ name: NAME, ...RANGE }, ['name'])),
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
    apiVersion: NAME,
    kind: NAME,
    archiveSize: { type: 'integer' },
    mirror: object({
      platform: PLATFORM,
      operators: list(OPERATOR),
      additionalImages: list(
        object({ name: NAME, targetRepo: TEXT, targetTag: TEXT, platforms: PLATFORMS }, ['name']),
      ),
      helm: HELM,
      blockedImages: list(object({ name: NAME }, ['name'])),
      samples: list(object({ name: TEXT })),
    }),
  },
  ['apiVersion', 'kind', 'mirror'],
);

/** Keys of v1alpha2, which oc-mirror v1 read, and what stands in their place in v2alpha1. */
const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  ['storageConfig', 'remove it: sealift keeps its state in the work directory'],
  ['targetName', 'write the path of the copy to "targetCatalog"'],
  ['originalRef', 'remove it'],
  ['minBundle', 'write the version of that bundle to "minVersion"'],
  ['delete', 'it belongs to a DeleteImageSetConfiguration'],
]);

/** Unknown keys, absent keys and values of another type. */
export const checkImageSetShape = (document: ConfigDocument): readonly DocumentProblem[] =>
  checkSchema(document, IMAGESET_SCHEMA, { hints: FORMER_KEYS });
