import { createBudget } from '../../base/decode/limits.ts';
import { IntegrityError, ConfigError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { parse, findYamlExcess } from '../../shape/parse-text.ts';

/** A manifest that the cluster version operator applies to a self-managed cluster. */
export type PayloadManifest = {
  readonly path: string;
  readonly document: Readonly<Record<string, unknown>>;
  /** Feature sets of the clusters that have it; absent: every cluster. */
  readonly featureSets?: readonly string[];
};

/** Files of a payload that may hold manifests; the cluster version operator reads no others. */
export const isManifestPath = (path: string): boolean =>
  /^release-manifests\/[^/]+\.(?:ya?ml|json)$/.test(path);

const SELF_MANAGED = 'include.release.openshift.io/self-managed-high-availability';
const FEATURE_SET = 'release.openshift.io/feature-set';

/**
 * By path, for self-managed clusters. Most files have no such manifest, and are not parsed.
 *
 * @param options.withSchemas true if definitions are to have their schemas, which take long to parse
 * @throws IntegrityError `release.manifest-unreadable`
 */
export function readManifests(
  files: ReadonlyMap<string, Uint8Array>,
  kinds: readonly string[],
  { withSchemas = false }: { readonly withSchemas?: boolean } = {},
): readonly PayloadManifest[] {
  const parse = createParser(withSchemas);
  const isWanted = (text: string): boolean => kinds.some((kind) => text.includes(kind));
  return [...files]
    .filter(([path]) => isManifestPath(path))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, bytes]) =>
      Buffer.from(bytes)
        .toString('utf8')
        .split(/^---(?=\s|$)/m)
        .filter(isWanted)
        .map((text) => ({ path, document: objectOrEmpty(parse(text, path)) })),
    )
    .filter(({ document: { kind } }) => typeof kind === 'string' && kinds.includes(kind))
    .flatMap(toSelfManaged);
}

function toSelfManaged({ path, document }: PayloadManifest): readonly PayloadManifest[] {
  const annotations = objectOrEmpty(objectOrEmpty(document['metadata'])['annotations']);
  if (annotations[SELF_MANAGED] !== 'true') return [];
  const sets = annotations[FEATURE_SET];
  if (typeof sets !== 'string') return [{ path, document }];
  return [{ path, document, featureSets: sets.split(',').map((set) => set.trim()) }];
}

/**
 * For all of them together; payloads need a quarter of the characters. Marks are characters that may begin a
 * node: a million of them takes ten seconds.
 */
const MOST_PARSED = { 'documents': 10_000, 'characters': 4 << 20, 'YAML marks': 500_000 };

/**
 * Schemas are some ten megabytes per payload, seconds for the parser: it gets the text without them, and all
 * of it if the shortened text turns out not to be YAML.
 */
