import { hexOf, type Digest } from '../../base/digest.ts';
import { formatMirror, MIRROR_SETS, type PlannedMirror } from '../mirror/mirrors.ts';
import { formatManifest, type NodeManifest } from './manifests.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain, UPGRADE_REGISTRY_PORT } from './registry.ts';

const KINDS = [
  { by: 'digest', prefix: 'idms', kind: 'ImageDigestMirrorSet', member: 'imageDigestMirrors' },
  { by: 'tag', prefix: 'itms', kind: 'ImageTagMirrorSet', member: 'imageTagMirrors' },
] as const;

type Kind = (typeof KINDS)[number];
type Entry = { readonly source: string; readonly mirrors: readonly string[] };

/** Registries whose releases do not need a mirror of the whole registry. */
const RELEASE_REGISTRIES = ['quay.io', 'registry.ci.openshift.org'];

/**
 * `idms-release-0`, `itms-operator-0`, ..., one object per file, the ones by digest first; `suffix` replaces
 * the 0. `registries` are the node's, host and port, in the order in which they are asked.
 */
export function renderMirrorSets(
  mirrors: readonly PlannedMirror[],
  registries: readonly string[],
  suffix = '0',
): readonly NodeManifest[] {
  return KINDS.flatMap((kind) =>
    MIRROR_SETS.flatMap((set) => {
      const entries = mirrors
        .filter((mirror) => mirror.set === set && mirror.by === kind.by)
        .map(({ source, mirrors, elsewhere = [] }) => ({
          source,
          mirrors: [
            ...mirrors.flatMap((path) =>
              registries.map((registry) => formatMirror(registry, path)),
            ),
            ...elsewhere,
          ],
        }));
      return entries.length === 0
        ? []
        : [renderSet(kind, `${kind.prefix}-${set}-${suffix}`, entries)];
    }),
  );
}

/**
 * The node's registry may have any other image of the user's own registry. Empty for releases of the usual
 * registries. `release` is the reference of the image.
 */
export function renderLocalRegistryMirror(
  release: string,
  registry: string,
): readonly NodeManifest[] {
  if (RELEASE_REGISTRIES.some((name) => release.includes(name))) return [];
  const source = release.slice(0, release.indexOf('/'));
  return [renderRegistryMirror('local-registry-mirror', { source, mirror: registry })];
}

/** Images that are asked of one registry by digest are looked for in another registry first. */
export const renderRegistryMirror = (
  name: string,
  entry: { readonly source: string; readonly mirror: string },
): NodeManifest => renderSet(KINDS[0], name, [{ source: entry.source, mirrors: [entry.mirror] }]);

const renderSet = (
  { kind, member }: Kind,
  name: string,
  entries: readonly Entry[],
): NodeManifest => ({
  name: `${name}.yaml`,
  text: formatManifest({
    apiVersion: 'config.openshift.io/v1',
    kind,
    metadata: { name },
    spec: { [member]: entries },
  }),
});

/**
 * The signatures of a release image, at least one, at the place in which the cluster version
 * operator looks for them: any ConfigMap with this label, keys `sha256-<hex>-<n>`, n from 1.
 */
export function renderSignatureConfigMap(release: {
  readonly digest: Digest;
  readonly signatures: readonly Uint8Array[];
  readonly name?: string;
}): NodeManifest {
  const { digest, signatures, name = 'mirrored-release-signatures' } = release;
  if (signatures.length === 0) throw new TypeError('no signature, no ConfigMap');
  const entries = signatures.map((signature, index) => [
    `sha256-${hexOf(digest)}-${index + 1}`,
    Buffer.from(signature).toString('base64'),
  ]);
  return {
    name: 'signature-configmap.yaml',
    text: formatManifest({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace: 'openshift-config-managed',
        labels: { 'release.openshift.io/verification-signatures': '' },
      },
      binaryData: Object.fromEntries(entries) as Record<string, string>,
    }),
  };
}

/**
 * Every source is read from the node's own registry and, if upgrade ISOs are possible, then from the ISO's.
 * Mirrors of one source share a table: two of the same prefix would be an error. Pulls by tag have no
 * separate file, so sources of every kind of mirror set are here.
 */
export function formatNodeRegistriesConf(
  mirrors: readonly PlannedMirror[],
  options: { readonly interactive: boolean },
): string {
  const domain = nodeRegistryDomain(options.interactive);
  const ports = options.interactive
    ? [NODE_REGISTRY_PORT]
    : [NODE_REGISTRY_PORT, UPGRADE_REGISTRY_PORT];
  const sources = new Set(mirrors.map(({ source }) => source));
  const tables = [...sources].map((source) => {
    const entries = mirrors.filter((mirror) => mirror.source === source);
    const local = entries.flatMap(({ mirrors }) =>
      mirrors.flatMap((path) => ports.map((port) => formatMirror(`${domain}:${port}`, path))),
    );
    const elsewhere = entries.flatMap((entry) => entry.elsewhere ?? []);
    return [
      '[[registry]]',
      `  location = ${quote(source)}`,
      '  prefix = ""',
      ...[...new Set([...local, ...elsewhere])].flatMap((location) => [
        '',
        '  [[registry.mirror]]',
        `    location = ${quote(location)}`,
      ]),
      '',
    ].join('\n');
  });
  return ['unqualified-search-registries = []\n', ...tables].join('\n');
}

/** A basic string of TOML 1.0; JSON's escapes are a subset of TOML's. */
const quote = (text: string): string => JSON.stringify(text);
