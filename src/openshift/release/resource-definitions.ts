import { parse } from '../../base/yaml.ts';
import { IntegrityError } from '../../base/errors.ts';
import { findYamlExcess } from '../../base/yaml-bounds.ts';

/** A kind that the cluster version operator adds to a self-managed cluster. Plain JSON. */
export type ResourceDefinition = {
  readonly group: string;
  readonly kind: string;
  /** Served versions. */
  readonly versions: readonly string[];
  /** Feature sets of the clusters that have it; absent: every cluster. */
  readonly featureSets?: readonly string[];
};

/** Manifests of a payload that may hold definitions; the cluster version operator reads no others. */
export const isManifestPath = (path: string): boolean =>
  /^release-manifests\/[^/]+\.(?:ya?ml|json)$/.test(path);

const SELF_MANAGED = 'include.release.openshift.io/self-managed-high-availability';
const FEATURE_SET = 'release.openshift.io/feature-set';

/**
 * The definitions among a payload's manifests, by path, that self-managed clusters get. A kind occurs
 * once for each file, and there may be a file for each feature set.
 *
 * @throws IntegrityError `release.definition-unreadable`
 */
export function parseResourceDefinitions(
  manifests: ReadonlyMap<string, Uint8Array>,
): readonly ResourceDefinition[] {
  const parse = createParser();
  return [...manifests]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, bytes]) =>
      splitDefinitions(Buffer.from(bytes).toString('utf8')).flatMap((text) =>
        readSelfManaged(parse(text, path), path),
      ),
    );
}

/** What a manifest defines, whoever gets it; undefined for a manifest of another kind. */
export function readDefinition(manifest: unknown): ResourceDefinition | undefined {
  const { kind, spec } = objectOr(manifest);
  if (kind !== KIND) return undefined;
  const { group, names, versions } = objectOr(spec);
  const defined = objectOr(names)['kind'];
  if (typeof group !== 'string' || typeof defined !== 'string' || !Array.isArray(versions)) {
    return undefined;
  }
  const served = versions.map(objectOr).filter((version) => version['served'] === true);
  const named = served.map(({ name }) => name).filter((name) => typeof name === 'string');
  return { group, kind: defined, versions: named };
}

/** Whether a cluster has it that asks for no feature set. */
export const isInDefaultSet = ({ featureSets }: ResourceDefinition): boolean =>
  featureSets === undefined || featureSets.includes('Default') || featureSets.includes('');

const KIND = 'CustomResourceDefinition';

/** Most manifests define nothing, and are not parsed. */
const splitDefinitions = (text: string): readonly string[] =>
  text.split(/^---(?=\s|$)/m).filter((part) => part.includes(KIND));

function readSelfManaged(manifest: unknown, path: string): ResourceDefinition[] {
  const document = objectOr(manifest);
  if (document['kind'] !== KIND) return [];
  const annotations = objectOr(objectOr(document['metadata'])['annotations']);
  if (annotations[SELF_MANAGED] !== 'true') return [];
  const definition = readDefinition(document);
  if (definition === undefined) {
    throw unreadable(path, 'it has no spec.group, spec.names.kind or spec.versions');
  }
  const sets = annotations[FEATURE_SET];
  return [
    typeof sets === 'string'
      ? { ...definition, featureSets: sets.split(',').map((set) => set.trim()) }
      : definition,
  ];
}

/** Characters that all definitions together may have for the parser; payloads need an eighth. */
const MOST_PARSED = 8 << 20;

/**
 * Schemas are nearly all of a definition, some ten megabytes a payload, and the parser needs seconds for
 * them: it gets the text without them, and all of it where that turns out not to be YAML.
 */
function createParser(): (text: string, path: string) => unknown {
  let parsed = 0;
  const parseBounded = (text: string): unknown => {
    parsed += text.length;
    if (parsed > MOST_PARSED) throw new Error(`it takes more than ${MOST_PARSED} characters`);
    const excess = findYamlExcess(text);
    if (excess) throw excess;
    return parseYaml(text);
  };
  return (text, path) => {
    try {
      return parseBounded(dropSchemas(text));
    } catch {
      try {
        return parseBounded(text);
      } catch (cause) {
        throw unreadable(path, (cause as Error).message, cause);
      }
    }
  };
}

/** As Kubernetes reads it, YAML 1.1, without what takes the square of its size: double keys, aliases. */
const parseYaml = (text: string): unknown =>
  parse(text, {
    ...{ version: '1.1', uniqueKeys: false, maxAliasCount: 0 },
    ...{ prettyErrors: false, logLevel: 'error' },
  });

/** Leaves out what is indented deeper than a `schema:` that ends its line (YAML 1.2.2, 8.2.2). */
function dropSchemas(text: string): string {
  let depth = Infinity;
  return text
    .split('\n')
    .filter((line) => {
      const indent = line.search(/[^ ]/);
      if (indent < 0 || indent > depth) return depth === Infinity;
      depth = /^ *schema: *\r?$/.test(line) ? indent : Infinity;
      return true;
    })
    .join('\n');
}

const unreadable = (path: string, reason: string, cause?: unknown): IntegrityError =>
  new IntegrityError(
    'release.definition-unreadable',
    `definition ${path} of the payload cannot be read: ${reason}`,
    { expected: `${KIND} of apiextensions.k8s.io/v1`, found: reason, cause },
  );

const objectOr = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