function createParser(withSchemas: boolean): (text: string, path: string) => unknown {
  const budget = createBudget(MOST_PARSED, tooMuch);
  const parseBounded = (text: string): unknown => {
    budget.take('documents', 1);
    budget.take('characters', text.length);
    budget.take('YAML marks', text.match(/[\n,:\-[{]/g)?.length ?? 0);
    const excess = findYamlExcess(text);
    if (excess) throw excess;
    return parseYaml(text);
  };
  return (text, path) => {
    try {
      return parseBounded(withSchemas ? text : dropSchemas(text));
    } catch {
      try {
        return parseBounded(text);
      } catch (cause) {
        throw unreadableManifest(path, (cause as Error).message, cause);
      }
    }
  };
}

const tooMuch = (kind: string, limit: number): Error =>
  new Error(`it takes more than ${limit} ${kind}`);

/** YAML 1.1, as Kubernetes, without features that take quadratic time: double keys, aliases. */
const parseYaml = (text: string): unknown =>
  parse(text, {
    version: '1.1',
    uniqueKeys: false,
    maxAliasCount: 0,
    prettyErrors: false,
    logLevel: 'error',
  });

/** Drops lines indented deeper than a `schema:` that ends its line (YAML 1.2.2, 8.2.2). */
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

export const unreadableManifest = (path: string, reason: string, cause?: unknown): IntegrityError =>
  new IntegrityError(
    'release.manifest-unreadable',
    `manifest ${path} of the payload cannot be read: ${reason}`,
    { found: reason, cause },
  );

/** A kind that the cluster version operator adds to a self-managed cluster. Plain JSON. */
export type ResourceDefinition = {
  readonly group: string;
  readonly kind: string;
  /** Served versions. */
  readonly versions: readonly string[];
  /** Feature sets of the clusters that have it; absent: every cluster. */
  readonly featureSets?: readonly string[];
};

/** A kind occurs once for each file, and there may be a file for each feature set. */
export const readDefinitions = (
  manifests: readonly PayloadManifest[],
): readonly ResourceDefinition[] =>
  manifests.flatMap(({ path, document, featureSets }) => {
    if (document['kind'] !== DEFINITION) return [];
    const definition = readDefinition(document);
    if (definition === undefined) {
      throw unreadableManifest(path, 'it has no spec.group, spec.names.kind or spec.versions');
    }
    return [{ ...definition, ...(featureSets && { featureSets }) }];
  });

/** The clusters that get the kind do not matter; undefined for a manifest of another kind. */
export function readDefinition(manifest: unknown): ResourceDefinition | undefined {
  const { kind, spec } = objectOrEmpty(manifest);
  if (kind !== DEFINITION) return undefined;
  const { group, names, versions } = objectOrEmpty(spec);
  const defined = objectOrEmpty(names)['kind'];
  if (typeof group !== 'string' || typeof defined !== 'string' || !Array.isArray(versions)) {
    return undefined;
  }
  const served = versions.map(objectOrEmpty).filter((version) => version['served'] === true);
  const named = served.map(({ name }) => name).filter((name) => typeof name === 'string');
  return { group, kind: defined, versions: named };
}

/** True if a cluster that asks for no feature set has it. */
export const isInDefaultSet = ({ featureSets }: Pick<ResourceDefinition, 'featureSets'>): boolean =>
  featureSets === undefined || featureSets.includes('Default') || featureSets.includes('');

export const DEFINITION = 'CustomResourceDefinition';

/** How a payload serves a kind of the machine config operator. */
export type ServedKind = {
  readonly version: 'v1' | 'v1alpha1';
  /** True if clusters have it only with TechPreviewNoUpgrade, and cannot be upgraded. */
  readonly isPreview: boolean;
};

export const MACHINE_CONFIG_GROUP = 'machineconfiguration.openshift.io';
export const INTERNAL_RELEASE_IMAGE = 'InternalReleaseImage';
export const PINNED_IMAGE_SET = 'PinnedImageSet';

/** Hands the registry of the media to the machine config operator. Undefined before 4.21. */
export const findInternalReleaseImage = (
  definitions: readonly ResourceDefinition[],
): ServedKind | undefined => findServedKind(definitions, INTERNAL_RELEASE_IMAGE);

/** The definitions decide, because releases of one minor version differ. */
export function findServedKind(
  definitions: readonly ResourceDefinition[],
  wanted: string,
): ServedKind | undefined {
  const found = definitions.filter(
    ({ group, kind }) => group === MACHINE_CONFIG_GROUP && kind === wanted,
  );
  const usual = found.filter(isInDefaultSet);
  const isPreview = usual.length === 0;
  const served = new Set((isPreview ? found : usual).flatMap(({ versions }) => versions));
  const version = (['v1', 'v1alpha1'] as const).find((name) => served.has(name));
  return version && { version, isPreview };
}

/**
 * True if installed hosts have no registry of the media: decided by the configuration, else by whether every
 * cluster of this release has its own registry.
 *
 * @throws ConfigError `release.no-internal-registry` when hosts would have neither
 */
export function skipsLocalRegistry(
  release: { readonly version: string; readonly definitions: readonly ResourceDefinition[] },
  wanted: { readonly interactive: boolean; readonly skipLocalRegistry?: boolean },
): boolean {
  const { interactive, skipLocalRegistry } = wanted;
  const served = interactive ? findInternalReleaseImage(release.definitions) : undefined;
  if (skipLocalRegistry === undefined) return served?.isPreview === false;
  if (skipLocalRegistry && interactive && served === undefined) {
    throw new ConfigError(
      'release.no-internal-registry',
      `skipLocalRegistry is set, but release ${release.version} has no registry of its own: its payload does not define ${INTERNAL_RELEASE_IMAGE}`,
      {
        expected: `${INTERNAL_RELEASE_IMAGE} of ${MACHINE_CONFIG_GROUP} in the payload`,
        found: 'none',
        hint: 'remove skipLocalRegistry, or use release 4.22 or later',
      },
    );
  }
  return skipLocalRegistry;
}
