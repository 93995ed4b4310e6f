import { formatMirror, MIRROR_SETS, type PlannedMirror } from '../mirror/plan-mirrors.ts';
import { formatManifest, type Manifest } from './manifests/extra-manifests.ts';

const KINDS = [
  { by: 'digest', prefix: 'idms', kind: 'ImageDigestMirrorSet', member: 'imageDigestMirrors' },
  { by: 'tag', prefix: 'itms', kind: 'ImageTagMirrorSet', member: 'imageTagMirrors' },
] as const;

type Kind = (typeof KINDS)[number];
type Entry = { readonly source: string; readonly mirrors: readonly string[] };

/** Registries whose releases need no mirror of the whole registry. */
const RELEASE_REGISTRIES = ['quay.io', 'registry.ci.openshift.org'];

/**
 * The cluster's own mirror configuration: `idms-release-0`, `itms-operator-0`, ..., an object a file,
 * those by digest first; `suffix` replaces the 0. `registries` are the node's, host and port, in the
 * order in which they are asked.
 */
export function renderMirrorSets(
  mirrors: readonly PlannedMirror[],
  registries: readonly string[],
  suffix = '0',
): readonly Manifest[] {
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
 * A release of a registry of one's own: whatever else the cluster asks that registry for, the node's
 * may have it. None for releases of the usual registries. `release` is the reference of its image.
 */
export function renderLocalRegistryMirror(release: string, registry: string): readonly Manifest[] {
  if (RELEASE_REGISTRIES.some((name) => release.includes(name))) return [];
  const source = release.slice(0, release.indexOf('/'));
  return [renderRegistryMirror('local-registry-mirror', { source, mirror: registry })];
}

/** What is asked of one registry by digest is looked for in another one first. */
export const renderRegistryMirror = (
  name: string,
  entry: { readonly source: string; readonly mirror: string },
): Manifest => renderSet(KINDS[0], name, [{ source: entry.source, mirrors: [entry.mirror] }]);

const renderSet = ({ kind, member }: Kind, name: string, entries: readonly Entry[]): Manifest => ({
  name: `${name}.yaml`,
  text: formatManifest({
    apiVersion: 'config.openshift.io/v1',
    kind,
    metadata: { name },
    spec: { [member]: entries },
  }),
});
